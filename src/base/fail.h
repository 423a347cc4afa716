// The one place where the library throws. WebAssembly has no exceptions: there the problems are
// left as JSON in memory and the module traps; the page reads them and starts a fresh instance.
#pragma once

#include <string>
#include <vector>

#include "glasshead/error.h"

namespace glasshead {

[[noreturn]] void fail(ErrorKind kind, std::string function, std::vector<Problem> problems);
[[noreturn]] void fail(ErrorKind kind, std::string function, std::string where, std::string what);

#ifndef __cpp_exceptions
// What the last failure left behind: {"function":...,"problems":[{"where":...,"what":...}]}.
struct FailureText {
  unsigned size = 0;
  const char* data = nullptr;
};
const FailureText* last_failure();
#endif

}  // namespace glasshead
