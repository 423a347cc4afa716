// The kernels of row_kernels.h for one vector type V (panel.inl.h lists its operations).
#pragma once

#include "kernels/elementary.inl.h"
#include "kernels/kernel_set.h"

namespace {

using glasshead::index_t;
using glasshead::kBlock;

// One element at a time, where a vector doesn't fit.
template <class T>
inline T fma_one(T a, T b, T c) {
  if constexpr (sizeof(T) == sizeof(float))
    return __builtin_fmaf(a, b, c);
  else
    return __builtin_fma(a, b, c);
}

// --- narrow elements ---

// As stored; T stands for itself.
struct Bf16 {
  std::uint16_t bits;
};
struct F16 {
  std::uint16_t bits;
};
struct Int8 {
  std::int8_t n;
};

inline float widen_one(float x) { return x; }
inline double widen_one(double x) { return x; }
inline float widen_one(Bf16 x) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(x.bits) << 16);
}
inline float widen_one(F16 x) {  // core/widen.h says why
  const std::uint32_t size = static_cast<std::uint32_t>(x.bits & 0x7fffU) << 13;
  const float wide = __builtin_bit_cast(float, size) * 0x1p112F;
  const std::uint32_t infinite = size >= 0x0f800000U ? 0x7f800000U : 0U;
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(x.bits & 0x8000U) << 16 |
                                       __builtin_bit_cast(std::uint32_t, wide) | infinite);
}
inline float widen_one(Int8 x) { return static_cast<float>(x.n); }

template <class E>
constexpr index_t kLineOf = 64 / static_cast<index_t>(sizeof(E));  // elements of a cache line

template <class E>
constexpr bool kIsScaled = false;
template <>
constexpr bool kIsScaled<Int8> = true;

// W elements from any address: by the vector type's own widen(const E*) where it has one.
template <class V, class E>
[[gnu::always_inline]] inline V load_wide(const E* from) {
  if constexpr (sizeof(E) == sizeof(typename V::T)) {
    return V::load_unaligned(from);
  } else if constexpr (requires { V::widen(from); }) {
    return V::widen(from);
  } else {
    alignas(64) typename V::T wide[V::W];
    for (int i = 0; i < V::W; ++i) wide[i] = widen_one(from[i]);
    return V::load(wide);
  }
}

// Calls f(data) with the elements of their own type.
template <class T, class F>
[[gnu::always_inline]] inline void with_elements(const T* wide, const glasshead::NarrowRows& narrow,
                                                 const F& f) {
  using glasshead::Narrow;
  if constexpr (sizeof(T) == sizeof(float)) {
    if (narrow.type == Narrow::bf16) return f(static_cast<const Bf16*>(narrow.data));
    if (narrow.type == Narrow::f16) return f(static_cast<const F16*>(narrow.data));
    if (narrow.type == Narrow::int8) return f(static_cast<const Int8*>(narrow.data));
  }
  f(wide);
}

// --- scores ---

// acc[r] += q[r] . m over W elements, m[e] holding element e of W keys.
template <class V, int R>
[[gnu::always_inline]] inline void add_elements(const typename V::T* q, index_t d_k, const V* m,
                                                index_t width, V (&acc)[R]) {
  for (index_t e = 0; e < width; ++e)
    for (int r = 0; r < R; ++r) acc[r] = V::fma(m[e], V::set1(q[r * d_k + e]), acc[r]);
}

// Fewer than 16 elements, in pieces whose sizes are known: a call of memcpy would cost more.
template <class E>
[[gnu::always_inline]] inline void copy_few(const E* from, index_t size, E* to) {
  const auto piece = [&]<index_t N>() {
    if ((size & N) == 0) return;
    __builtin_memcpy(to, from, sizeof(E[N]));
    from += N;
    to += N;
  };
  piece.template operator()<8>();
  piece.template operator()<4>();
  piece.template operator()<2>();
  piece.template operator()<1>();
}

