// UTF-8 out of bytes that arrive in parts.
#pragma once

#include <string>

namespace glasshead::text {

// Takes the characters that are whole off the front of `held`. Bytes that can no longer become one
// are U+FFFD, one for each longest beginning of a character (Unicode 16, 3.9, "U+FFFD substitution
// of maximal subparts"); what may still become one stays, or at the end is U+FFFD, too.
std::string take_characters(std::string& held, bool is_end);

}  // namespace glasshead::text
