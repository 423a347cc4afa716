// One entry for a page or any other host that speaks bytes: a request as JSON, an answer as the
// bytes the command would print.
//
//   Session session;
//   call(R"({"call":"trace","name":"three-tokens","case":"<the file's text>"})", session)
//
// What can be called stands in calls.h. Cases take an "edit":
// {"set":[{"matrix":"X","at":[1,0],"to":"0.5"}],"hide":[2],"mask":"causal","scale":"0.5",
// "empty_row":"zero"}, rows and keys by index, numbers as they were typed. Nothing falls back:
// values of another kind or out of range and fields that a call does not have are refused. An
// answer that could not be made is
// {"problems":[{"where":...,"what":...}]}: every problem, by field path.
#pragma once

#include <string>
#include <string_view>

#include "wasm/session.h"

namespace glasshead::wasm {

struct Answer {
  bool is_ok = false;
  std::string bytes;
};

Answer call(std::string_view request, Session& session);

}  // namespace glasshead::wasm
