// UTF-8 as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace glasshead::wire {

// The length of the UTF-8 character that text, not empty, begins with: 0 if there is none. Overlong
// forms, surrogates and numbers beyond U+10FFFF are none (Unicode 15, table 3-7).
std::size_t utf8_length(std::string_view text);

// Appends the character U+point, at most U+10FFFF.
void append_utf8(std::string& text, std::uint32_t point);

}  // namespace glasshead::wire
