// Products and sums of sizes that came from a file or a caller: nullopt instead of overflow.
#pragma once

#include <optional>
#include <span>

#include "glasshead/tensor.h"

namespace glasshead {

inline std::optional<index_t> checked_mul(index_t a, index_t b) {
  index_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

inline std::optional<index_t> checked_add(index_t a, index_t b) {
  index_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

// The number of elements of a shape; nullopt if an extent is negative or the product overflows.
inline std::optional<index_t> checked_size(std::span<const index_t> shape) {
  index_t size = 1;
  bool has_zero = false;
  for (const index_t extent : shape) {
    if (extent < 0) return std::nullopt;
    if (extent == 0)
      has_zero = true;
    else if (__builtin_mul_overflow(size, extent, &size))
      return std::nullopt;
  }
  return has_zero ? 0 : size;
}

}  // namespace glasshead
