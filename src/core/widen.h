// 16-bit floats widened exactly by a few integer operations and no branch, so that compilers make
// vectors of a row. The bits of a NaN may differ from those of widen (glasshead/tensor.h); it stays
// a NaN.
//
//   load_run(q.data, q.dtype, offset, q.strides[3], d_k, row);
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "glasshead/tensor.h"

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

// to[n] = the element at offset + n * step of an array of `type`, for n < count: exact, or f64
// rounded once to f32.
template <class T>
void load_run(const void* data, DType type, index_t offset, index_t step, index_t count, T* to) {
  const auto load = [&]<class Stored>(const Stored*, const auto& widen_one) {
    constexpr auto kSize = static_cast<index_t>(sizeof(Stored));
    const auto* const first = static_cast<const unsigned char*>(data) + offset * kSize;
    const auto at = [&](index_t n) {
      Stored x;
      std::memcpy(&x, first + n * kSize, sizeof(Stored));
      return static_cast<T>(widen_one(x));
    };
    if (step == 1) {
      for (index_t n = 0; n < count; ++n) to[n] = at(n);
    } else {
      for (index_t n = 0; n < count; ++n) to[n] = at(n * step);
    }
  };
  const auto same = [](auto x) { return x; };
  switch (type) {
    case DType::f64:
      return load(static_cast<const double*>(nullptr), same);
    case DType::f32:
      return load(static_cast<const float*>(nullptr), same);
    case DType::bf16:
      return load(static_cast<const std::uint16_t*>(nullptr), widen_bfloat);
    case DType::f16:
      return load(static_cast<const std::uint16_t*>(nullptr), widen_half);
    case DType::u8:
    case DType::i64:
      for (index_t n = 0; n < count; ++n)
        to[n] = static_cast<T>(load_element(data, type, offset + n * step));
  }
}

}  // namespace glasshead
