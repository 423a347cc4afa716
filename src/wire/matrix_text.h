// Numbers as somebody types or pastes them.
//
//   parse_matrix("--weights", "1 0 0; .5 .5 0", "numbers", decimals, problems);  // 2x3; 1 decimal
//   parse_nested("--out", "[[1, 0], [.5, .5]]", "numbers", decimals, problems);  // 2x2
//
// Both: `decimals` becomes the most digits after a point that a number has, at most 17, and is
// untouched where there is none. nullopt, and a problem `where`, for text of other words (what is
// `needed` there is said), for what has no shape, and for nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "glasshead/error.h"
#include "glasshead/trace.h"

namespace glasshead::wire {

// Whether a text is parse_nested's: it has brackets, and no ; between rows.
bool is_nested(std::string_view text);

// [rows, columns]: numbers between spaces or commas, rows between ; or line ends; brackets are
// passed over.
std::optional<TraceTensor> parse_matrix(const std::string& where, const std::string& text,
                                        std::string_view needed, std::optional<int>& decimals,
                                        std::vector<Problem>& problems);
// As JSON, NumPy and torch write it: the brackets say the shape, of four axes at most.
std::optional<TraceTensor> parse_nested(const std::string& where, const std::string& text,
                                        std::string_view needed, std::optional<int>& decimals,
                                        std::vector<Problem>& problems);

}  // namespace glasshead::wire
