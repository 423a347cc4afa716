// fmt::format for the modules: what the library asks of it, strings and integers in {}, {1},
// {:04x}, in two kilobytes instead of twenty-five. It takes the place of the fmt library where a
// module is compiled; the bytes that come out are compared with the command's over all cases.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace fmt {

// One argument: a text, or a number and its sign.
struct Argument {
  enum class Kind : std::uint8_t { text, number } kind = Kind::text;
  bool is_negative = false;
  std::string_view text;
  std::uint64_t magnitude = 0;

  Argument(std::string_view x) : text(x) {}    // NOLINT(google-explicit-constructor)
  Argument(const char* x) : text(x) {}         // NOLINT(google-explicit-constructor)
  Argument(const std::string& x) : text(x) {}  // NOLINT(google-explicit-constructor)
  template <std::integral Integer>
  Argument(Integer x)  // NOLINT(google-explicit-constructor)
      : kind(Kind::number),
        is_negative(std::is_signed_v<Integer> && x < 0),
        magnitude(is_negative ? 0 - static_cast<std::uint64_t>(x) : static_cast<std::uint64_t>(x)) {
    static_assert(!std::is_same_v<Integer, char> && !std::is_same_v<Integer, bool>);
  }
};

std::string format_arguments(std::string_view pattern, std::initializer_list<Argument> arguments);

template <class... Arguments>
std::string format(std::string_view pattern, const Arguments&... arguments) {
  return format_arguments(pattern, {Argument(arguments)...});
}

}  // namespace fmt
