// Which weights dropout drops: a function of the seed and of the pair alone, so that every path
// drops the same ones in any order.
#pragma once

#include <cstdint>

#include "glasshead/attention.h"

namespace glasshead {

// One round of SplitMix64 (Steele, Lea, Flood 2014): a bijection whose output bits look
// independent.
inline std::uint64_t mixed_bits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

// What multiplies the weight of (b, h, i, j): 0 with probability p, else 1/(1-p). The four numbers
// are mixed in one after the other; the top 53 bits are a uniform number in [0, 1).
inline double dropout_factor(const Dropout& dropout, index_t b, index_t h, index_t i, index_t j) {
  if (dropout.p == 0) return 1;
  std::uint64_t bits = mixed_bits(dropout.seed);
  for (index_t counter : {b, h, i, j})
    bits = mixed_bits(bits ^ static_cast<std::uint64_t>(counter));
  const double uniform = static_cast<double>(bits >> 11U) * 0x1p-53;
  return uniform < dropout.p ? 0 : 1 / (1 - dropout.p);
}

}  // namespace glasshead
