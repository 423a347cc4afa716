#include "nn/linear_pack.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/assert.h"
#include "core/widen.h"

namespace glasshead::nn {
namespace {

// How a form's block stands in memory, packed (linear_kernels.h) and stored (base/stored.h).
struct Layout {
  index_t elements;      // of a block along `in`
  index_t stored_bytes;  // of one output's block
  index_t head;          // bytes of a group's block before its sub-blocks of 32 elements
  index_t scales;        // bytes of a sub-block's scales
  int high;              // bits above the low four
  bool has_least;        // m beside d
};

constexpr index_t kHalves = 2 * kGroup;  // bytes of 32 f16

constexpr Layout layout(WeightForm form) {
  switch (form) {
    case WeightForm::q8_0:
      return {32, 34, kHalves, 0, 0, false};
    case WeightForm::q4_0:
      return {32, 18, kHalves, 0, 0, false};
    case WeightForm::q4_1:
      return {32, 20, 2 * kHalves, 0, 0, true};
    case WeightForm::q5_0:
      return {32, 22, kHalves, 0, 1, false};
    case WeightForm::q5_1:
      return {32, 24, 2 * kHalves, 0, 1, true};
    case WeightForm::q4_k:
      return {256, 144, 2 * kHalves, 2 * kGroup, 0, true};
    case WeightForm::q5_k:
      return {256, 176, 2 * kHalves, 2 * kGroup, 1, true};
    case WeightForm::q6_k:
      return {256, 210, kHalves, 2 * kGroup, 2, false};
    case WeightForm::bf16:
    case WeightForm::f16:
      return {1, 2, 0, 0, 0, false};
    case WeightForm::f32:
      break;
  }
  return {1, 4, 0, 0, 0, false};
}

bool is_quantised_form(WeightForm form) { return layout(form).elements > 1; }

index_t sub_bytes(WeightForm form) {
  const Layout is = layout(form);
  return form == WeightForm::q8_0 ? 32 * kGroup : is.scales + (4 * is.high + 16) * kGroup;
}
index_t block_bytes_of(WeightForm form) {
  const Layout is = layout(form);
  if (!is_quantised_form(form)) return is.stored_bytes * kGroup;
  return is.head + is.elements / 32 * sub_bytes(form);
}

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}
std::uint8_t byte_at(const std::byte* from) { return std::to_integer<std::uint8_t>(*from); }

// The quants of one sub-block of 32 elements of one output, as numbers of up to 8 bits.
struct Quants {
  std::uint8_t q[32];
};

// --- from the stored block ---

// Sub-block n of a block at `from`.
template <WeightForm kForm>
Quants stored_quants(const std::byte* from, index_t n) {
  Quants quants;
  const auto split = [&](const std::byte* bytes) {  // low nibbles first, then high ones
    for (int j = 0; j < 16; ++j) {
      const std::uint8_t both = byte_at(bytes + j);
      quants.q[j] = both & 15U;
      quants.q[j + 16] = both >> 4;
    }
  };
  const auto add_bits = [&](std::uint32_t bits) {
    for (int e = 0; e < 32; ++e)
      quants.q[e] = static_cast<std::uint8_t>(quants.q[e] | (bits >> e & 1U) << 4);
  };
  switch (kForm) {
    case WeightForm::q4_0:
      split(from + 2);
      break;
    case WeightForm::q4_1:
      split(from + 4);
      break;
    case WeightForm::q5_0:
      split(from + 6);
      add_bits(load<std::uint32_t>(from + 2));
      break;
    case WeightForm::q5_1:
      split(from + 8);
      add_bits(load<std::uint32_t>(from + 4));
      break;
    case WeightForm::q8_0:
      std::memcpy(quants.q, from + 2, 32);
      break;
    case WeightForm::q4_k:
    case WeightForm::q5_k: {
      const bool has_high = kForm == WeightForm::q5_k;
      const std::byte* const low = from + (has_high ? 48 : 16) + n / 2 * 32;
      for (int e = 0; e < 32; ++e) {
        const std::uint32_t four = byte_at(low + e) >> (n % 2 * 4) & 15U;
        const std::uint32_t fifth = has_high ? byte_at(from + 16 + e) >> n & 1U : 0U;
        quants.q[e] = static_cast<std::uint8_t>(four | fifth << 4);
      }
      break;
    }
    case WeightForm::q6_k: {
      const index_t half = n / 4, r = n % 4;  // element 32 r + l of a half
      for (int l = 0; l < 32; ++l) {
        const std::uint8_t both = byte_at(from + half * 64 + l + 32 * (r & 1));
        const std::uint32_t four = r < 2 ? both & 15U : both >> 4;
        const std::uint32_t two = byte_at(from + 128 + half * 32 + l) >> (2 * r) & 3U;
        quants.q[l] = static_cast<std::uint8_t>(four | two << 4);
      }
      break;
    }
    case WeightForm::f32:
    case WeightForm::bf16:
    case WeightForm::f16:
      break;
  }
  return quants;
}

// The scales of sub-block n of a K block: sc and m of Q4_K and Q5_K, sc of both halves of Q6_K.
struct Scales {
  std::int8_t first, second;
};
template <WeightForm kForm>
Scales stored_scales(const std::byte* from, index_t n) {
  if constexpr (kForm == WeightForm::q6_k) {
    const std::byte* const sc = from + 192 + 2 * n;
    return {load<std::int8_t>(sc), load<std::int8_t>(sc + 1)};
  }
  const auto s = [&](index_t j) -> std::uint32_t { return byte_at(from + 4 + j); };
  const std::uint32_t sc = n < 4 ? s(n) & 63U : (s(n + 4) & 15U) | (s(n - 4) >> 6) << 4;
  const std::uint32_t m = n < 4 ? s(n + 4) & 63U : s(n + 4) >> 4 | (s(n) >> 6) << 4;
  return {static_cast<std::int8_t>(sc), static_cast<std::int8_t>(m)};
}

// --- into the packed block, and out of it ---

// The place of element e's bits above the low four: word and shift.
struct HighPlace {
  index_t word;
  int shift;
};
HighPlace high_place(int bits, int e) {
  const int series = 2 * (e / 8) + e % 2, byte = e % 8 / 2;
  if (bits == 1) return {0, series + 8 * byte};
  return {series / 4, 2 * (series % 4) + 8 * byte};
}

// The low nibbles of eight bytes, side by side.
std::uint32_t squeezed(std::uint64_t bytes) {
  bytes &= 0x0F0F0F0F0F0F0F0FU;
  bytes = (bytes | bytes >> 4) & 0x00FF00FF00FF00FFU;
  bytes = (bytes | bytes >> 8) & 0x0000FFFF0000FFFFU;
  return static_cast<std::uint32_t>(bytes | bytes >> 16);
}

// Where a stored block of four bits and one scale has its quants, elements j and j + 16 in byte j;
// 0 for the other forms.
constexpr index_t nibbles_at(WeightForm form) {
  return form == WeightForm::q4_0 ? 2 : form == WeightForm::q4_1 ? 4 : 0;
}

void put_nibbles(const std::byte* from, std::byte* to) {
  for (index_t n = 0; n < 2; ++n) {
    const auto bytes = load<std::uint64_t>(from + 8 * n);
    store(to + n * 4 * kGroup, squeezed(bytes));
    store(to + (n + 2) * 4 * kGroup, squeezed(bytes >> 4));
  }
}

template <WeightForm kForm>
void put_quants(const Quants& quants, std::byte* sub, index_t lane) {
  constexpr Layout is = layout(kForm);
  if (kForm == WeightForm::q8_0) {
    for (int e = 0; e < 32; ++e) sub[e * kGroup + lane] = std::byte{quants.q[e]};
    return;
  }
  std::uint32_t low[4], high[2] = {};
  for (int n = 0; n < 4; ++n) {
    std::uint64_t eight;
    std::memcpy(&eight, quants.q + 8 * n, sizeof eight);
    low[n] = squeezed(eight);
  }
  for (int e = 0; e < 32 && is.high != 0; ++e) {
    const HighPlace place = high_place(is.high, e);
    high[place.word] |= static_cast<std::uint32_t>(quants.q[e] >> 4) << place.shift;
  }
  std::byte* to = sub + is.scales + 4 * lane;
  for (int n = 0; n < is.high; ++n, to += 4 * kGroup) store(to, high[n]);
  for (int n = 0; n < 4; ++n, to += 4 * kGroup) store(to, low[n]);
}

std::uint8_t quant_at(WeightForm form, const std::byte* sub, index_t lane, int e) {
  const Layout is = layout(form);
  if (form == WeightForm::q8_0) return byte_at(sub + e * kGroup + lane);
  const std::byte* const words = sub + is.scales + 4 * lane;
  const auto word = [&](index_t n) { return load<std::uint32_t>(words + n * 4 * kGroup); };
  std::uint32_t q = word(is.high + e / 8) >> (4 * (e % 8)) & 15U;
  if (is.high != 0) {
    const HighPlace place = high_place(is.high, e);
    q |= (word(place.word) >> place.shift & ((1U << is.high) - 1U)) << 4;
  }
  return static_cast<std::uint8_t>(q);
}

// One output's block.
template <WeightForm kForm>
void put_block(const std::byte* from, std::byte* block, index_t lane) {
  constexpr Layout is = layout(kForm);
  constexpr index_t d_at =
      kForm == WeightForm::q6_k ? 208 : 0;  // where the stored block has its f16 d
  store(block + 2 * lane, load<std::uint16_t>(from + d_at));
  if (is.has_least) store(block + kHalves + 2 * lane, load<std::uint16_t>(from + d_at + 2));
  std::byte* sub = block + is.head;
  if constexpr (nibbles_at(kForm) != 0)
    return put_nibbles(from + nibbles_at(kForm), sub + 4 * lane);
  for (index_t n = 0; n < is.elements / 32; ++n, sub += sub_bytes(kForm)) {
    put_quants<kForm>(stored_quants<kForm>(from, n), sub, lane);
    if constexpr (is.scales != 0) {
      const Scales scales = stored_scales<kForm>(from, n);
      store(sub + lane, scales.first);
      store(sub + kGroup + lane, scales.second);
    }
  }
}

// Whether the block's factors, d and m of its outputs, are finite.
template <WeightForm kForm>
bool has_finite_factors(const std::byte* block) {
  std::uint16_t infinite = 0;
  for (index_t n = 0; n < layout(kForm).head / 2; ++n)
    infinite |=
        static_cast<std::uint16_t>((load<std::uint16_t>(block + 2 * n) & 0x7c00U) == 0x7c00U);
  return infinite == 0;
}

template <WeightForm kForm>
bool pack_blocks(const StoredMatrix& matrix, index_t first, index_t count, std::byte* data) {
  constexpr Layout is = layout(kForm);
  const index_t blocks = matrix.in / is.elements;
  bool is_plain = true;
  for (index_t o0 = first * kGroup; o0 < (first + count) * kGroup; o0 += kGroup) {
    const index_t lanes = std::min(kGroup, matrix.out - o0);
    for (index_t n = 0; n < blocks; ++n, data += block_bytes_of(kForm)) {
      if (lanes < kGroup) std::memset(data, 0, static_cast<std::size_t>(block_bytes_of(kForm)));
      for (index_t lane = 0; lane < lanes; ++lane)
        put_block<kForm>(matrix.data + ((o0 + lane) * blocks + n) * is.stored_bytes, data, lane);
      is_plain &= has_finite_factors<kForm>(data);
    }
  }
  return is_plain;
}

// Element e of a block by its formula, each operation rounded to f32.
float block_element(WeightForm form, const std::byte* block, index_t lane, int e) {
  const Layout is = layout(form);
  const float d = widen_half(load<std::uint16_t>(block + 2 * lane));
  const std::byte* const sub = block + is.head + e / 32 * sub_bytes(form);
  const std::uint8_t bits = quant_at(form, sub, lane, e % 32);
  const auto q = static_cast<float>(bits);
  const float m = is.has_least ? widen_half(load<std::uint16_t>(block + kHalves + 2 * lane)) : 0;
  switch (form) {
    case WeightForm::q8_0:
      return static_cast<float>(static_cast<std::int8_t>(bits)) * d;
    case WeightForm::q4_0:
      return (q - 8) * d;
    case WeightForm::q5_0:
      return (q - 16) * d;
    case WeightForm::q4_k:
    case WeightForm::q5_k: {
      const auto sc = static_cast<float>(load<std::int8_t>(sub + lane));
      const auto sm = static_cast<float>(load<std::int8_t>(sub + kGroup + lane));
      return d * sc * q - m * sm;
    }
    case WeightForm::q6_k: {
      const auto sc = static_cast<float>(load<std::int8_t>(sub + e % 32 / 16 * kGroup + lane));
      return d * sc * (q - 32);
    }
    default:
      break;
  }
  return q * d + m;
}

// --- single elements ---

// From memory as From into memory as To, 32 outputs at a time; sixteen elements of each, so that
// what is read stays in the first cache whatever the distance from row to row.
template <class From, class To>
bool pack_elements(const StoredMatrix& matrix, index_t first, index_t count, std::byte* data) {
  constexpr index_t kRun = 16;
  const index_t out_step = matrix.is_transposed ? 1 : matrix.in;
  const index_t in_step = matrix.is_transposed ? matrix.out : 1;
  for (index_t o0 = first * kGroup; o0 < (first + count) * kGroup; o0 += kGroup)
    for (index_t e0 = 0; e0 < matrix.in; e0 += kRun) {
      const index_t run = std::min(kRun, matrix.in - e0);
      for (index_t lane = 0; lane < kGroup; ++lane) {
        const std::byte* from = matrix.data + ((o0 + lane) * out_step + e0 * in_step) *
                                                  static_cast<index_t>(sizeof(From));
        std::byte* to = data + lane * static_cast<index_t>(sizeof(To));
        for (index_t e = 0; e < run; ++e) {
          store(to, o0 + lane < matrix.out ? static_cast<To>(load<From>(from)) : To{});
          from += in_step * static_cast<index_t>(sizeof(From));
          to += kGroup * static_cast<index_t>(sizeof(To));
        }
      }
      data += run * kGroup * static_cast<index_t>(sizeof(To));
    }
  return true;
}

float element_at(WeightForm form, const std::byte* at) {
  if (form == WeightForm::bf16) return widen_bfloat(load<std::uint16_t>(at));
  if (form == WeightForm::f16) return widen_half(load<std::uint16_t>(at));
  return load<float>(at);
}

}  // namespace

