// Values of flags: numbers and lists of numbers, read strictly. What cannot be read is added to the
// problems, with what would be right.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "glasshead/error.h"
#include "glasshead/tensor.h"

namespace glasshead::cli {

std::optional<double> parse_number(std::string_view text);
std::optional<index_t> parse_integer(std::string_view text);
std::optional<std::uint64_t> parse_seed(std::string_view text);

// "1,0.5,-2" and "5,3". An empty list or entry is a problem.
std::optional<std::vector<double>> parse_numbers(const std::string& flag, std::string_view text,
                                                 std::vector<Problem>& problems);
std::optional<std::vector<index_t>> parse_integers(const std::string& flag, std::string_view text,
                                                   std::vector<Problem>& problems);

// The parts of a text between commas; "" has one empty part.
std::vector<std::string_view> split_at_commas(std::string_view text);

// The shortest text that reads back as the same number of this type.
std::string number_text(double value, DType type);

std::string shape_text(const std::vector<index_t>& shape);  // "[1, 2]"

}  // namespace glasshead::cli
