#include "base/stored.h"

#include <array>
#include <bit>
#include <cstring>

#include "base/assert.h"
#include "base/blocks.h"

namespace glasshead {
namespace {

constexpr std::array<const char*, 23> kNames{"f64",  "f32",  "f16",  "bf16",    "q8_0",   "q4_0",
                                             "q4_1", "q5_0", "q5_1", "q4_k",    "q5_k",   "q6_k",
                                             "i64",  "i32",  "i16",  "i8",      "u64",    "u32",
                                             "u16",  "u8",   "bool", "f8_e4m3", "f8_e5m2"};

using Bytes = const std::byte*;

// Exact, without a branch, so that long rows of halves become vector code.
float from_f16(std::uint16_t bits) {
  constexpr float kSubnormalUnit = 0x1p-24F;
  constexpr std::uint32_t kInfinity = 0x7F800000U;
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t magnitude = bits & 0x7FFFU;
  const std::uint32_t normal = (magnitude << 13) + (112U << 23);  // the exponents' biases: 127 - 15
  const auto subnormal = std::bit_cast<std::uint32_t>(
      static_cast<float>(static_cast<int>(magnitude)) * kSubnormalUnit);
  const std::uint32_t special = (magnitude << 13) | kInfinity;
  const std::uint32_t result = magnitude >= 0x7C00U ? special
                               : magnitude < 0x400U ? subnormal
                                                    : normal;
  return std::bit_cast<float>(sign | result);
}

float f16_at(Bytes bytes) { return from_f16(blocks::load<std::uint16_t>(bytes)); }

template <Stored kType>
void dequantise_blocks(Bytes block, index_t count, float* out) {
  constexpr blocks::Size size = blocks::size(kType);
  GLASSHEAD_ASSERT(count % size.elements == 0);
  for (index_t left = count; left > 0; left -= size.elements, block += size.bytes) {
    const blocks::Factors factors = blocks::factors<kType>(block);
    const float d = from_f16(factors.d), m = from_f16(factors.m);
    for (index_t n = 0; n < size.elements / blocks::kSub; ++n, out += blocks::kSub) {
      const blocks::Quants quants = blocks::quants<kType>(block, n);
      const blocks::Scales scales = blocks::scales<kType>(block, n);
      const std::int8_t second = kType == Stored::q6_k ? scales.second : scales.first;
      for (int e = 0; e < 16; ++e)
        out[e] = blocks::element(kType, quants.q[e], d, m, scales.first, scales.second);
      for (int e = 16; e < blocks::kSub; ++e)
        out[e] = blocks::element(kType, quants.q[e], d, m, second, scales.second);
    }
  }
}

}  // namespace

const char* name(Stored type) { return kNames[static_cast<std::size_t>(type)]; }
index_t block_elements(Stored type) { return blocks::size(type).elements; }
index_t block_bytes(Stored type) { return blocks::size(type).bytes; }
bool is_number(Stored type) { return type <= Stored::q6_k; }
bool is_quantised(Stored type) { return type >= Stored::q8_0 && type <= Stored::q6_k; }

void dequantise(Stored type, const std::byte* bytes, index_t count, float* out) {
  GLASSHEAD_ASSERT(is_number(type));
  switch (type) {
    case Stored::f64:
      for (index_t n = 0; n < count; ++n)
        out[n] = static_cast<float>(blocks::load<double>(bytes + 8 * n));
      return;
    case Stored::f32:
      if (count > 0) std::memcpy(out, bytes, static_cast<std::size_t>(count) * sizeof(float));
      return;
    case Stored::f16:
      for (index_t n = 0; n < count; ++n) out[n] = f16_at(bytes + 2 * n);
      return;
    case Stored::bf16:  // the upper half of an f32
      for (index_t n = 0; n < count; ++n)
        out[n] =
            std::bit_cast<float>(std::uint32_t{blocks::load<std::uint16_t>(bytes + 2 * n)} << 16);
      return;
    case Stored::q8_0:
      return dequantise_blocks<Stored::q8_0>(bytes, count, out);
    case Stored::q4_0:
      return dequantise_blocks<Stored::q4_0>(bytes, count, out);
    case Stored::q4_1:
      return dequantise_blocks<Stored::q4_1>(bytes, count, out);
    case Stored::q5_0:
      return dequantise_blocks<Stored::q5_0>(bytes, count, out);
    case Stored::q5_1:
      return dequantise_blocks<Stored::q5_1>(bytes, count, out);
    case Stored::q4_k:
      return dequantise_blocks<Stored::q4_k>(bytes, count, out);
    case Stored::q5_k:
      return dequantise_blocks<Stored::q5_k>(bytes, count, out);
    case Stored::q6_k:
      return dequantise_blocks<Stored::q6_k>(bytes, count, out);
    default:
      GLASSHEAD_ASSERT(false);
  }
}

}  // namespace glasshead
