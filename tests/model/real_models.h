// Published models, and the bits of what they give.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "glasshead/model.h"
#include "published.h"

namespace glasshead {

// Bits, so that NaN equals itself and -0 is not 0.
inline std::vector<std::uint32_t> bits_of(const View<const float, 2>& rows) {
  std::vector<std::uint32_t> bits;
  for (index_t i = 0; i < rows.shape[0]; ++i)
    for (index_t n = 0; n < rows.shape[1]; ++n)
      bits.push_back(std::bit_cast<std::uint32_t>(rows(i, n)));
  return bits;
}

inline std::vector<std::uint32_t> row_bits(const View<const float, 2>& rows, index_t row) {
  return bits_of({rows.data + row * rows.strides[0], {1, rows.shape[1]}, rows.strides});
}

}  // namespace glasshead
