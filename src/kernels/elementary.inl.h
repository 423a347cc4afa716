// exp and tanh of arithmetic.h over a vector type V (see vector.inl.h for its operations).
#pragma once

#include "kernels/arithmetic.h"

namespace {

// P(r), in Horner's form.
template <class V>
inline V exp_polynomial(V r) {
  using A = glasshead::Arithmetic<typename V::T>;
  V p = V::set1(A::kP[A::kTerms - 1]);
  for (int n = A::kTerms - 2; n >= 0; --n) p = V::fma(p, r, V::set1(A::kP[n]));
  return p;
}

// x = n ln 2 + r. `shifted` holds n in its low bits, as V::pow2 wants it.
template <class V>
struct Reduced {
  V shifted, r;
};
template <class V>
inline Reduced<V> reduce(V x) {
  using A = glasshead::Arithmetic<typename V::T>;
  const V shifted = V::fma(x, V::set1(A::kLog2e), V::set1(A::kRound));
  const V n = V::sub(shifted, V::set1(A::kRound));
  const V r = V::fma(n, V::set1(-A::kLn2High), x);
  return {shifted, V::fma(n, V::set1(-A::kLn2Low), r)};
}

// e^x for x <= 0; NaN stays NaN, -inf gives 0.
template <class V>
inline V exp_of(V x) {
  using A = glasshead::Arithmetic<typename V::T>;
  const Reduced<V> reduced = reduce(x);
  const V one = V::set1(1);
  V p = exp_polynomial(reduced.r);
  p = V::fma(p, reduced.r, one);
  p = V::fma(p, reduced.r, one);
  p = V::mul(V::mul(p, V::pow2(reduced.shifted)), V::set1(A::kDown));
  return V::zero_below(x, V::set1(A::kSmallest), p);
}

// Every y; NaN stays NaN.
template <class V>
inline V tanh_of(V y) {
  using A = glasshead::Arithmetic<typename V::T>;
  const V largest = V::set1(A::kLargestTwice);
  const V magnitude = V::magnitude(y);
  const V x = V::min(largest, V::add(magnitude, magnitude));  // the second operand wins: NaN stays
  const Reduced<V> reduced = reduce(x);
  const V squared = V::mul(reduced.r, reduced.r);
  const V small = V::fma(exp_polynomial(reduced.r), squared, reduced.r);  // expm1(r)
  const V power = V::mul(V::pow2(reduced.shifted), V::set1(A::kDown));
  const V e = V::fma(power, small, V::sub(power, V::set1(1)));
  return V::with_sign(V::div(e, V::add(e, V::set1(2))), y);
}

}  // namespace