// acc[g][r] = q[r] . k over keys n + g W to n + (g + 1) W, transposed W x W at a time: G groups of
// keys, whose sums do not wait for each other. Of a single group only the keys [skip, end) may be
// there: the other lanes get one of these once more.
template <class V, int R, int G, bool kIsWhole, class E>
[[gnu::always_inline]] inline void dot_rows(const typename V::T* q, index_t d_k, const E* keys,
                                            index_t stride, index_t n, index_t skip, index_t end,
                                            V (&acc)[G][R]) {
  constexpr index_t W = V::W;
  const auto row = [&](index_t i) {
    if constexpr (!kIsWhole) i = i < skip ? skip : i < end ? i : end - 1;
    return keys + (n + i) * stride;
  };
  // The groups after these: in the order of memory where row follows row, else line by line of each
  // row, since what stands between is others'.
  const bool is_dense = stride == d_k;
  const E* const next = row(G * W);
  index_t d = 0;
  for (; d + W <= d_k; d += W) {
    if (is_dense) {
      const E* const ahead = next + G * W * d;
      for (index_t line = 0; line < G * W * W; line += kLineOf<E>) __builtin_prefetch(ahead + line);
    } else if (d % kLineOf<E> < W) {
      for (index_t i = 0; i < G * W; ++i) __builtin_prefetch(next + i * stride + d);
    }
    for (int g = 0; g < G; ++g) {
      V m[W];
      for (index_t i = 0; i < W; ++i) m[i] = load_wide<V>(row(g * W + i) + d);
      V::transpose(m);
      add_elements<V, R>(q + d, d_k, m, W, acc[g]);
    }
  }
  if (d == d_k) return;
  for (int g = 0; g < G; ++g) {
    V m[W];
    if (d_k < W) {
      E part[W * W] = {};
      for (index_t i = 0; i < W; ++i) copy_few(row(g * W + i), d_k, part + i * W);
      for (index_t i = 0; i < W; ++i) m[i] = load_wide<V>(part + i * W);
    } else {  // a vector that overlaps the one before
      for (index_t i = 0; i < W; ++i) m[i] = load_wide<V>(row(g * W + i) + d_k - W);
    }
    V::transpose(m);
    add_elements<V, R>(q + d, d_k, d_k < W ? m : m + (W - (d_k - d)), d_k - d, acc[g]);
  }
}

// Lane 0 of s is key n of the call; lanes outside [0, keys) are hidden. Stores the scores, capped,
// biased and hidden, and returns the larger of them and max.
template <class V>
inline V end_scores(const glasshead::RowScoreArgs<typename V::T>& args, V s, index_t row, index_t n,
                    V max) {
  using T = typename V::T;
  if (args.softcap > 0) {
    const V cap = V::set1(args.softcap);
    s = V::mul(cap, tanh_of(V::div(s, cap)));
  }
  if (args.bias != nullptr || args.allowed != nullptr || n < 0 || n + V::W > args.keys) {
    alignas(64) T bias[V::W] = {};
    std::uint32_t bits = 0;
    for (index_t lane = n < 0 ? -n : 0; lane < V::W && n + lane < args.keys; ++lane) {
      const index_t j = n + lane;
      if (args.bias != nullptr) bias[lane] = args.bias[j * args.bias_stride + row];
      if (args.allowed == nullptr || ((args.allowed[j] >> row) & 1) != 0)
        bits |= std::uint32_t{1} << lane;
    }
    if (args.bias != nullptr) s = V::add(s, V::load(bias));
    s = V::hide(s, bits);
  }
  V::store(args.scores + row * kBlock + args.first + n, s);
  return V::max(s, max);
}

template <class V, int R>
inline void raise_max(const glasshead::RowScoreArgs<typename V::T>& args, index_t row,
                      const V (&max)[R]) {
  using T = typename V::T;
  for (int r = 0; r < R; ++r) {
    alignas(64) T lanes[V::W];
    V::store(lanes, max[r]);
    for (const T lane : lanes)
      if (lane > args.max[row + r]) args.max[row + r] = lane;
  }
}

