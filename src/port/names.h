// What their file calls our places: a JSON object {"decoder.{}.self.q": "h.{}.query"}, in which {}
// or
// * stands for the number of a layer.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "glasshead/tensor.h"

namespace glasshead::port {

using Names =
    std::vector<std::pair<std::string, std::string>>;  // ours, theirs; in the file's order

// What is wrong with the bytes; empty: nothing, and `names` holds what they say, each of ours once.
// Takes time and memory in proportion to the bytes.
std::string parse_names(std::span<const std::byte> bytes, Names& names);

bool has_hole(const std::string& pattern);
std::string filled(const std::string& pattern, index_t layer);  // no hole is left

}  // namespace glasshead::port
