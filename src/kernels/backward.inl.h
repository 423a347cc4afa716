// The kernels of backward_kernels.h over a vector type V and a panel type P (panel.inl.h, which
// includes this file after its strips).
#pragma once

#include "kernels/kernel_set.h"

namespace {

// --- gradients of the scores ---

// kPlain: no softcap, bias or dropout, which most calls don't have.
template <class P, int C, bool kPlain>
void differentiate_of(const glasshead::DifferentiateArgs<typename P::V::T>& args) noexcept {
  using V = typename P::V;
  using T = typename V::T;
  constexpr index_t kLanes = P::kVectors * V::W;
  const V lowest = V::set1(glasshead::Arithmetic<T>::kStart);  // only -inf is below
  const V zero = V::set1(0), one = V::set1(1);
  V max[C], inverse[C], mean[C];
  load_all(args.max, max);
  load_all(args.inverse, inverse);
  load_all(args.mean, mean);
  for (index_t n = 0; n < args.keys; ++n) {
    for (int c = 0; c < C; ++c) {
      const index_t at = n * kLanes + c * V::W;
      V s = V::load(args.weights + at), dp = V::load(args.scores + at);
      V slope = one;
      if constexpr (!kPlain) {
        if (args.softcap > 0) {
          const V cap = V::set1(args.softcap);
          const V t = tanh_of(V::div(s, cap));
          if (args.through_softcap) slope = V::mul(V::sub(one, t), V::add(one, t));
          s = V::mul(cap, t);
        }
        if (args.bias != nullptr) s = V::add(s, V::load(args.bias + at));
      }
      if (args.allowed != nullptr) s = V::hide(s, args.allowed[n] >> (c * V::W));
      const V w = V::zero_below(s, lowest, V::mul(exp_of(V::sub(s, max[c])), inverse[c]));
      V used = w;
      if constexpr (!kPlain) {
        if (args.kept != nullptr) {
          const V scale = V::set1(args.kept_scale);
          const std::uint32_t bits = args.kept[n] >> (c * V::W);
          dp = V::keep(V::mul(dp, scale), zero, bits);
          used = V::keep(V::mul(w, scale), zero, bits);
        }
      }
      V ds = V::zero_where_zero(w, V::mul(w, V::sub(dp, mean[c])));
      if constexpr (!kPlain) {
        if (args.softcap > 0) ds = V::mul(ds, slope);
      }
      V::store(args.weights + at, used);
      V::store(args.scores + at, ds);
    }
  }
}

template <class P>
void differentiate(const glasshead::DifferentiateArgs<typename P::V::T>& args) noexcept {
  const bool is_plain = !(args.softcap > 0) && args.bias == nullptr && args.kept == nullptr;
  with_vectors<P::kVectors>(args.vectors, [&]<int C>() {
    if (is_plain)
      differentiate_of<P, C, true>(args);
    else
      differentiate_of<P, C, false>(args);
  });
}

// --- gradients of keys and values ---

// R keys by C vectors of a row's elements, over every row of the panels. The sums stay in registers
// from the first panel to the last.
template <class P, int R, int C>
[[gnu::always_inline]] inline void outer_strip(const glasshead::OuterArgs<typename P::V::T>& args,
                                               index_t n, index_t e) {
  using V = typename P::V;
  using T = typename V::T;
  constexpr index_t kLanes = P::kVectors * V::W;
  T* to = args.to + n * args.size + e;
  V acc[R][C];
  const auto each = [&](const auto& f) __attribute__((always_inline)) {
    repeat<R>([&](int r) __attribute__((always_inline)) {
      repeat<C>([&](int c) __attribute__((always_inline)) {
        f(acc[r][c], to + r * args.size + c * V::W);
      });
    });
  };
  each([](V& s, const T* at) __attribute__((always_inline)) { s = V::load(at); });
  for (index_t p = 0; p < args.panel_count; ++p) {
    const glasshead::OuterPanel<T>& panel = args.panels[p];
    const T* a = panel.weights + n * kLanes;
    const T* b = panel.rows + e;
    const auto step = [&]() __attribute__((always_inline)) {
      V vectors[C];
      load_all(b, vectors);
      repeat<R>([&](int r) __attribute__((always_inline)) {
        const V x = V::set1(a[r * kLanes]);
        repeat<C>([&](int c) __attribute__((always_inline)) {
          acc[r][c] = V::accumulate(x, vectors[c], acc[r][c]);
        });
      });
      ++a;
      b += args.size;
    };
    index_t left = panel.count;
    for (; left >= 4; left -= 4) {
      step();
      step();
      step();
      step();
    }
    for (; left > 0; --left) step();
  }
  each([](const V& s, T* at) __attribute__((always_inline)) { V::store(at, s); });
}

// Where a row holds something that is not finite: 0 * inf must not come into being.
template <class P>
void outer_selecting(const glasshead::OuterArgs<typename P::V::T>& args) noexcept {
  using V = typename P::V;
  using T = typename V::T;
  constexpr index_t kLanes = P::kVectors * V::W;
  for (index_t n = 0; n < args.keys; ++n) {
    T* to = args.to + n * args.size;
    for (index_t p = 0; p < args.panel_count; ++p) {
      const glasshead::OuterPanel<T>& panel = args.panels[p];
      for (index_t r = 0; r < panel.count; ++r) {
        const T weight = panel.weights[n * kLanes + r];
        if (weight == 0) continue;
        const T* row = panel.rows + r * args.size;
        for (index_t e = 0; e < args.size; e += V::W)
          V::store(to + e, V::fma(V::set1(weight), V::load(row + e), V::load(to + e)));
      }
    }
  }
}

template <class P>
void outer(const glasshead::OuterArgs<typename P::V::T>& args) noexcept {
  using V = typename P::V;
  if (args.skips_zeros) return outer_selecting<P>(args);
  for_strips<P::template kStrip<P::kVectors>>(args.keys, [&]<int R>(index_t n) {
    index_t left = args.size / V::W;
    for (index_t e = 0; left > 0;) {  // even shares: 8 vectors are 3 + 3 + 2, 4 are 2 + 2
      const index_t parts = (left + P::kVectors - 1) / P::kVectors;
      const index_t share = (left + parts - 1) / parts;
      with_vectors<P::kVectors>(share, [&]<int C>() { outer_strip<P, R, C>(args, n, e); });
      e += share * V::W;
      left -= share;
    }
  });
}

template <class P>
constexpr glasshead::BackwardKernels<typename P::V::T> backward_kernels() {
  return {differentiate<P>, outer<P>};
}

}  // namespace
