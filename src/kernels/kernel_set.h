// What an instruction set has to offer: functions over a panel of query rows, one row per vector
// lane, and over single rows where there are too few to fill a panel (row_kernels.h).
//
//   const KernelSet& set = ...;                 // select.h
//   set.f32.scores({...});                      // for each block of 128 keys, piece by piece
//   set.f32.softmax({...});
//   set.f32.accumulate({...});
//   set.f32.merge({...});                       // once per chunk of 1,024 keys
//   set.f32.finish({...});
//
// A panel holds `lanes` rows, a constant of the set; arrays over a panel are [n, lanes], row-major,
// aligned to a vector. Work is done for the first `vectors` vectors of W lanes, which must cover
// the rows in use; what the other lanes hold is neither read into a result nor promised. Every lane
// computes exactly what core/row_reference computes for its row, so that all sets give the same
// bits (docs/same-bits.md); one that rounds to bf16 what that computes with in_bf16. Kernels never
// allocate, never fail, know no thread, mask or model, and need the default floating-point
// environment.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/backward_kernels.h"
#include "kernels/layer_kernels.h"
#include "kernels/linear_kernels.h"
#include "kernels/row_kernels.h"

namespace glasshead {

inline constexpr index_t kMaxLanes = 32;  // of any set: a panel's mask is 32 bits per key

// panel[n, r] = 0 + rows[r][n], or panel[n, r] + rows[r][n]; `rows` are vectors * W pointers.
template <class T>
struct TurnArgs {
  const T* const* rows;
  index_t size, vectors;
  bool adds;
  T* panel;       // [size, lanes]
  index_t lanes;  // a multiple of W: of this panel, which need not be the set's
};

// panel[d, r] = rows[r][d * step] * scale for r < count, 0 for the other lanes of `vectors`; the
// product is made in f64 and rounded once to T. 1 <= count <= vectors * W.
template <class T>
struct PackArgs {
  const T* const* rows;
  index_t step, count, size;  // size: elements of a row
  double scale;
  index_t vectors;
  T* panel;  // [size, lanes]
};

// `reach` of the three kernels below: of a causal panel's last keys most lanes see nothing.
// Lanes of vector c and those after it may attend to none of the keys from reach[c] on, which are
// neither computed nor stored for them (their p is 0). [vectors], descending; null: every vector
// reaches all keys.

// s = sum_d k[n, d] * q[d, lane] with fused multiply-add from 0 in order of d; then, in this order,
//     s = softcap * tanh(s / softcap)     if softcap > 0
//     s = s + bias[n, lane]               if bias
//     s = -inf where bit `lane` of allowed[n] is 0, if allowed
//     scores[n, lane] = s;  max[lane] = s > max[lane] ? s : max[lane]      (a NaN changes nothing)
template <class T>
struct ScoreArgs {
  const T* q;  // [d_k, lanes]
  index_t d_k;
  StridedRows<T> k;
  index_t keys;  // 0 <= keys <= kBlock
  T softcap;
  const T* bias;                 // [keys, lanes] or null
  const std::uint32_t* allowed;  // [keys] or null: every lane may attend
  index_t vectors;
  T* scores;  // [keys, lanes]
  T* max;     // [lanes]
  const index_t* reach = nullptr;
};

// alpha = exp(max - new_max);  p = exp(s - new_max);  part[(first + n) mod 8] += p, n ascending;
// sum = fma(sum, alpha, ((part0+part4) + (part2+part6)) + ((part1+part5) + (part3+part7)));
// max = new_max. Afterwards p = 0 where bit `lane` of kept[n] is 0, if kept: dropout never reaches
// the sum.
template <class T>
struct SoftmaxArgs {
  T* scores;      // [keys, lanes] s, replaced by p
  index_t first;  // number of the first key, mod 8 at least
  index_t keys;
  const std::uint32_t* kept;  // [keys] or null
  index_t vectors;
  const T* new_max;  // [lanes]
  T* max;            // [lanes]
  T* sum;            // [lanes]
  T* alpha;          // [lanes]
  const index_t* reach = nullptr;
};

// a[d] = a[d] * alpha, if alpha; then for n ascending a[d] = fma(v[n, d], p[n], a[d]). With
// `allowed`, a lane whose bit is 0 keeps a[d] as it is, whatever v holds; without it every v is
// finite where a bit would be 0.
template <class T>
struct AccumulateArgs {
  const T* p;  // [keys, lanes]
  index_t keys;
  StridedRows<T> v;
  index_t d_v;
  const T* alpha;                // [lanes] or null
  const std::uint32_t* allowed;  // [keys] or null
  index_t vectors;
  T* a;  // [d_v, lanes]
  const index_t* reach = nullptr;
  bool is_first = false;  // a is 0 before, and not read
};

// The state of a panel's rows over some chunks of keys.
template <class T>
struct PanelState {
  T* max;  // [lanes], kStart: no key yet
  T* sum;  // [lanes]
  T* a;    // [d_v, lanes]
};

// n = y.max > x.max ? y.max : x.max;  fx = exp(x.max - n);  fy = exp(y.max - n);
// sum = fma(y.sum, fy, x.sum * fx);  a = fma(y.a, fy, x.a * fx);  max = n. Into x, the earlier one.
template <class T>
struct MergeArgs {
  PanelState<T> x;
  PanelState<T> y;
  index_t d_v, vectors;
};

// out[r][d] = sum == 0 ? 0 : a[d, r] * (kept_scale / sum) + 0, every NaN as one quiet NaN; with
// kept_scale 1, or 1/(1-p) under dropout. 1 <= count <= vectors * W.
template <class T>
struct FinishArgs {
  PanelState<T> state;
  index_t count, d_v;
  T kept_scale;
  index_t vectors;
  T* const* rows;  // [count] where each row's result begins
  index_t step;    // between its elements
};

// A null entry is filled from the fallback when the set is selected.
template <class T>
struct Kernels {
  index_t width = 0;  // lanes of a vector, W
  index_t lanes = 0;  // of a panel, a multiple of W
  void (*pack)(const PackArgs<T>&) noexcept = nullptr;
  void (*turn)(const TurnArgs<T>&) noexcept = nullptr;
  void (*scores)(const ScoreArgs<T>&) noexcept = nullptr;
  void (*softmax)(const SoftmaxArgs<T>&) noexcept = nullptr;
  void (*accumulate)(const AccumulateArgs<T>&) noexcept = nullptr;
  void (*merge)(const MergeArgs<T>&) noexcept = nullptr;
  void (*finish)(const FinishArgs<T>&) noexcept = nullptr;
  // Whether elements [0, size) of `count` rows are all finite.
  bool (*are_finite)(const StridedRows<T>& rows, index_t count, index_t size) noexcept = nullptr;
  index_t rows_below = 0;  // for fewer query rows than this `rows` is faster than a panel
  RowKernels<T> rows;
  BackwardKernels<T> backward;  // over panels
  // y[n] = exp(x[n]) for x <= 0 or NaN, and y[n] = tanh(x[n]): the arithmetic's own, for tests.
  void (*exp)(const T* x, T* y, index_t count) noexcept = nullptr;
  void (*tanh)(const T* x, T* y, index_t count) noexcept = nullptr;
  // a = a / 2 + 1 by fused multiply-add in chains that do not wait for each other, `rounds` times
  // each: returns how many numbers that were, *sum = the sum of the chains' ends. For measuring.
  index_t (*multiply_adds)(index_t rounds, T* sum) noexcept = nullptr;
};

struct KernelSet {
  const char* name;             // "scalar", "avx2", "avx512", "neon", "avx512_bf16"
  const char* fallback;         // the set that fills null entries; null: there are none
  const char* const* features;  // what the processor must have (names of glasshead/cpu.h); ends
                                // with null
  Kernels<float> f32;
  Kernels<double> f64;
  LinearKernels linear = {};  // of a model's layers, in f32
  LayerKernels layers = {};
  bool rounds = false;  // attend's factors, in f32, to bf16: other bits than every other set's, so
                        // it is never chosen on its own
};

}  // namespace glasshead
