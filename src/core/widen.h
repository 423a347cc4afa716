// 16-bit floats widened exactly by a few integer operations and no branch, so that compilers make
// vectors of a row. The bits of a NaN may differ from those of widen (glasshead/tensor.h); it stays
// a NaN.
#pragma once

#include <bit>
#include <cstdint>

namespace glasshead {

inline float widen_half(std::uint16_t h) {
  const auto sign = static_cast<std::uint32_t>(h & 0x8000U) << 16;
  const auto size = static_cast<std::uint32_t>(h & 0x7fffU) << 13;
  // The exponent's bias goes from 15 to 127 by an exact product, which also makes subnormal numbers
  // normal. All ones in the exponent stay all ones.
  const auto wide = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) * 0x1p112F);
  const std::uint32_t infinite = size >= 0x0f800000U ? 0x7f800000U : 0U;
  return std::bit_cast<float>(sign | wide | infinite);
}

inline float widen_bfloat(std::uint16_t h) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(h) << 16);
}

}  // namespace glasshead