WeightForm form_of(Stored type) {
  switch (type) {
    case Stored::bf16:
      return WeightForm::bf16;
    case Stored::f16:
      return WeightForm::f16;
    case Stored::q8_0:
      return WeightForm::q8_0;
    case Stored::q4_0:
      return WeightForm::q4_0;
    case Stored::q4_1:
      return WeightForm::q4_1;
    case Stored::q5_0:
      return WeightForm::q5_0;
    case Stored::q5_1:
      return WeightForm::q5_1;
    case Stored::q4_k:
      return WeightForm::q4_k;
    case Stored::q5_k:
      return WeightForm::q5_k;
    case Stored::q6_k:
      return WeightForm::q6_k;
    default:
      GLASSHEAD_ASSERT(type == Stored::f32 || type == Stored::f64);
      return WeightForm::f32;
  }
}

index_t form_elements(WeightForm form) { return layout(form).elements; }
index_t groups_of(index_t out) { return (out + kGroup - 1) / kGroup; }
index_t group_bytes(WeightForm form, index_t in) {
  return in / layout(form).elements * block_bytes_of(form);
}

bool pack(const StoredMatrix& matrix, index_t first, index_t count, std::byte* data) {
  const WeightForm form = form_of(matrix.type);
  GLASSHEAD_ASSERT(matrix.in % layout(form).elements == 0);
  GLASSHEAD_ASSERT(!matrix.is_transposed || !is_quantised_form(form));
  switch (form) {
    case WeightForm::f32:
      break;
    case WeightForm::bf16:
    case WeightForm::f16:
      return pack_elements<std::uint16_t, std::uint16_t>(matrix, first, count, data);
    case WeightForm::q8_0:
      return pack_blocks<WeightForm::q8_0>(matrix, first, count, data);
    case WeightForm::q4_0:
      return pack_blocks<WeightForm::q4_0>(matrix, first, count, data);
    case WeightForm::q4_1:
      return pack_blocks<WeightForm::q4_1>(matrix, first, count, data);
    case WeightForm::q5_0:
      return pack_blocks<WeightForm::q5_0>(matrix, first, count, data);
    case WeightForm::q5_1:
      return pack_blocks<WeightForm::q5_1>(matrix, first, count, data);
    case WeightForm::q4_k:
      return pack_blocks<WeightForm::q4_k>(matrix, first, count, data);
    case WeightForm::q5_k:
      return pack_blocks<WeightForm::q5_k>(matrix, first, count, data);
    case WeightForm::q6_k:
      return pack_blocks<WeightForm::q6_k>(matrix, first, count, data);
  }
  if (matrix.type == Stored::f64) return pack_elements<double, float>(matrix, first, count, data);
  return pack_elements<std::uint32_t, std::uint32_t>(matrix, first, count, data);
}

void unpack_row(WeightForm form, const std::byte* data, index_t in, index_t o, index_t first,
                std::span<float> out) {
  const Layout is = layout(form);
  const index_t lane = o % kGroup;
  const std::byte* const group = data + o / kGroup * group_bytes(form, in);
  for (index_t n = 0; n < static_cast<index_t>(out.size()); ++n) {
    const index_t e = first + n;
    const std::byte* const block = group + e / is.elements * block_bytes_of(form);
    out[static_cast<std::size_t>(n)] =
        is_quantised_form(form)
            ? block_element(form, block, lane, static_cast<int>(e % is.elements))
            : element_at(form, block + lane * is.stored_bytes);
  }
}

}  // namespace glasshead::nn
