// Numbers of the compute type rounded once to a tensor's element type: nearest, ties to even. From
// f32 to 16 bits by a few integer operations and no branch, so that compilers make vectors of a
// row. The bits are those of store_element (glasshead/tensor.h), the one quiet NaN included; only
// where no type changes a NaN stays the one it is.
//
//   store_run(row, to.data, to.dtype, offset, to.strides[3], d_v);
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "glasshead/tensor.h"

namespace glasshead {

inline std::uint16_t narrow_bfloat(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  // Half of the last place kept, less one where an even number stays: a carry rounds up.
  const std::uint32_t rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
  return static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? 0x7fc0U : rounded);
}

inline std::uint16_t narrow_half(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t size = bits & 0x7fffffffU;
  // The exponent's bias goes from 127 to 15; 13 bits go, rounded as above. From 65,520 on the carry
  // makes infinity, and what lies further above is infinity by decree.
  const std::uint32_t normal = (size - (112U << 23) + 0xfffU + (size >> 13 & 1U)) >> 13;
  // Beside 1/2 the last place of a float is 2^-24, that of a subnormal half: adding rounds.
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5F) - 0x3f000000U;
  std::uint32_t half = size < 0x38800000U ? subnormal : normal;  // below 2^-14
  half = size >= 0x47800000U ? 0x7c00U : half;                   // from 65,536 on
  half |= sign;
  return static_cast<std::uint16_t>(size > 0x7f800000U ? 0x7e00U : half);
}

// Elements offset, offset + step, ... of the array = from[0], from[1], ..., from[count - 1].
template <class T>
void store_run(const T* from, void* data, DType type, index_t offset, index_t step, index_t count) {
  const auto store = [&](auto* to, const auto& narrow) {
    to += offset;
    if (step == 1) {
      for (index_t n = 0; n < count; ++n) to[n] = narrow(from[n]);
    } else {
      for (index_t n = 0; n < count; ++n) to[n * step] = narrow(from[n]);
    }
  };
  if (type == dtype_of<T>()) return store(static_cast<T*>(data), [](T x) { return x; });
  if constexpr (std::is_same_v<T, float>) {
    if (type == DType::bf16)
      return store(static_cast<bf16*>(data), [](float x) { return bf16{narrow_bfloat(x)}; });
    if (type == DType::f16)
      return store(static_cast<f16*>(data), [](float x) { return f16{narrow_half(x)}; });
  }
  for (index_t n = 0; n < count; ++n)
    store_element(data, type, offset + n * step, static_cast<double>(from[n]));
}

}  // namespace glasshead
