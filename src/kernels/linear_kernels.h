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
// Every product here is exact in f32 (d has 11 bits, a scale at most 7, q at most 8), so that a
// weight is rounded at most once whichever way it is computed, and `unpack` and `row` may compute
// q·d + (-8·d) by one fused multiply-add. For that, d must be finite in q4_0, q5_0 and q6_k.
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

// y[o] = (s, fma over e ascending from 0: s = fma(w[o, e], x[e], s)) + bias[o], NaN as one quiet
// NaN, for o < count.
struct LinearRowArgs {
  WeightForm form;
  const void* weights;  // of the group
  index_t in;
  const float* x;     // [in]
  const float* bias;  // [32]
  index_t count;      // 1 to 32
  float* y;           // [count]
};

// tile[n, o] = w[o, first + n] for n < depth; first and depth are multiples of the form's block. A
// zero has either sign, which reaches no sum: sums begin at 0, and end with + bias.
struct UnpackArgs {
  WeightForm form;
  const void* weights;  // of the group
  index_t first, depth;
  float* tile;  // [depth, 32]
};

// s[r, o] = fma over n ascending: fma(tile[n, o], x[r, n], s[r, o]), from 0 if is_first. If is_last
// y[r, o] = s[r, o] + bias[o], NaN as one quiet NaN, for o < count; else s is kept in sums.
struct LinearTileArgs {
  const float* x;  // row r at x + r * x_stride
  index_t x_stride, rows;
  const float* tile;  // [depth, 32]
  index_t depth;
  float* sums;  // [rows, 32]; not touched where the tile is first and last
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
