// Somebody's attention, put together from a page's request: a case, or tensors in their roles; what
// they believe; their numbers.
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
  DiagnoseOptions options;
  std::vector<std::string> flags;  // of the command that says the same

  DoctorRequest() = default;
  DoctorRequest(const DoctorRequest&) = delete;  // attention and claims point into it
  DoctorRequest& operator=(const DoctorRequest&) = delete;
};

// The case that a request names in "case" and "name", if any.
std::optional<wire::Case> read_case(Request& request);

// Asks for "case", "name", "sources", "roles", "options", "decimals", "dtype", "pairs". What is
// wrong is among the request's problems.
void read_doctor_request(Request& request, DoctorRequest& to);

// Words of a command, quoted where a shell needs it.
std::string command_line(const std::string& start, const std::vector<std::string>& words);

}  // namespace glasshead::wasm
