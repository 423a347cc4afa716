// How wide a string is on a terminal, and how foreign text is made safe to show (rule R8).
//
//   display_width("−∞") == 2, display_width("日") == 2, display_width("é" with a combining accent)
//   == 1 cut(escape_controls(token), 8)      // "so\nfar" -> "so\\nfar"; longer than 8 cells ends
//   in "…"
//
// Strings are UTF-8; a byte that is not valid UTF-8 counts as one U+FFFD and is shown as such.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace glasshead::wire {

// The code points of a string; an invalid byte becomes U+FFFD.
std::vector<std::uint32_t> code_points(std::string_view utf8);
void append_code_point(std::string& utf8, std::uint32_t point);

// Terminal cells: 0 for combining marks, 2 for East Asian wide and emoji, else 1.
int display_width(std::string_view utf8);

// Control characters, line and paragraph separators, zero-width and bidirectional controls are
// written as "\n", "\t", "\u202e"; a backslash before nothing special stays as it is.
std::string escape_controls(std::string_view utf8);

// At most `cells` wide: what does not fit is replaced by "…".
std::string cut(std::string_view utf8, int cells);

std::string pad_left(std::string_view utf8, int cells);   // right-aligned
std::string pad_right(std::string_view utf8, int cells);  // left-aligned

// The line as lines of at most `cells`, as far as its words allow, all but the first indented by
// `hang`. They end before an `arrow` between spaces where there is one to end before, else at any
// space.
std::vector<std::string> wrapped(std::string_view line, int cells, int hang,
                                 std::string_view arrow = "→");

// The signs of our own that ASCII lacks: "·" is ".", "−∞" "-inf", "—" "-", "′" "'", "×" "x", ...
// Other characters (a reader's own labels) are written as "\u00e9".
std::string to_ascii(std::string_view utf8);

}  // namespace glasshead::wire
