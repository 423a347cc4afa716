// What a fuzz target may run: a run must be a matter of milliseconds, or nothing is ever explored.
#pragma once

#include <cstddef>

#include "wire/case.h"

namespace glasshead::fuzz {

// A few thousand pairs, short vectors.
inline bool is_small(const wire::Case& c) {
  constexpr std::size_t kMostRows = 64;
  constexpr std::size_t kMostNumbers = 4096;
  constexpr index_t kMostTokens = 8;
  std::size_t numbers = 0;
  for (const auto& input : c.inputs) numbers += input.second.values.size();
  return numbers <= kMostNumbers && c.query_labels.size() <= kMostRows &&
         c.key_labels.size() <= kMostRows && c.generate <= kMostTokens &&
         c.network.blocks.size() <= 4;
}

}  // namespace glasshead::fuzz