// Keys as rows: W of them transposed in registers at a time. The vectors stand at absolute
// multiples of W, so a window's left edge leaves lanes in front.
template <class V, int R, class E>
void row_scores_of(const glasshead::RowScoreArgs<typename V::T>& args, const E* keys,
                   index_t row) noexcept {
  using T = typename V::T;
  constexpr index_t W = V::W;
  const T* q = args.q + row * args.d_k;
  constexpr int kGroups = 8 / R < 2 ? 1 : 8 / R < 4 ? 2 : 4;  // eight sums at once
  V max[R];
  for (V& m : max) m = V::set1(-static_cast<T>(__builtin_inf()));
  index_t n = -(args.first % W);
  const auto add = [&]<int G>() {
    V acc[G][R];
    for (auto& group : acc)
      for (V& a : group) a = V::set1(0);
    const index_t skip = n < 0 ? -n : 0;
    const index_t left = args.keys - n;
    if (G > 1 || (skip == 0 && left >= W))
      dot_rows<V, R, G, true>(q, args.d_k, keys, args.k.row_stride, n, 0, G * W, acc);
    else
      dot_rows<V, R, G, false>(q, args.d_k, keys, args.k.row_stride, n, skip, left < W ? left : W,
                               acc);
    for (int g = 0; g < G; ++g, n += W)
      for (int r = 0; r < R; ++r) max[r] = end_scores(args, acc[g][r], row + r, n, max[r]);
  };
  while (n < args.keys) {
    if (n >= 0 && n + kGroups * W <= args.keys)
      add.template operator()<kGroups>();
    else
      add.template operator()<1>();
  }
  raise_max(args, row, max);
}

// How far ahead of their use a panel's elements are asked for: the sums of several rows keep the
// processor from running ahead by itself. 72 -> 88 % of the memory's speed for four rows in f32.
template <class E>
constexpr index_t kAhead = 2048 / static_cast<index_t>(sizeof(E));

