#include "formats/shown.h"

#include <cstddef>

namespace glasshead::formats {

std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string result = "'";
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    // Bytes beyond ASCII are shown as hex: a cut or broken sequence must not reach a terminal.
    if (byte >= 0x20 && byte < 0x7f) {
      result += c;
    } else {
      result += "\\x";
      result += kHex[byte >> 4];
      result += kHex[byte & 15];
    }
  }
  result += text.size() > kLongest ? "...'" : "'";
  return result;
}

}  // namespace glasshead::formats
