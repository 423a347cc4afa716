// Somebody's attention, put together from a request: a case, or tensors in their roles; what they
// believe; their numbers.
//
//   {"name":"three-tokens-causal","case":"<its text>","claims":{"weights":"1 0 0; .5 .5 0; .25 .25
//    .5","out":[[1,0],[0.33,0.67],[0.75,0.75]]},"decimals":2,"dtype":"f32","pairs":false}
//   {"sources":[{"name":"q.npy","base64":"k05VTVBZ..."},...],"roles":{"q":0,"k":1,"v":2,"out":3},
//    "options":{"causal":"end"}}
//
// "claims" are their numbers by name: lists of lists, as exact as a file's, or text as the command
// takes it, whose digits say how far it was rounded. "sources" (given_tensors.h) have their roles
// in "roles", by number. "options" are believed.h's. "decimals" and "pairs" may be typed: "2",
// "no".
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "doctor/case_subject.h"
#include "wasm/believed.h"
#include "wasm/given_tensors.h"
#include "wire/case.h"

namespace glasshead::wasm {

struct DoctorRequest {
  Sources sources;
  std::vector<std::string> role_of;  // of each tensor; empty: not used
  std::optional<doctor::CaseSubject> subject;
  std::vector<std::string> key_labels;  // of the case
  Believed believed;
  AttentionCase attention;
  Claims claims;
  std::vector<std::string> read;  // for Diagnosis::read
  DiagnoseOptions options;
  std::vector<std::string> flags;  // of the command that says the same

  DoctorRequest() = default;
  DoctorRequest(const DoctorRequest&) = delete;  // attention and claims point into it
  DoctorRequest& operator=(const DoctorRequest&) = delete;
};

// The case that a request names in "case" and "name", if any.
std::optional<wire::Case> read_case(Request& request);

// Asks for "case", "name", "sources", "roles", "claims", "options", "decimals", "dtype", "pairs".
// What is wrong is among the request's problems.
void read_doctor_request(Request& request, DoctorRequest& to);

// Words of a command, quoted where a shell needs it.
std::string command_line(const std::string& start, const std::vector<std::string>& words);

}  // namespace glasshead::wasm
