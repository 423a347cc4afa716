// The kernels of layer_kernels.h for one vector type V of f32 (panel.inl.h lists its operations).
#pragma once

#include "kernels/elementary.inl.h"
#include "kernels/layer_kernels.h"

namespace {

using glasshead::index_t;

// A product or number in two parts, for exponents: what is lost of u is lost |u| times over in e^u.
template <class V>
struct TwoParts {
  V high, low;
};

// a * b; exact but for underflow.
template <class V>
inline TwoParts<V> times(V a, V b) {
  const V product = V::mul(a, b);
  return {product, V::fma(a, b, V::mul(product, V::set1(-1)))};
}

// within [-limit, limit]; NaN stays.
template <class V>
inline V clamped(V x, float limit) {
  return V::min(V::set1(limit), V::max(V::set1(-limit), x));
}

// low for x < 0, high for x > 0, their sum (of zeros) for 0.
template <class V>
inline V by_sign(V x, V low, V high) {
  const V turned = V::mul(x, V::set1(-1));
  return V::add(V::zero_below(x, V::set1(0), high), V::zero_below(turned, V::set1(0), low));
}

// 2^64 e^-(u.high + u.low) for u.high >= 0: as exp_of (elementary.inl.h) has it before its last
// factor, for e^-u may be subnormal where a product with it is not.
template <class V>
inline V falling_exp(TwoParts<V> u) {
  using A = glasshead::Arithmetic<float>;
  const V x = V::mul(u.high, V::set1(-1));
  const Reduced<V> reduced = reduce(V::max(V::set1(A::kSmallest), x));  // of a NaN the second wins
  const V one = V::set1(1);
  V p = exp_polynomial(reduced.r);
  p = V::fma(p, reduced.r, one);
  p = V::fma(p, reduced.r, one);
  const V e = V::mul(p, V::pow2(reduced.shifted));
  return V::fma(V::mul(e, V::set1(-1)), u.low, e);
}
template <class V>
inline V scaled_down(V x) {
  return V::mul(x, V::set1(glasshead::Arithmetic<float>::kDown));
}

// x s(u); `near` is x clamped to where s(u) is not yet 0 or 1.
template <class V>
inline V times_sigmoid(V x, V near, TwoParts<V> u) {
  const V one = V::set1(1);
  const TwoParts<V> size{V::magnitude(u.high), V::mul(u.low, V::with_sign(one, u.high))};
  const V e = falling_exp(size);
  return V::div(by_sign(x, scaled_down(V::mul(near, e)), x), V::add(one, scaled_down(e)));
}

template <class V>
inline V silu_of(V x) {
  const V near = clamped(x, 128.0F);  // e^-128 rounds to 0
  return times_sigmoid(x, near, TwoParts<V>{near, V::set1(0)});
}

template <class V>
inline V quick_gelu_of(V x) {
  const V near = clamped(x, 128.0F);
  constexpr float kHigh = 1.702F;
  constexpr auto kLow = static_cast<float>(1.702 - static_cast<double>(kHigh));
  TwoParts<V> u = times(near, V::set1(kHigh));
  u.low = V::fma(near, V::set1(kLow), u.low);
  return times_sigmoid(x, near, u);
}

// u = x (c + d x^2), c = 2 sqrt(2/pi), d = 0.044715 c.
template <class V>
inline V gelu_tanh_of(V x) {
  constexpr double kC = 1.5957691216057307, kD = 0.07135481627260025;
  constexpr auto kCHigh = static_cast<float>(kC), kDHigh = static_cast<float>(kD);
  const V near = clamped(x, 16.0F);  // u = -317
  const V c = V::set1(kCHigh), d = V::set1(kDHigh);
  const TwoParts<V> square = times(near, near);
  const TwoParts<V> cubic = times(square.high, d);
  const V p = V::add(c, cubic.high);
  const V from_c = V::sub(p, cubic.high);  // what p has of c, and what it lost (Knuth's sum)
  V lost = V::add(V::sub(c, from_c), V::sub(cubic.high, V::sub(p, from_c)));
  lost = V::add(lost, V::set1(static_cast<float>(kC - static_cast<double>(kCHigh))));
  lost = V::add(lost, cubic.low);
  lost = V::fma(square.low, d, lost);
  lost = V::fma(square.high, V::set1(static_cast<float>(kD - static_cast<double>(kDHigh))), lost);
  TwoParts<V> u = times(near, p);
  u.low = V::fma(near, lost, u.low);
  return times_sigmoid(x, near, u);
}

// erfc(a/sqrt 2)/2 = exp(-a^2/2) t P(t), t = 1/(1 + a/4), a >= 0: relative error 1.1e-8 before
// rounding (tools/make_gelu_polynomial.py).
constexpr float kGelu[] = {0x1.988a38p-4F,  0x1.980ae6p-4F, 0x1.82ffcep-4F,   0x1.3a44cp-4F,
                           0x1.2bf3dep-4F,  0x1.31be86p-5F, -0x1.7cd41ap-11F, 0x1.2bf8a2p-4F,
                           -0x1.265976p-4F, 0x1.2ab6bcp-6F};
template <class V>
inline V gelu_of(V x) {
  constexpr int kTerms = sizeof kGelu / sizeof kGelu[0];
  const V near = clamped(x, 16.5F);  // exp(-16.5^2/2) rounds to 0
  const V a = V::magnitude(near);
  TwoParts<V> square = times(a, a);
  square = {V::mul(square.high, V::set1(0.5F)), V::mul(square.low, V::set1(0.5F))};
  const V t = V::div(V::set1(1), V::fma(a, V::set1(0.25F), V::set1(1)));
  V p = V::set1(kGelu[kTerms - 1]);
  for (int n = kTerms - 2; n >= 0; --n) p = V::fma(p, t, V::set1(kGelu[n]));
  const V tail = V::mul(falling_exp(square), V::mul(t, p));
  const V lost = scaled_down(V::mul(near, tail));  // x Phi(-|x|)
  return by_sign(x, lost, V::sub(x, lost));
}

template <class V>
inline V relu_of(V x) {
  return V::max(V::set1(0), x);  // of a NaN the second wins
}

// The sign of x, which a sum of zeros lost.
template <class V, V (*kBend)(V)>
inline V signed_bend(V x) {
  return V::with_sign(kBend(x), x);
}

template <class V, V (*kBend)(V)>
void bend_of(const glasshead::BendArgs& args) noexcept {
  constexpr index_t W = V::W;
  const auto bent = [&](const float* x, const float* up) __attribute__((always_inline)) {
    const V y = kBend(V::load_unaligned(x));
    return V::quiet(up == nullptr ? y : V::mul(y, V::load_unaligned(up)));
  };
  index_t n = 0;
  for (; n + W <= args.count; n += W)
    V::store_unaligned(args.x + n, bent(args.x + n, args.up == nullptr ? nullptr : args.up + n));
  if (n == args.count) return;
  alignas(64) float x[W], up[W];
  for (index_t i = 0; i < W; ++i) {
    const index_t at = n + i < args.count ? n + i : n;
    x[i] = args.x[at];
    up[i] = args.up == nullptr ? 0 : args.up[at];
  }
  V::store(x, bent(x, args.up == nullptr ? nullptr : up));
  for (index_t i = 0; n + i < args.count; ++i) args.x[n + i] = x[i];
}

template <class V>
void bend(const glasshead::BendArgs& args) noexcept {
  using glasshead::Bend;
  switch (args.bend) {
    case Bend::relu:
      return bend_of<V, relu_of<V>>(args);
    case Bend::gelu:
      return bend_of<V, signed_bend<V, gelu_of<V>>>(args);
    case Bend::gelu_tanh:
      return bend_of<V, signed_bend<V, gelu_tanh_of<V>>>(args);
    case Bend::silu:
      return bend_of<V, signed_bend<V, silu_of<V>>>(args);
    case Bend::quick_gelu:
      return bend_of<V, signed_bend<V, quick_gelu_of<V>>>(args);
    case Bend::tanh:
      return bend_of<V, tanh_of<V>>(args);
  }
}

template <class V>
constexpr glasshead::LayerKernels layer_kernels() {
  return {bend<V>};
}

}  // namespace
