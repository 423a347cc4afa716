#include "base/fail.h"

#include <utility>

namespace glasshead {
namespace {

std::string message(const std::string& function, const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) {
    if (!text.empty()) text += '\n';
    text += function + ": " + problem.where + ": " + problem.what;
  }
  return text;
}

}  // namespace

Error::Error(ErrorKind kind, std::string function, std::vector<Problem> problems)
    : std::runtime_error(message(function, problems)),
      kind_(kind),
      function_(std::move(function)),
      problems_(std::move(problems)) {}

#ifdef __cpp_exceptions

void fail(ErrorKind kind, std::string function, std::vector<Problem> problems) {
  switch (kind) {
    case ErrorKind::shape:
      throw ShapeError(std::move(function), std::move(problems));
    case ErrorKind::option:
      throw OptionError(std::move(function), std::move(problems));
    case ErrorKind::format:
      throw FormatError(std::move(function), std::move(problems));
    case ErrorKind::io:
      throw IoError(std::move(function), std::move(problems));
  }
  __builtin_unreachable();
}

#else

// Left for the page to read after the trap (bindings/wasm).
std::string* last_failure() {
  static std::string text;
  return &text;
}

void fail(ErrorKind, std::string function, std::vector<Problem> problems) {
  *last_failure() = message(function, problems);
  __builtin_trap();
}

#endif

void fail(ErrorKind kind, std::string function, std::string where, std::string what) {
  fail(kind, std::move(function), std::vector<Problem>{{std::move(where), std::move(what)}});
}

}  // namespace glasshead