// P panels side by side, C vectors of each: lane 0 of the first is key n of the call, at keys.
template <class V, int R, int C, int P, class E>
[[gnu::always_inline]] inline void panel_dots(const glasshead::RowScoreArgs<typename V::T>& args,
                                              const E* keys, index_t row, index_t n, V (&max)[R]) {
  constexpr index_t W = V::W;
  const typename V::T* q = args.q + row * args.d_k;
  V acc[R][P * C], scale[P * C];
  for (auto& a : acc)
    for (V& x : a) x = V::set1(0);
  const auto key = [](int c) { return c / C * glasshead::kPanelKeys + c % C * W; };
  if constexpr (kIsScaled<E>)
    for (int c = 0; c < P * C; ++c) scale[c] = V::load_unaligned(args.narrow.scales + n + key(c));
  for (index_t d = 0; d < args.d_k; ++d) {
    V x[P * C];
    if (row == 0)
      for (int p = 0; p < P; ++p)
        __builtin_prefetch(keys + p * args.narrow.panel_stride + d * args.k.step + kAhead<E>);
    for (int c = 0; c < P * C; ++c) {
      const E* at = keys + c / C * args.narrow.panel_stride + d * args.k.step + c % C * W;
      x[c] = V::in_register(load_wide<V>(at));
      if constexpr (kIsScaled<E>) x[c] = V::mul(x[c], scale[c]);
    }
    for (int r = 0; r < R; ++r) {
      const V y = V::set1(q[r * args.d_k + d]);
      for (int c = 0; c < P * C; ++c) acc[r][c] = V::fma(x[c], y, acc[r][c]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < P * C; ++c)
      if (n + key(c) < args.keys) max[r] = end_scores(args, acc[r][c], row + r, n + key(c), max[r]);
}

// Keys in panels of 16, transposed: C vectors side by side, walked from one end to the other.
template <class V, int R, class E>
void panel_scores_of(const glasshead::RowScoreArgs<typename V::T>& args, const E* panels,
                     index_t row) noexcept {
  using T = typename V::T;
  using glasshead::kPanelKeys;
  constexpr index_t W = V::W;
  constexpr int C = kPanelKeys / W > 2 ? 2 : kPanelKeys / W;
  // A single row has C sums that wait for each other, which is as slow as the memory is in f32:
  // narrow elements come faster, and two panels at once.
  constexpr int P = R == 1 && sizeof(E) < sizeof(T) ? 2 : 1;
  V max[R];
  for (V& m : max) m = V::set1(-static_cast<T>(__builtin_inf()));
  const index_t lane = args.first % kPanelKeys;  // of the first key in its panel
  const index_t before = lane - lane % (C * W);  // whole vectors before it are left out
  const E* const panel = panels - lane;
  const index_t end = args.keys + lane;
  for (index_t j = before; j < end;) {  // counted from the first panel's lane 0
    const E* keys = panel + j / kPanelKeys * args.narrow.panel_stride + j % kPanelKeys;
    if (P == 2 && C * W == kPanelKeys && j + kPanelKeys < end) {
      panel_dots<V, R, C, P>(args, keys, row, j - lane, max);
      j += P * kPanelKeys;
    } else {
      panel_dots<V, R, C, 1>(args, keys, row, j - lane, max);
      j += C * W;
    }
  }
  raise_max(args, row, max);
}

// Calls f.template operator()<R>(row) over rows [0, count) by fours and what is left at once: heads
// share keys by threes and sevens, too.
template <class F>
inline void for_rows(index_t count, const F& f) {
  index_t row = 0;
  for (; row + 4 <= count; row += 4) f.template operator()<4>(row);
  if (row + 3 == count) f.template operator()<3>(row);
  if (row + 2 == count) f.template operator()<2>(row);
  if (row + 1 == count) f.template operator()<1>(row);
}

template <class V>
void row_scores(const glasshead::RowScoreArgs<typename V::T>& args) noexcept {
  for_rows(args.rows, [&]<int R>(index_t row) {
    with_elements(args.k.data, args.narrow, [&]<class E>(const E* keys) {
      if (args.k.step != 1)
        panel_scores_of<V, R>(args, keys, row);
      else if constexpr (!kIsScaled<E>)
        row_scores_of<V, R>(args, keys, row);
    });
  });
}

// --- softmax ---

template <class V>
void row_softmax(const glasshead::RowSoftmaxArgs<typename V::T>& args) noexcept {
  using T = typename V::T;
  constexpr index_t W = V::W, kParts = glasshead::kPartialSums;
  // Whole vectors and whole eights: the scores outside the keys are -inf or made so here.
  const index_t whole = W > kParts ? W : kParts;
  const index_t begin = args.first - args.first % whole;
  const index_t last = args.first + args.keys;
  const index_t end = (last + whole - 1) / whole * whole;
  for (index_t r = 0; r < args.rows; ++r) {
    T* p = args.scores + r * kBlock;
    for (index_t j = begin; j < args.first; ++j) p[j] = -static_cast<T>(__builtin_inf());
    for (index_t j = last; j < end; ++j) p[j] = -static_cast<T>(__builtin_inf());
    const V max = V::set1(args.new_max[r]);
    T part[kParts] = {};
    for (index_t j = begin; j < end; j += W) V::store(p + j, exp_of(V::sub(V::load(p + j), max)));
    for (index_t j = begin; j < end; j += kParts)
      for (index_t i = 0; i < kParts; ++i) part[i] += p[j + i];
    if (args.kept != nullptr)
      for (index_t n = 0; n < args.keys; ++n)
        if (((args.kept[n] >> r) & 1) == 0) p[args.first + n] = 0;
    const T sum =
        ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
    alignas(64) T alpha[W];
    V::store(alpha, exp_of(V::sub(V::set1(args.max[r]), max)));
    args.sum[r] = fma_one(args.sum[r], alpha[0], sum);
    args.max[r] = args.new_max[r];
    args.alpha[r] = alpha[0];
  }
}

// --- weighted sum ---

// Keys whose values are walked column by column, the sums of a column in registers. They lie near
// enough together to stay in the first cache, and while they are used those after them are asked
// for, in the order of memory where value follows value: 60 -> 75 % of the memory's speed for four
// rows in f32, 65 -> 85 for one.
constexpr index_t kKeysAtOnce = 16;

// Keys [n, n + keys) of the call at the elements from d on, D vectors of them, for R rows.
template <class V, int R, int D, class E>
[[gnu::always_inline]] inline void add_columns(
    const glasshead::RowAccumulateArgs<typename V::T>& args, const E* values, index_t row,
    index_t n, index_t keys, index_t d) {
  using T = typename V::T;
  constexpr index_t W = V::W;
  T* const a = args.a + row * args.a_stride + d;
  const T* const p = args.p + row * kBlock + args.first + n;
  V sum[R][D];
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < D; ++c) sum[r][c] = V::load_unaligned(a + r * args.a_stride + c * W);
  const E* v = values + n * args.v.row_stride + d;
  const bool is_dense = args.v.row_stride == args.d_v;
  const E* ahead =
      values + (n + kKeysAtOnce) * args.v.row_stride + (is_dense ? d * kKeysAtOnce : d);
  const index_t ahead_step = is_dense ? D * W : args.v.row_stride;
  for (index_t k = 0; k < keys; ++k, v += args.v.row_stride) {
    V x[D];
    for (int c = 0; c < D; ++c) {
      x[c] = V::in_register(load_wide<V>(v + c * W));
      if constexpr (kIsScaled<E>) x[c] = V::mul(x[c], V::set1(args.narrow.scales[n + k]));
    }
    if (row == 0) {
      for (index_t e = 0; e < D * W; e += kLineOf<E>) __builtin_prefetch(ahead + e);
      ahead += ahead_step;
    }
    for (int r = 0; r < R; ++r) {
      const V weight = V::set1(p[r * kBlock + k]);
      for (int c = 0; c < D; ++c) sum[r][c] = V::accumulate(weight, x[c], sum[r][c]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < D; ++c) V::store_unaligned(a + r * args.a_stride + c * W, sum[r][c]);
}

// The elements from d on, which fill no vector, as lanes of one that overlaps those before it; of
// shorter rows a copy is read.
template <class V, int R, class E>
void add_tail(const glasshead::RowAccumulateArgs<typename V::T>& args, const E* values, index_t row,
              index_t n, index_t keys, index_t d) noexcept {
  using T = typename V::T;
  constexpr index_t W = V::W;
  const index_t first = args.d_v < W ? 0 : args.d_v - W;  // element of the first lane
  const index_t size = args.d_v - first;                  // lanes that are elements
  alignas(64) T lanes[R][W] = {};
  V sum[R];
  for (int r = 0; r < R; ++r) {
    const T* const a = args.a + (row + r) * args.a_stride + first;
    for (index_t i = 0; i < size; ++i) lanes[r][i] = a[i];
    sum[r] = V::load(lanes[r]);
  }
  const E* v = values + n * args.v.row_stride + first;
  index_t stride = args.v.row_stride;
  E part[kKeysAtOnce * W] = {};
  if (args.d_v < W) {
    for (index_t k = 0; k < keys; ++k) copy_few(v + k * stride, size, part + k * W);
    v = part;
    stride = W;
  }
  const T* const p = args.p + row * kBlock + args.first + n;
  for (index_t k = 0; k < keys; ++k) {
    V x = V::in_register(load_wide<V>(v + k * stride));
    if constexpr (kIsScaled<E>) x = V::mul(x, V::set1(args.narrow.scales[n + k]));
    for (int r = 0; r < R; ++r) sum[r] = V::accumulate(V::set1(p[r * kBlock + k]), x, sum[r]);
  }
  for (int r = 0; r < R; ++r) {
    V::store(lanes[r], sum[r]);
    T* const a = args.a + (row + r) * args.a_stride + first;
    for (index_t i = d - first; i < size; ++i) a[i] = lanes[r][i];
  }
}

// Keys [n, n + keys) for R rows.
template <class V, int R, class E>
void add_keys(const glasshead::RowAccumulateArgs<typename V::T>& args, const E* values, index_t row,
              index_t n, index_t keys) noexcept {
  constexpr int D = R == 1 ? 4 : 8 / R;
  index_t d = 0;
  for (; d + D * V::W <= args.d_v; d += D * V::W)
    add_columns<V, R, D>(args, values, row, n, keys, d);
  for (; d + V::W <= args.d_v; d += V::W) add_columns<V, R, 1>(args, values, row, n, keys, d);
  if (d < args.d_v) add_tail<V, R>(args, values, row, n, keys, d);
}

template <class V, class E>
void add_values(const glasshead::RowAccumulateArgs<typename V::T>& args, const E* values) noexcept {
  if (args.allowed != nullptr) {  // key by key: a row that doesn't see it keeps its sums
    for (index_t n = 0; n < args.keys; ++n)
      for (index_t r = 0; r < args.rows; ++r)
        if (((args.allowed[n] >> r) & 1) != 0) add_keys<V, 1>(args, values, r, n, 1);
    return;
  }
  for (index_t n = 0; n < args.keys; n += kKeysAtOnce) {
    const index_t keys = args.keys - n < kKeysAtOnce ? args.keys - n : kKeysAtOnce;
    for_rows(args.rows, [&]<int R>(index_t row) { add_keys<V, R>(args, values, row, n, keys); });
  }
}

template <class V>
void row_accumulate(const glasshead::RowAccumulateArgs<typename V::T>& args) noexcept {
  using T = typename V::T;
  if (args.alpha != nullptr) {
    for (index_t r = 0; r < args.rows; ++r) {
      T* a = args.a + r * args.a_stride;
      for (index_t d = 0; d < args.d_v; ++d) a[d] = a[d] * args.alpha[r];
    }
  }
  with_elements(args.v.data, args.narrow, [&](const auto* values) { add_values<V>(args, values); });
}

// --- states ---

template <class V>
void row_merge(const glasshead::RowMergeArgs<typename V::T>& args) noexcept {
  using T = typename V::T;
  constexpr index_t W = V::W;
  for (index_t r = 0; r < args.rows; ++r) {
    const T x = args.x.max[r], y = args.y.max[r];
    const T max = y > x ? y : x;
    alignas(64) T factors[2][W];
    V::store(factors[0], exp_of(V::set1(x - max)));
    V::store(factors[1], exp_of(V::set1(y - max)));
    const T fx = factors[0][0], fy = factors[1][0];
    args.x.sum[r] = fma_one(args.y.sum[r], fy, args.x.sum[r] * fx);
    args.x.max[r] = max;
    T* a = args.x.a + r * args.a_stride;
    const T* b = args.y.a + r * args.a_stride;
    index_t d = 0;
    for (; d + W <= args.d_v; d += W)
      V::store_unaligned(a + d, V::fma(V::load_unaligned(b + d), V::set1(fy),
                                       V::mul(V::load_unaligned(a + d), V::set1(fx))));
    for (; d < args.d_v; ++d) a[d] = fma_one(b[d], fy, a[d] * fx);
  }
}

template <class V>
void row_finish(const glasshead::RowFinishArgs<typename V::T>& args) noexcept {
  using T = typename V::T;
  for (index_t r = 0; r < args.rows; ++r) {
    const T sum = args.state.sum[r];
    const T factor = args.kept_scale / sum;
    for (index_t d = 0; d < args.d_v; ++d) {
      T x = args.state.a[r * args.a_stride + d] * factor + T(0);
      if (sum == 0) x = 0;
      if (x != x) x = static_cast<T>(__builtin_nan(""));
      args.out[r][d * args.step] = x;
    }
  }
}

template <class V>
constexpr glasshead::RowKernels<typename V::T> row_kernels() {
  return {row_scores<V>, row_softmax<V>, row_accumulate<V>, row_merge<V>, row_finish<V>};
}

}  // namespace
