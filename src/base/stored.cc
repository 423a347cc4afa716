#include "base/stored.h"

#include <array>
#include <bit>
#include <cstring>

#include "base/assert.h"

namespace glasshead {
namespace {

struct Layout {
  const char* name;
  std::int16_t elements;  // of a block
  std::int16_t bytes;     // of a block
};

constexpr std::array<Layout, 23> kLayouts{{
    {"f64", 1, 8},      {"f32", 1, 4},      {"f16", 1, 2},     {"bf16", 1, 2},   {"q8_0", 32, 34},
    {"q4_0", 32, 18},   {"q4_1", 32, 20},   {"q5_0", 32, 22},  {"q5_1", 32, 24}, {"q4_k", 256, 144},
    {"q5_k", 256, 176}, {"q6_k", 256, 210}, {"i64", 1, 8},     {"i32", 1, 4},    {"i16", 1, 2},
    {"i8", 1, 1},       {"u64", 1, 8},      {"u32", 1, 4},     {"u16", 1, 2},    {"u8", 1, 1},
    {"bool", 1, 1},     {"f8_e4m3", 1, 1},  {"f8_e5m2", 1, 1},
}};

const Layout& layout(Stored type) { return kLayouts[static_cast<std::size_t>(type)]; }

// Blocks are read byte by byte: a mapped file promises no alignment.
using Bytes = const std::byte*;

unsigned byte_at(Bytes bytes, index_t n) { return std::to_integer<unsigned>(bytes[n]); }

template <class T>
T load(Bytes bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

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

float f16_at(Bytes bytes) { return from_f16(load<std::uint16_t>(bytes)); }

float of(unsigned whole) { return static_cast<float>(static_cast<int>(whole)); }

void q8_0(Bytes block, float* out) {
  const float d = f16_at(block);
  for (int e = 0; e < 32; ++e) out[e] = static_cast<float>(load<std::int8_t>(block + 2 + e)) * d;
}

void q4_0(Bytes block, float* out) {
  const float d = f16_at(block);
  for (int j = 0; j < 16; ++j) {
    const unsigned pair = byte_at(block, 2 + j);
    out[j] = (of(pair & 15U) - 8.0F) * d;
    out[j + 16] = (of(pair >> 4) - 8.0F) * d;
  }
}

void q4_1(Bytes block, float* out) {
  const float d = f16_at(block), m = f16_at(block + 2);
  for (int j = 0; j < 16; ++j) {
    const unsigned pair = byte_at(block, 4 + j);
    out[j] = of(pair & 15U) * d + m;
    out[j + 16] = of(pair >> 4) * d + m;
  }
}

// The fifth bits: bit e of qh for element e.
unsigned five(unsigned nibble, std::uint32_t qh, int e) { return nibble | ((qh >> e) & 1U) << 4; }

void q5_0(Bytes block, float* out) {
  const float d = f16_at(block);
  const auto qh = load<std::uint32_t>(block + 2);
  for (int j = 0; j < 16; ++j) {
    const unsigned pair = byte_at(block, 6 + j);
    out[j] = (of(five(pair & 15U, qh, j)) - 16.0F) * d;
    out[j + 16] = (of(five(pair >> 4, qh, j + 16)) - 16.0F) * d;
  }
}

void q5_1(Bytes block, float* out) {
  const float d = f16_at(block), m = f16_at(block + 2);
  const auto qh = load<std::uint32_t>(block + 4);
  for (int j = 0; j < 16; ++j) {
    const unsigned pair = byte_at(block, 8 + j);
    out[j] = of(five(pair & 15U, qh, j)) * d + m;
    out[j + 16] = of(five(pair >> 4, qh, j + 16)) * d + m;
  }
}

// Scale and minimum of sub-block j of 8 of a Q4_K or Q5_K block: 6 bits each, packed into 12 bytes.
struct ScaleAndMinimum {
  unsigned scale, minimum;
};
ScaleAndMinimum six_bits(Bytes s, int j) {
  if (j < 4) return {byte_at(s, j) & 63U, byte_at(s, j + 4) & 63U};
  return {(byte_at(s, j + 4) & 15U) | (byte_at(s, j - 4) >> 6) << 4,
          (byte_at(s, j + 4) >> 4) | (byte_at(s, j) >> 6) << 4};
}

// Q4_K and, with the fifth bits in qh, Q5_K: d·scale·q - dmin·minimum.
void k_block(Bytes block, Bytes qh, Bytes nibbles, float* out) {
  const float d = f16_at(block), dmin = f16_at(block + 2);
  for (int j = 0; j < 8; ++j) {
    const auto [scale, minimum] = six_bits(block + 4, j);
    const float step = d * of(scale), least = dmin * of(minimum);
    for (int l = 0; l < 32; ++l) {
      const unsigned pair = byte_at(nibbles, 32 * (j / 2) + l);
      unsigned q = j % 2 == 0 ? pair & 15U : pair >> 4;
      if (qh != nullptr) q |= ((byte_at(qh, l) >> j) & 1U) << 4;
      out[32 * j + l] = step * of(q) - least;
    }
  }
}

void q4_k(Bytes block, float* out) { k_block(block, nullptr, block + 16, out); }
void q5_k(Bytes block, float* out) { k_block(block, block + 16, block + 48, out); }

void q6_k(Bytes block, float* out) {
  const float d = f16_at(block + 208);
  for (index_t half = 0; half < 2; ++half) {
    const Bytes ql = block + 64 * half, qh = block + 128 + 32 * half, sc = block + 192 + 8 * half;
    for (index_t r = 0; r < 4; ++r)
      for (index_t l = 0; l < 32; ++l) {
        const unsigned pair = byte_at(ql, l + 32 * (r & 1));
        const unsigned q = (r < 2 ? pair & 15U : pair >> 4) | ((byte_at(qh, l) >> (2 * r)) & 3U)
                                                                  << 4;
        const float step = d * static_cast<float>(load<std::int8_t>(sc + 2 * r + l / 16));
        out[128 * half + 32 * r + l] = step * (of(q) - 32.0F);
      }
  }
}

// One block of `elements` elements in `bytes` bytes after another.
template <int elements, int bytes>
void blocks(void (*one)(Bytes, float*), Bytes from, index_t count, float* out) {
  GLASSHEAD_ASSERT(count % elements == 0);
  for (index_t block = 0; block < count / elements; ++block)
    one(from + block * bytes, out + block * elements);
}

}  // namespace

const char* name(Stored type) { return layout(type).name; }
index_t block_elements(Stored type) { return layout(type).elements; }
index_t block_bytes(Stored type) { return layout(type).bytes; }
bool is_number(Stored type) { return type <= Stored::q6_k; }
bool is_quantised(Stored type) { return type >= Stored::q8_0 && type <= Stored::q6_k; }

void dequantise(Stored type, const std::byte* bytes, index_t count, float* out) {
  GLASSHEAD_ASSERT(is_number(type));
  switch (type) {
    case Stored::f64:
      for (index_t n = 0; n < count; ++n) out[n] = static_cast<float>(load<double>(bytes + 8 * n));
      return;
    case Stored::f32:
      if (count > 0) std::memcpy(out, bytes, static_cast<std::size_t>(count) * sizeof(float));
      return;
    case Stored::f16:
      for (index_t n = 0; n < count; ++n) out[n] = f16_at(bytes + 2 * n);
      return;
    case Stored::bf16:  // the upper half of an f32
      for (index_t n = 0; n < count; ++n)
        out[n] = std::bit_cast<float>(std::uint32_t{load<std::uint16_t>(bytes + 2 * n)} << 16);
      return;
    case Stored::q8_0:
      return blocks<32, 34>(q8_0, bytes, count, out);
    case Stored::q4_0:
      return blocks<32, 18>(q4_0, bytes, count, out);
    case Stored::q4_1:
      return blocks<32, 20>(q4_1, bytes, count, out);
    case Stored::q5_0:
      return blocks<32, 22>(q5_0, bytes, count, out);
    case Stored::q5_1:
      return blocks<32, 24>(q5_1, bytes, count, out);
    case Stored::q4_k:
      return blocks<256, 144>(q4_k, bytes, count, out);
    case Stored::q5_k:
      return blocks<256, 176>(q5_k, bytes, count, out);
    case Stored::q6_k:
      return blocks<256, 210>(q6_k, bytes, count, out);
    default:
      GLASSHEAD_ASSERT(false);
  }
}

}  // namespace glasshead
