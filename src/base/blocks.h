// The blocks of quantised numbers (stored.h) taken apart. Every form is of sub-blocks of 32 quants:
//
//   const blocks::Factors f = blocks::factors<Stored::q4_k>(block);
//   const blocks::Scales s = blocks::scales<Stored::q4_k>(block, n);       // sub-block n of 8
//   const blocks::Quants quants = blocks::quants<Stored::q4_k>(block, n);
//   blocks::element(Stored::q4_k, quants.q[e], d, m, e < 16 ? s.first : s.second, s.second);
//
// Blocks are read byte by byte: a mapped file promises no alignment. Formats: ggml-org/ggml
// src/ggml-common.h and ggml-quants.c.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/stored.h"

namespace glasshead::blocks {

inline constexpr int kSub = 32;  // quants of a sub-block

struct Size {
  index_t elements, bytes;
};
// Of one block; what is not quantised has blocks of one element.
constexpr Size size(Stored type) {
  switch (type) {
    case Stored::q8_0:
      return {32, 34};  // f16 d, 32 i8
    case Stored::q4_0:
      return {32, 18};  // f16 d, 16 bytes of nibbles
    case Stored::q4_1:
      return {32, 20};  // f16 d, f16 m, nibbles
    case Stored::q5_0:
      return {32, 22};  // f16 d, u32 of fifth bits, nibbles
    case Stored::q5_1:
      return {32, 24};  // f16 d, f16 m, u32 of fifth bits, nibbles
    case Stored::q4_k:
      return {256, 144};  // f16 d, f16 dmin, 12 bytes of scales, 128 of nibbles
    case Stored::q5_k:
      return {256, 176};  // f16 d, f16 dmin, 12 bytes of scales, 32 of fifth bits, 128 of nibbles
    case Stored::q6_k:
      return {256, 210};  // 128 bytes of nibbles, 64 of bits 4 and 5, 16 i8 scales, f16 d
    case Stored::f64:
    case Stored::i64:
    case Stored::u64:
      return {1, 8};
    case Stored::f32:
    case Stored::i32:
    case Stored::u32:
      return {1, 4};
    case Stored::f16:
    case Stored::bf16:
    case Stored::i16:
    case Stored::u16:
      return {1, 2};
    default:
      return {1, 1};
  }
}
constexpr bool is_super(Stored type) { return size(type).elements == 256; }
// Whether a block has a second factor: m, or the K forms' dmin.
constexpr bool has_least(Stored type) {
  return type == Stored::q4_1 || type == Stored::q5_1 || type == Stored::q4_k ||
         type == Stored::q5_k;
}

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
inline std::uint8_t byte_at(const std::byte* from) { return std::to_integer<std::uint8_t>(*from); }

// d and m as f16; m 0 where there is none.
struct Factors {
  std::uint16_t d = 0, m = 0;
};
template <Stored kType>
Factors factors(const std::byte* block) {
  constexpr index_t at = kType == Stored::q6_k ? 208 : 0;
  return {load<std::uint16_t>(block + at),
          has_least(kType) ? load<std::uint16_t>(block + at + 2) : std::uint16_t{0}};
}

// Of sub-block n of a K form. Q4_K, Q5_K: scale and minimum, of 6 bits; Q6_K: the scales of both
// halves.
struct Scales {
  std::int8_t first = 0, second = 0;
};
template <Stored kType>
Scales scales(const std::byte* block, index_t n) {
  if constexpr (!is_super(kType)) {
    return {};
  } else if constexpr (kType == Stored::q6_k) {
    const std::byte* const sc = block + 192 + 2 * n;
    return {load<std::int8_t>(sc), load<std::int8_t>(sc + 1)};
  } else {
    const auto s = [&](index_t j) -> std::uint32_t { return byte_at(block + 4 + j); };
    const std::uint32_t sc = n < 4 ? s(n) & 63U : (s(n + 4) & 15U) | (s(n - 4) >> 6) << 4;
    const std::uint32_t m = n < 4 ? s(n + 4) & 63U : s(n + 4) >> 4 | (s(n) >> 6) << 4;
    return {static_cast<std::int8_t>(sc), static_cast<std::int8_t>(m)};
  }
}

// Whole numbers of up to 8 bits; of Q8_0 the bytes of an i8.
struct Quants {
  std::uint8_t q[kSub];
};
template <Stored kType>
Quants quants(const std::byte* block, index_t n) {
  Quants quants;
  [[maybe_unused]] const auto split =
      [&](const std::byte* bytes) {  // low nibbles first, then high ones
        for (int j = 0; j < 16; ++j) {
          const std::uint8_t both = byte_at(bytes + j);
          quants.q[j] = both & 15U;
          quants.q[j + 16] = both >> 4;
        }
      };
  [[maybe_unused]] const auto add_bits = [&](std::uint32_t bits) {
    for (int e = 0; e < kSub; ++e)
      quants.q[e] = static_cast<std::uint8_t>(quants.q[e] | (bits >> e & 1U) << 4);
  };
  if constexpr (kType == Stored::q8_0) {
    std::memcpy(quants.q, block + 2, kSub);
  } else if constexpr (kType == Stored::q4_0) {
    split(block + 2);
  } else if constexpr (kType == Stored::q4_1) {
    split(block + 4);
  } else if constexpr (kType == Stored::q5_0) {
    split(block + 6);
    add_bits(load<std::uint32_t>(block + 2));
  } else if constexpr (kType == Stored::q5_1) {
    split(block + 8);
    add_bits(load<std::uint32_t>(block + 4));
  } else if constexpr (kType == Stored::q6_k) {
    const index_t half = n / 4, r = n % 4;  // element 32 r + l of a half
    for (int l = 0; l < kSub; ++l) {
      const std::uint8_t both = byte_at(block + half * 64 + l + 32 * (r & 1));
      const std::uint32_t four = r < 2 ? both & 15U : both >> 4;
      const std::uint32_t two = byte_at(block + 128 + half * 32 + l) >> (2 * r) & 3U;
      quants.q[l] = static_cast<std::uint8_t>(four | two << 4);
    }
  } else {
    constexpr bool has_high = kType == Stored::q5_k;
    const std::byte* const low = block + (has_high ? 48 : 16) + n / 2 * 32;
    for (int e = 0; e < kSub; ++e) {
      const std::uint32_t four = byte_at(low + e) >> (n % 2 * 4) & 15U;
      const std::uint32_t fifth = has_high ? byte_at(block + 16 + e) >> n & 1U : 0U;
      quants.q[e] = static_cast<std::uint8_t>(four | fifth << 4);
    }
  }
  return quants;
}

// The number that a quant is, each operation rounded to f32. d and m widened; scale and least:
// those of its sub-block, in a K form.
inline float element(Stored type, std::uint8_t quant, float d, float m, std::int8_t scale,
                     std::int8_t least) {
  const auto q = static_cast<float>(quant);
  switch (type) {
    case Stored::q8_0:
      return static_cast<float>(static_cast<std::int8_t>(quant)) * d;
    case Stored::q4_0:
      return (q - 8) * d;
    case Stored::q5_0:
      return (q - 16) * d;
    case Stored::q4_k:
    case Stored::q5_k:
      return d * static_cast<float>(scale) * q - m * static_cast<float>(least);
    case Stored::q6_k:
      return d * static_cast<float>(scale) * (q - 32);
    default:  // q4_1, q5_1
      return q * d + m;
  }
}

}  // namespace glasshead::blocks
