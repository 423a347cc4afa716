// The kernels of kernel_set.h for one vector type V: written once, compiled once per instruction
// set. A vector type is a register `x` and these functions, lane by lane:
//
//   T, W                      element; lanes
//   set1 load store           all lanes alike; from and to memory aligned to the vector
//   load_unaligned store_unaligned    from and to any address of a T
//   in_register(a)            a, which the compiler then does not load again for each use
//   accumulate(a, b, s)       fma(a, b, s), written over s in its register: left to itself g++
//   moves
//                             the sums of a strip about and spills some, a third of the speed
//   add sub mul div           rounded once
//   fma(a, b, c)              a * b + c, rounded once
//   max(a, b) min(a, b)       a > b ? a : b and a < b ? a : b: where either is NaN, b
//   hide(a, bits)             bit ? a : -inf, one bit of `bits` per lane
//   keep(a, b, bits)          bit ? a : b
//   pow2(s)                   2^(n + 64) of the n in the low bits of s (kRound)
//   magnitude(a) with_sign(a, b)    |a|;  |a| with b's sign
//   zero_below(x, limit, a)   x < limit ? 0 : a
//   zero_where_zero(s, a)     s == 0 ? 0 : a
//   quiet(a)                  a, or one quiet NaN if it is NaN
//   scaled(a, s)              a * s in f64, rounded once to T; s is a double
//   transpose(V (&m)[W])      m[i] lane j <-> m[j] lane i
//
// where it knows better than W loads and a transposition:
//
//   load_columns(rows, at, m)     m[j] lane i = rows[i][at + j], of W rows
//
// and a panel type P: V, kVectors (V's in a panel), kStrip<c>: rows of a strip over c vectors,
// which with its accumulators must fit the register file.
#pragma once

#include "kernels/elementary.inl.h"
#include "kernels/kernel_set.h"
#include "kernels/peak.inl.h"
#include "kernels/rows.inl.h"

namespace {

using glasshead::index_t;

// How a strip's left factor lies in memory; constant strides keep its addresses out of the loop.
enum class Walk {
  along,   // step 1: each row's elements side by side
  across,  // row_stride 1: the rows' elements side by side
  any
};

// Calls f.template operator()<walk>() for the strides at hand.
template <class F>
[[gnu::always_inline]] inline void with_walk(index_t row_stride, index_t step, const F& f) {
  if (step == 1) return f.template operator()<Walk::along>();
  if (row_stride == 1) return f.template operator()<Walk::across>();
  f.template operator()<Walk::any>();
}

// f(0), f(1), ... f(N - 1), written out. g++ unrolls a loop after it has decided which arrays are
// registers: sums that a loop indexes come and go in memory wherever a strip begins and ends.
template <int N, int I = 0, class F>
[[gnu::always_inline]] inline void repeat(const F& f) {
  if constexpr (I < N) {
    f(I);
    repeat<N, I + 1>(f);
  }
}

// f(sums[r][c], r, c) for every one.
template <class V, int R, int C, class F>
[[gnu::always_inline]] inline void each_of(V (&sums)[R][C], const F& f) {
  repeat<R>([&](int r) __attribute__((always_inline)) {
    repeat<C>([&](int c) __attribute__((always_inline)) { f(sums[r][c], r, c); });
  });
}

// acc[r][c] = fma(a[r * row_stride + n * step], b[n * lanes + c * W], acc[r][c]) for n ascending:
// both products of attention, with C vectors of queries in the lanes.
template <class P, int R, int C, Walk kWalk>
struct Strip {
  using V = typename P::V;
  using T = typename V::T;
  static constexpr index_t kLanes = P::kVectors * V::W;
  static constexpr int kPointers = kWalk == Walk::across ? 1 : R;

  const T* rows[kPointers];  // where each row stands; `across` needs the first only
  index_t step;
  const T* b;
  V acc[R][C];

  [[gnu::always_inline]] inline Strip(const T* a, index_t row_stride, index_t next,
                                      const T* queries)
      : step(kWalk == Walk::along ? 1 : next), b(queries) {
    repeat<kPointers>([&](int r) __attribute__((always_inline)) { rows[r] = a + r * row_stride; });
  }

