#include "wasm/fmt/format.h"

namespace fmt {
namespace {

// {:06}, {:04x}, {:04X}: width filled with zeros, base.
struct Spec {
  std::size_t width = 0;
  unsigned base = 10;
  bool is_upper = false;
};

Spec read_spec(std::string_view text) {
  Spec spec;
  for (const char c : text) {
    if (c >= '0' && c <= '9') spec.width = 10 * spec.width + static_cast<std::size_t>(c - '0');
    if (c == 'x' || c == 'X') spec.base = 16;
    if (c == 'X') spec.is_upper = true;
  }
  return spec;
}

void add(std::string& out, const Argument& argument, const Spec& spec) {
  if (argument.kind == Argument::Kind::text) {
    out += argument.text;
    return;
  }
  const char* const digits = spec.is_upper ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string number;
  std::uint64_t left = argument.magnitude;
  do {
    number.insert(number.begin(), digits[left % spec.base]);
    left /= spec.base;
  } while (left > 0);
  const std::size_t sign = argument.is_negative ? 1 : 0;
  if (number.size() + sign < spec.width) number.insert(0, spec.width - sign - number.size(), '0');
  if (argument.is_negative) out += '-';
  out += number;
}

}  // namespace

std::string format_arguments(std::string_view pattern, std::initializer_list<Argument> arguments) {
  std::string out;
  std::size_t next = 0;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const char c = pattern[at];
    if (c != '{' && c != '}') {
      out += c;
      continue;
    }
    if (at + 1 < pattern.size() && pattern[at + 1] == c) {  // {{ and }}
      out += c;
      ++at;
      continue;
    }
    const std::size_t end = pattern.find('}', at);
    std::string_view field = pattern.substr(at + 1, end - at - 1);
    std::size_t which = next;
    if (!field.empty() && field[0] >= '0' && field[0] <= '9')
      which = static_cast<std::size_t>(field[0] - '0');
    else
      ++next;
    const std::size_t colon = field.find(':');
    const Spec spec = read_spec(colon == std::string_view::npos ? "" : field.substr(colon + 1));
    if (which < arguments.size()) add(out, arguments.begin()[which], spec);
    at = end;
  }
  return out;
}

}  // namespace fmt
