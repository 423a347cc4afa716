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

namespace {

FailureText left_behind;

std::string quoted(const std::string& text) {
  static const char* const kHex = "0123456789abcdef";
  std::string json = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') json += '\\';
    if (byte < ' ')
      (json += "\\u00") += {kHex[byte >> 4], kHex[byte & 15]};
    else
      json += c;
  }
  return json + '"';
}

}  // namespace

const FailureText* last_failure() { return &left_behind; }

void fail(ErrorKind, std::string function, std::vector<Problem> problems) {
  std::string json = "{\"function\":" + quoted(function) + ",\"problems\":[";
  for (std::size_t n = 0; n < problems.size(); ++n) {
    json += n == 0 ? "{" : ",{";
    json +=
        "\"where\":" + quoted(problems[n].where) + ",\"what\":" + quoted(problems[n].what) + "}";
  }
  static std::string text;  // outlives the trap
  text = json + "]}";
  left_behind = {static_cast<unsigned>(text.size()), text.data()};
  __builtin_trap();
}

#endif

void fail(ErrorKind kind, std::string function, std::string where, std::string what) {
  fail(kind, std::move(function), std::vector<Problem>{{std::move(where), std::move(what)}});
}

}  // namespace glasshead