  template <class F>
  [[gnu::always_inline]] inline void each(const F& f) {
    each_of(acc, f);
  }

  // The n-th elements from here, for the first U vectors.
  template <int U>
  [[gnu::always_inline]] inline void multiply_add(index_t n) {
    V vectors[U];
    repeat<U>([&](int c) __attribute__((always_inline)) {
      vectors[c] = V::load(b + n * kLanes + c * V::W);
    });
    repeat<R>([&](int r) __attribute__((always_inline)) {
      const V x = V::set1(kWalk == Walk::across ? rows[0][r] : rows[r][n]);
      repeat<U>([&](int c) __attribute__((always_inline)) {
        acc[r][c] = V::accumulate(x, vectors[c], acc[r][c]);
      });
    });
  }
  [[gnu::always_inline]] inline void next(index_t elements) {
    repeat<kPointers>([&](int r) __attribute__((always_inline)) { rows[r] += elements * step; });
    b += elements * kLanes;
  }
  template <int U = C>
  [[gnu::always_inline]] inline void one() {
    multiply_add<U>(0);
    next(1);
  }

  template <int U = C>
  [[gnu::always_inline]] inline void run(index_t depth) {
    for (; depth >= 4; depth -= 4) {  // unrolled by 4: 67 -> 81 % of the peak on AVX2
      if constexpr (kWalk == Walk::along) {
        multiply_add<U>(0);
        multiply_add<U>(1);
        multiply_add<U>(2);
        multiply_add<U>(3);
        next(4);
      } else {
        one<U>();
        one<U>();
        one<U>();
        one<U>();
      }
    }
    for (; depth > 0; --depth) one<U>();
  }
};

// Calls f.template operator()<R>(r) for strips that cover rows [0, count): as tall as fits, then
// halves.
template <int R, class F>
[[gnu::always_inline]] inline void for_strips(index_t count, const F& f, index_t r = 0) {
  for (; r + R <= count; r += R) f.template operator()<R>(r);
  if constexpr (R > 1) {
    if (r < count) for_strips<R / 2>(count, f, r);
  }
}

// Calls f.template operator()<C>() with C = vectors.
template <int C, class F>
[[gnu::always_inline]] inline void with_vectors(index_t vectors, const F& f) {
  if constexpr (C == 1) {
    f.template operator()<1>();
  } else {
    if (vectors == C) return f.template operator()<C>();
    with_vectors<C - 1>(vectors, f);
  }
}

// Calls f.template operator()<U>(begin, end) for the runs of keys that no vector from U on reaches.
template <int U, class F>
[[gnu::always_inline]] inline void for_reach(const index_t* reach, index_t keys, const F& f,
                                             index_t begin = 0) {
  if (reach == nullptr) return f.template operator()<U>(begin, keys);
  const index_t end = reach[U - 1];
  if (begin < end) f.template operator()<U>(begin, end);
  if constexpr (U > 1) for_reach<U - 1>(reach, keys, f, end);
}

template <class V, int C>
[[gnu::always_inline]] inline void load_all(const typename V::T* from, V (&to)[C]) {
  repeat<C>([&](int c) __attribute__((always_inline)) { to[c] = V::load(from + c * V::W); });
}

// --- scores ---

// What becomes of the products of a strip of keys from key j on: softcap, bias, mask; stored, and
// the maximum taken.
template <class P, int R, int C>
[[gnu::always_inline]] inline void end_scores(const glasshead::ScoreArgs<typename P::V::T>& args,
                                              index_t j, typename P::V (&sums)[R][C],
                                              typename P::V (&max)[C]) {
  using V = typename P::V;
  using T = typename V::T;
  constexpr index_t kLanes = P::kVectors * V::W;
  constexpr std::uint32_t kEvery = std::uint32_t{0xFFFFFFFF} >> (32 - C * V::W);
  T* to = args.scores + j * kLanes;
  std::uint32_t common = kEvery;
  if (args.allowed != nullptr)
    for (int r = 0; r < R; ++r) common &= args.allowed[j + r];
  const auto store = [&](const V& s, int r, int c) __attribute__((always_inline)) {
    V::store(to + r * kLanes + c * V::W, s);
  };
  if (args.softcap > 0) {  // long enough to be a loop, and so by way of memory
    const V cap = V::set1(args.softcap);
    each_of(sums, store);
    for (int r = 0; r < R; ++r) {
      for (T* at = to + r * kLanes; at < to + r * kLanes + C * V::W; at += V::W)
        V::store(at, V::mul(cap, tanh_of(V::div(V::load(at), cap))));
    }
    each_of(sums, [&](V& s, int r, int c)
                      __attribute__((always_inline)) { s = V::load(to + r * kLanes + c * V::W); });
  }
  if (args.bias != nullptr) {
    const T* const bias = args.bias + j * kLanes;
    each_of(sums, [&](V& s, int r, int c) __attribute__((always_inline)) {
      s = V::add(s, V::load(bias + r * kLanes + c * V::W));
    });
  }
  if (common != kEvery)
    each_of(sums, [&](V& s, int r, int c) __attribute__((always_inline)) {
      s = V::hide(s, args.allowed[j + r] >> (c * V::W));
    });
  each_of(sums, [&](const V& s, int r, int c) __attribute__((always_inline)) {
    store(s, r, c);
    max[c] = V::max(s, max[c]);
  });
}

template <class P, int C, Walk kWalk>
void scores_of(const glasshead::ScoreArgs<typename P::V::T>& args, index_t begin,
               index_t end) noexcept {
  using V = typename P::V;
  V max[C];
  load_all(args.max, max);
  const auto add_strip = [&]<int R>(index_t j) {
    Strip<P, R, C, kWalk> strip(args.k.data + j * args.k.row_stride, args.k.row_stride, args.k.step,
                                args.q);
    strip.each([](V& s, int, int) __attribute__((always_inline)) { s = V::set1(0); });
    strip.run(args.d_k);
    end_scores<P>(args, j, strip.acc, max);
  };
  for_strips<P::template kStrip<C>>(end, add_strip, begin);
  repeat<C>([&](int c) __attribute__((always_inline)) { V::store(args.max + c * V::W, max[c]); });
}

// --- softmax ---

// One vector's sum over the keys of a block, in eight parts.
template <class P>
[[gnu::always_inline]] inline typename P::V sum_of(const typename P::V::T* p, index_t first,
                                                   index_t keys) {
  using V = typename P::V;
  constexpr index_t kLanes = P::kVectors * V::W, kParts = glasshead::kPartialSums;
  V part[kParts];
  for (V& x : part) x = V::set1(0);
  index_t n = 0;
  const auto one = [&] {
    V& x = part[(first + n) % kParts];
    x = V::add(x, V::load(p + n * kLanes));
    ++n;
  };
  while (n < keys && (first + n) % kParts != 0) one();
  for (; n + kParts <= keys; n += kParts)
    for (int i = 0; i < kParts; ++i) part[i] = V::add(part[i], V::load(p + (n + i) * kLanes));
  while (n < keys) one();
  return V::add(V::add(V::add(part[0], part[4]), V::add(part[2], part[6])),
                V::add(V::add(part[1], part[5]), V::add(part[3], part[7])));
}

template <class P, int C>
void softmax_of(const glasshead::SoftmaxArgs<typename P::V::T>& args) noexcept {
  using V = typename P::V;
  using T = typename V::T;
  constexpr index_t kLanes = P::kVectors * V::W;
  V max[C];
  load_all(args.new_max, max);
  for_reach<C>(args.reach, args.keys, [&]<int U>(index_t n, index_t end) {
    constexpr int kKeys = (U + 2) / U;  // at least three vectors in step
    const auto exponentials = [&]<int K>(T* at) __attribute__((always_inline)) {
      V p[K * U];
      for (int i = 0; i < K * U; ++i)
        p[i] = V::sub(V::load(at + i / U * kLanes + i % U * V::W), max[i % U]);
      exp_all(p);
      for (int i = 0; i < K * U; ++i) V::store(at + i / U * kLanes + i % U * V::W, p[i]);
    };
    T* at = args.scores + n * kLanes;
    for (; n + kKeys <= end; n += kKeys, at += kKeys * kLanes)
      exponentials.template operator()<kKeys>(at);
    for (; n < end; ++n, at += kLanes) exponentials.template operator()<1>(at);
  });
  for (int c = 0; c < C; ++c) {
    const V alpha = exp_of(V::sub(V::load(args.max + c * V::W), max[c]));
    const V sum = sum_of<P>(args.scores + c * V::W, args.first,
                            args.reach != nullptr ? args.reach[c] : args.keys);
    V::store(args.sum + c * V::W, V::fma(V::load(args.sum + c * V::W), alpha, sum));
    V::store(args.max + c * V::W, max[c]);
    V::store(args.alpha + c * V::W, alpha);
  }
  if (args.kept == nullptr) return;
  for_reach<C>(args.reach, args.keys, [&]<int U>(index_t n, index_t end) {
    for (; n < end; ++n) {
      for (int c = 0; c < U; ++c) {
        T* const at = args.scores + n * kLanes + c * V::W;
        V::store(at, V::keep(V::load(at), V::set1(0), args.kept[n] >> (c * V::W)));
      }
    }
  });
}

// --- weighted sum ---

template <class P, int C, Walk kWalk>
void accumulate_of(const glasshead::AccumulateArgs<typename P::V::T>& args) noexcept {
  using V = typename P::V;
  using T = typename V::T;
  constexpr index_t kLanes = P::kVectors * V::W;
  V alpha[C];
  repeat<C>([&](int c) __attribute__((always_inline)) {
    alpha[c] = args.alpha != nullptr ? V::load(args.alpha + c * V::W) : V::set1(1);
  });
  for_strips<P::template kStrip<C>>(args.d_v, [&]<int R>(index_t d) {
    Strip<P, R, C, kWalk> strip(args.v.data + d * args.v.step, args.v.step, args.v.row_stride,
                                args.p);
    T* to = args.a + d * kLanes;
    strip.each([&](V& a, int r, int c) __attribute__((always_inline)) {
      a = args.is_first ? V::set1(0) : V::mul(V::load(to + r * kLanes + c * V::W), alpha[c]);
    });
    if (args.allowed == nullptr) {
      for_reach<C>(args.reach, args.keys,
                   [&]<int U>(index_t begin, index_t end)
                       __attribute__((always_inline)) { strip.template run<U>(end - begin); });
    } else {
      for (index_t n = 0; n < args.keys; ++n) {
        const Strip<P, R, C, kWalk> before = strip;
        strip.one();
        strip.each([&](V& a, int r, int c) __attribute__((always_inline)) {
          a = V::keep(a, before.acc[r][c], args.allowed[n] >> (c * V::W));
        });
      }
    }
    strip.each([&](const V& a, int r, int c)
                   __attribute__((always_inline)) { V::store(to + r * kLanes + c * V::W, a); });
  });
}

template <class P>
void scores(const glasshead::ScoreArgs<typename P::V::T>& args) noexcept {
  with_vectors<P::kVectors>(args.vectors, [&]<int C>() {
    with_walk(args.k.row_stride, args.k.step, [&]<Walk kWalk>() {
      for_reach<C>(args.reach, args.keys, [&]<int U>(index_t begin, index_t end) {
        scores_of<P, U, kWalk>(args, begin, end);
      });
    });
  });
}
template <class P>
void softmax(const glasshead::SoftmaxArgs<typename P::V::T>& args) noexcept {
  with_vectors<P::kVectors>(args.vectors, [&]<int C>() { softmax_of<P, C>(args); });
}
template <class P>
void accumulate(const glasshead::AccumulateArgs<typename P::V::T>& args) noexcept {
  with_vectors<P::kVectors>(args.vectors, [&]<int C>() {
    with_walk(args.v.step, args.v.row_stride,
              [&]<Walk kWalk>() { accumulate_of<P, C, kWalk>(args); });
  });
}

// --- states ---

template <class P>
void merge(const glasshead::MergeArgs<typename P::V::T>& args) noexcept {
  using V = typename P::V;
  constexpr index_t kLanes = P::kVectors * V::W;
  for (index_t at = 0; at < args.vectors * V::W; at += V::W) {
    const V x = V::load(args.x.max + at), y = V::load(args.y.max + at);
    const V max = V::max(y, x);
    const V fx = exp_of(V::sub(x, max)), fy = exp_of(V::sub(y, max));
    const auto merged = [&](const V a, const V b) { return V::fma(b, fy, V::mul(a, fx)); };
    V::store(args.x.sum + at, merged(V::load(args.x.sum + at), V::load(args.y.sum + at)));
    V::store(args.x.max + at, max);
    for (index_t d = 0; d < args.d_v; ++d) {
      const index_t here = d * kLanes + at;
      V::store(args.x.a + here, merged(V::load(args.x.a + here), V::load(args.y.a + here)));
    }
  }
}

// --- the way in and the way out: transposed W x W at a time ---

template <class V>
[[gnu::always_inline]] inline void load_columns(const typename V::T* const* rows, index_t at,
                                                V (&m)[V::W]) {
  if constexpr (requires { V::load_columns(rows, at, m); }) {
    V::load_columns(rows, at, m);
  } else {
    for (int r = 0; r < V::W; ++r) m[r] = V::load_unaligned(rows[r] + at);
    V::transpose(m);
  }
}

template <class P>
void pack(const glasshead::PackArgs<typename P::V::T>& args) noexcept {
  using V = typename P::V;
  using T = typename V::T;
  constexpr index_t kLanes = P::kVectors * V::W, W = V::W;
  alignas(64) T part[W * W];
  const T scale = static_cast<T>(args.scale);
  const bool is_exact = static_cast<double>(scale) == args.scale;  // then T rounds as f64 would
  for (index_t r0 = 0; r0 < args.vectors * W; r0 += W) {
    const index_t left = args.count - r0;
    const index_t rows = left < 0 ? 0 : left < W ? left : W;
    for (index_t d0 = 0; d0 < args.size; d0 += W) {
      const index_t width = args.size - d0 < W ? args.size - d0 : W;
      T* const to = args.panel + d0 * kLanes + r0;
      V m[W];
      if (args.step == 1 && rows == W && width == W) {
        load_columns(args.rows + r0, d0, m);
        if (is_exact)
          for (V& x : m) x = V::mul(x, V::set1(scale));
        else
          for (V& x : m) x = V::scaled(x, args.scale);
        for (index_t d = 0; d < W; ++d) V::store(to + d * kLanes, m[d]);
        continue;
      }
      for (T& x : part) x = 0;
      for (index_t r = 0; r < rows; ++r)
        for (index_t d = 0; d < width; ++d)
          part[r * W + d] = args.rows[r0 + r][(d0 + d) * args.step];
      load_all(part, m);
      for (index_t r = 0; r < rows; ++r) m[r] = V::scaled(m[r], args.scale);
      V::transpose(m);
      for (index_t d = 0; d < width; ++d) V::store(to + d * kLanes, m[d]);
    }
  }
}

template <class P>
void turn(const glasshead::TurnArgs<typename P::V::T>& args) noexcept {
  using V = typename P::V;
  using T = typename V::T;
  constexpr index_t W = V::W;
  for (index_t r0 = 0; r0 < args.vectors * W; r0 += W) {
    const T* const* const rows = args.rows + r0;
    T* to = args.panel + r0;
    index_t n = 0;
    for (; n + W <= args.size; n += W) {
      V m[W];
      load_columns(rows, n, m);
      for (index_t d = 0; d < W; ++d, to += args.lanes)
        V::store(to, V::add(args.adds ? V::load(to) : V::set1(0), m[d]));
    }
    for (; n < args.size; ++n, to += args.lanes)
      for (index_t r = 0; r < W; ++r) to[r] = (args.adds ? to[r] : T(0)) + rows[r][n];
  }
}

template <class P>
void finish(const glasshead::FinishArgs<typename P::V::T>& args) noexcept {
  using V = typename P::V;
  using T = typename V::T;
  constexpr index_t kLanes = P::kVectors * V::W, W = V::W;
  for (index_t r0 = 0; r0 < args.count; r0 += W) {
    const index_t rows = args.count - r0 < W ? args.count - r0 : W;
    const V sum = V::load(args.state.sum + r0);
    const V factor = V::div(V::set1(args.kept_scale), sum);
    for (index_t d0 = 0; d0 < args.d_v; d0 += W) {
      const index_t width = args.d_v - d0 < W ? args.d_v - d0 : W;
      const T* const from = args.state.a + d0 * kLanes + r0;
      V m[W];
      const auto result = [&](index_t d) __attribute__((always_inline)) {
        const V a = V::load(from + d * kLanes);
        return V::quiet(V::zero_where_zero(sum, V::add(V::mul(a, factor), V::set1(0))));
      };
      if (args.step == 1 && rows == W && width == W) {
        for (index_t d = 0; d < W; ++d) m[d] = result(d);
        V::transpose(m);
        for (index_t r = 0; r < W; ++r) V::store_unaligned(args.rows[r0 + r] + d0, m[r]);
        continue;
      }
      for (index_t d = 0; d < W; ++d) m[d] = result(d < width ? d : 0);
      V::transpose(m);
      for (index_t r = 0; r < rows; ++r) {
        alignas(64) T turned[W];
        V::store(turned, m[r]);
        T* const to = args.rows[r0 + r] + d0 * args.step;
        for (index_t d = 0; d < width; ++d) to[d * args.step] = turned[d];
      }
    }
  }
}

// x * 0 is 0 if x is finite and NaN if not.
template <class V>
bool are_finite(const glasshead::StridedRows<typename V::T>& rows, index_t count,
                index_t size) noexcept {
  using T = typename V::T;
  constexpr index_t kStep = 4 * V::W;
  V sums[4] = {V::set1(0), V::set1(0), V::set1(0), V::set1(0)};
  T sum = 0;
  for (index_t n = 0; n < count; ++n) {
    const T* row = rows.data + n * rows.row_stride;
    index_t d = 0;
    if (rows.step == 1) {
      for (; d + kStep <= size; d += kStep)
        for (int i = 0; i < 4; ++i)
          sums[i] = V::fma(V::load_unaligned(row + d + i * V::W), V::set1(0), sums[i]);
    }
    for (; d < size; ++d) sum += row[d * rows.step] * T(0);
  }
  alignas(64) T lanes[V::W];
  V::store(lanes, V::add(V::add(sums[0], sums[1]), V::add(sums[2], sums[3])));
  for (const T x : lanes) sum += x;
  return sum == 0;
}

template <class V, V (*F)(V)>
void elementwise(const typename V::T* x, typename V::T* y, index_t count) noexcept {
  alignas(64) typename V::T part[V::W];
  for (index_t n = 0; n < count; n += V::W) {
    const index_t size = count - n < V::W ? count - n : V::W;
    for (index_t i = 0; i < V::W; ++i) part[i] = x[n + (i < size ? i : 0)];
    V::store(part, F(V::load(part)));
    for (index_t i = 0; i < size; ++i) y[n + i] = part[i];
  }
}

}  // namespace

#include "kernels/backward.inl.h"

namespace {

template <class P>
constexpr glasshead::Kernels<typename P::V::T> panel_kernels() {
  using V = typename P::V;
  glasshead::Kernels<typename V::T> kernels;
  kernels.width = V::W;
  kernels.lanes = P::kVectors * V::W;
  kernels.pack = pack<P>;
  kernels.turn = turn<P>;
  kernels.scores = scores<P>;
  kernels.softmax = softmax<P>;
  kernels.accumulate = accumulate<P>;
  kernels.merge = merge<P>;
  kernels.finish = finish<P>;
  kernels.are_finite = are_finite<V>;
  kernels.rows_below = V::W;  // fewer leave lanes of a panel empty
  kernels.rows = row_kernels<V>();
  kernels.backward = backward_kernels<P>();
  kernels.exp = elementwise<V, exp_of<V>>;
  kernels.tanh = elementwise<V, tanh_of<V>>;
  kernels.multiply_adds = multiply_adds<V>;
  return kernels;
}

}  // namespace
