#include "nn/linear_pack.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/assert.h"
#include "base/blocks.h"
#include "core/widen.h"

namespace glasshead::nn {
namespace {

constexpr Stored stored_of(WeightForm form) {
  switch (form) {
    case WeightForm::bf16:
      return Stored::bf16;
    case WeightForm::f16:
      return Stored::f16;
    case WeightForm::q8_0:
      return Stored::q8_0;
    case WeightForm::q4_0:
      return Stored::q4_0;
    case WeightForm::q4_1:
      return Stored::q4_1;
    case WeightForm::q5_0:
      return Stored::q5_0;
    case WeightForm::q5_1:
      return Stored::q5_1;
    case WeightForm::q4_k:
      return Stored::q4_k;
    case WeightForm::q5_k:
      return Stored::q5_k;
    case WeightForm::q6_k:
      return Stored::q6_k;
    case WeightForm::f32:
      break;
  }
  return Stored::f32;
}

// How a form's block stands in memory, packed (linear_kernels.h) and stored (base/blocks.h).
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
  const Stored type = stored_of(form);
  const blocks::Size size = blocks::size(type);
  if (size.elements == 1) return {1, size.bytes, 0, 0, 0, false};
  const bool has_least = blocks::has_least(type);
  const bool has_fifth = type == Stored::q5_0 || type == Stored::q5_1 || type == Stored::q5_k;
  return {size.elements,
          size.bytes,
          has_least ? 2 * kHalves : kHalves,
          blocks::is_super(type) ? 2 * kGroup : 0,
          type == Stored::q6_k ? 2
          : has_fifth          ? 1
                               : 0,
          has_least};
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

using blocks::byte_at;
using blocks::load;
using blocks::Quants;

template <class T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
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
  for (index_t n = 0; n < 4; ++n) {
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
  constexpr Stored kType = stored_of(kForm);
  const auto factors = blocks::factors<kType>(from);
  store(block + 2 * lane, factors.d);
  if (is.has_least) store(block + kHalves + 2 * lane, factors.m);
  std::byte* sub = block + is.head;
  if constexpr (nibbles_at(kForm) != 0)
    return put_nibbles(from + nibbles_at(kForm), sub + 4 * lane);
  for (index_t n = 0; n < is.elements / blocks::kSub; ++n, sub += sub_bytes(kForm)) {
    put_quants<kForm>(blocks::quants<kType>(from, n), sub, lane);
    if constexpr (is.scales != 0) {
      const auto scales = blocks::scales<kType>(from, n);
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

// Element e of a block by its formula.
float block_element(WeightForm form, const std::byte* block, index_t lane, int e) {
  const Layout is = layout(form);
  const float d = widen_half(load<std::uint16_t>(block + 2 * lane));
  const float m = is.has_least ? widen_half(load<std::uint16_t>(block + kHalves + 2 * lane)) : 0;
  const std::byte* const sub = block + is.head + e / blocks::kSub * sub_bytes(form);
  const auto scale = [&](index_t n) {
    return is.scales != 0 ? load<std::int8_t>(sub + n * kGroup + lane) : std::int8_t{0};
  };
  const bool is_second = form == WeightForm::q6_k && e % blocks::kSub >= 16;
  return blocks::element(stored_of(form), quant_at(form, sub, lane, e % blocks::kSub), d, m,
                         scale(is_second ? 1 : 0), scale(1));
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
  for (int n = 0; n < kWeightForms; ++n)
    if (const auto form = static_cast<WeightForm>(n); stored_of(form) == type) return form;
  GLASSHEAD_ASSERT(type == Stored::f64);
  return WeightForm::f32;
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
