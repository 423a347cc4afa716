// How the server says no: a status, and JSON with a code that programs can rely on.
//
//   {"code":"wrong-token","message":"..."}
//   {"code":"refused","message":"...","problems":[{"where":"attention.W_K","what":"..."}]}
#pragma once

#include <string>
#include <vector>

#include "glasshead/error.h"

namespace glasshead::server {

struct Refusal {
  int status = 500;     // of HTTP
  const char* code;     // "too-large": docs/view.md lists them
  std::string message;  // what was found, and what would be right
};

// What the request itself got wrong, field by field, stands under "problems".
std::string refusal_json(const Refusal& refusal, const std::vector<Problem>& problems = {});

}  // namespace glasshead::server
