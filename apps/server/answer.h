// What the server computes: a call by its name, with its fields as JSON.
//
//   answer("trace", R"({"name":"three-tokens","case":"..."})").bytes;  // glasshead trace's JSON
//   answer("doctor", R"({"case":"...","claims":{"out":[[1,0]]}})");    // glasshead doctor --json's
//
// The calls are those of the page's engine (bindings/wasm/calls.h), so that a page can ask here
// what its own engine has no room for, and gets the same bytes.
#pragma once

#include <string>
#include <string_view>

namespace glasshead::server {

struct Answer {
  bool is_ok = false;
  std::string bytes;  // or, not ok, {"problems":[{"where":...,"what":...}]}
};

// Deeper than any request needs to be.
inline constexpr int kMostDepth = 32;

Answer answer(const std::string& call, std::string_view body);

}  // namespace glasshead::server
