// The kernels of a linear layer in f32: y = x·Wᵀ, lanes are outputs. Weights stand in groups of 32
// outputs, each the concatenation of its blocks along `in`, all arrays over the group's outputs
// (o in [0, 32)) aligned to 64 bytes:
//
//   f32 bf16 f16    [1 element]    w[32]
//   q8_0   [32]     f16 d[32]; i8 q[32 e][32]                              w = q·d
//   q4_0   [32]     f16 d[32]; u32 low[4][32]                              w = (q - 8)·d
//   q4_1   [32]     f16 d[32], m[32]; u32 low[4][32]                       w = q·d + m
//   q5_0   [32]     f16 d[32]; u32 high[32]; u32 low[4][32]                w = (q - 16)·d
//   q5_1   [32]     f16 d[32], m[32]; u32 high[32]; u32 low[4][32]         w = q·d + m
//   q4_k   [256]    f16 d[32], m[32]; 8 of {i8 sc[32], sm[32]; u32 low[4][32]}
//                                                                  w = (d·sc)·q - (m·sm)
//   q5_k   [256]    likewise, u32 high[32] before each low
//   q6_k   [256]    f16 d[32]; 8 of {i8 sc[2][32]; u32 high[2][32]; u32 low[4][32]}
//                                             w = (d·sc[e / 16])·(q - 32), e in [0, 32)
//
// e in [0, 32) of such a block: bits 4k to 4k + 3 of low[e / 8] are the low bits of element e, with
// k = e mod 8. The fifth bit stands at bit 2(e / 8) + e mod 2 + 8(e mod 8 / 2) of `high`; the fifth
// and sixth with s = 2(e / 8) + e mod 2 at bits 2(s mod 4) + 8(e mod 8 / 2) of high[s / 4].
//
// A quantised weight is q·scale + offset, q a whole number of its form's low bits (Q8_0: signed):
//
//   q8_0 d;  q4_0 d, -8d;  q5_0 d, -16d;  q4_1, q5_1 d, m;  q4_k, q5_k d·sc, -m·sm;
//   q6_k d·sc[e / 16], -32·(d·sc[e / 16])
//
// all exact in f32 (d has 11 bits, a scale at most 7). They hold for a run of 32 elements, of q6_k
// 16, and so a run's q meet x before the scale does:
//
//   t = fma(q[e], x[e], t) for e ascending, from 0;   X = the run's sum of x
//   s = fma(scale, t, s);   s = fma(offset, X, s), where the form has an offset
//
// The sum of sixteen x is ((a0 + a4) + (a2 + a6)) + ((a1 + a5) + (a3 + a7)) with a_i = x_i +
// x_(i+8); that of 32 the sum of two such.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/arithmetic.h"

namespace glasshead {

inline constexpr index_t kGroup = 32;  // outputs whose weights stand together

enum class WeightForm : std::uint8_t {
  f32,
  bf16,
  f16,
  q8_0,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q4_k,
  q5_k,
  q6_k
};
constexpr int kWeightForms = 11;

// Elements of a run; 0: the form has weights as they are.
constexpr index_t run_of(WeightForm form) {
  return form <= WeightForm::f16 ? 0 : form == WeightForm::q6_k ? 16 : 32;
}
constexpr bool has_offset(WeightForm form) { return form > WeightForm::q8_0; }
// Whether `row` wants x[e]·16^-k with k = e mod 8, of k = 7 x[e]: a nibble is then multiplied where
// it stands in its word. The products are the same, if no x[e]·16^-k is rounded.
constexpr bool takes_x_in_place(WeightForm form) {
  return form == WeightForm::q4_0 || form == WeightForm::q4_1 || form == WeightForm::q4_k;
}

// y[o] = s + bias[o], NaN as one quiet NaN, for o < count: s is the sum over runs from 0, of f32,
// bf16 and f16 one chain s = fma(w[o, e], x[e], s) for e ascending, from 0.
struct LinearRowArgs {
  WeightForm form;
  const void* weights;  // of the group
  index_t in;
  const float* x;                 // [in], or as takes_x_in_place says
  const float* x_sums = nullptr;  // [in / run] of forms with an offset
  const float* bias;              // [32]
  index_t count;                  // 1 to 32
  float* y;                       // [count]
};

// tile[n, o] = w[o, first + n] for n < depth; first and depth are multiples of the form's block. Of
// forms with runs it is q; scale and offset, where the form has them, follow for each run.
struct UnpackArgs {
  WeightForm form;
  const void* weights;  // of the group
  index_t first, depth;
  float* tile;                                // [depth, 32]
  float *scale = nullptr, *offset = nullptr;  // [depth / run, 32]
};

// The next part of the sums s[r, o], from 0 if is_first: a chain through the tile or, with runs,
// their sums. If is_last y[r, o] = s[r, o] + bias[o], NaN as one quiet NaN, for o < count; else s
// is kept in sums.
struct LinearTileArgs {
  const float* x;  // row r at x + r * x_stride
  index_t x_stride, rows;
  const float* tile;  // [depth, 32]
  index_t depth;
  index_t run = 0;  // or 16 or 32
  bool has_offset = false;
  const float *scale = nullptr, *offset = nullptr;  // [depth / run, 32]
  const float* x_sums = nullptr;  // of row r at x_sums + r * x_sums_stride: [depth / run]
  index_t x_sums_stride = 0;
  float* sums;  // [rows, 32]; without runs not touched where the tile is first and last
  bool is_first, is_last;
  const float* bias;  // [32]
  index_t count;      // 1 to 32
  float* y;
  index_t y_stride;
};

struct LinearKernels {
  void (*row)(const LinearRowArgs&) noexcept = nullptr;
  void (*unpack)(const UnpackArgs&) noexcept = nullptr;
  void (*tile)(const LinearTileArgs&) noexcept = nullptr;
};

}  // namespace glasshead
