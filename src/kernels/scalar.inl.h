// One lane as a vector (panel.inl.h). The fused multiply-add is the C library's where the target
// has no instruction for it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/arithmetic.h"

namespace {

template <class Float, class Bits>
struct Scalar {
  using T = Float;
  static constexpr int W = 1;
  T x;

  static Scalar set1(T a) { return {a}; }
  static Scalar load(const T* from) { return {*from}; }
  static void store(T* to, Scalar a) { *to = a.x; }
  static Scalar load_unaligned(const T* from) { return {*from}; }
  static void store_unaligned(T* to, Scalar a) { *to = a.x; }
  static Scalar in_register(Scalar a) { return a; }
  static Scalar add(Scalar a, Scalar b) { return {a.x + b.x}; }
  static Scalar sub(Scalar a, Scalar b) { return {a.x - b.x}; }
  static Scalar mul(Scalar a, Scalar b) { return {a.x * b.x}; }
  static Scalar div(Scalar a, Scalar b) { return {a.x / b.x}; }
  static Scalar fma(Scalar a, Scalar b, Scalar c) {
    if constexpr (sizeof(T) == sizeof(float))
      return {__builtin_fmaf(a.x, b.x, c.x)};
    else
      return {__builtin_fma(a.x, b.x, c.x)};
  }
  static Scalar accumulate(Scalar a, Scalar b, Scalar s) { return fma(a, b, s); }
  static Scalar max(Scalar a, Scalar b) { return a.x > b.x ? a : b; }
  static Scalar min(Scalar a, Scalar b) { return a.x < b.x ? a : b; }
  static Scalar hide(Scalar a, std::uint32_t bits) {
    return (bits & 1) != 0 ? a : Scalar{-static_cast<T>(__builtin_inf())};
  }
  static Scalar keep(Scalar a, Scalar b, std::uint32_t bits) { return (bits & 1) != 0 ? a : b; }
  static Scalar zero_below(Scalar x, Scalar limit, Scalar a) {
    return x.x < limit.x ? Scalar{0} : a;
  }
  static Scalar zero_where_zero(Scalar s, Scalar a) { return s.x == 0 ? Scalar{0} : a; }
  static Scalar pow2(Scalar shifted) {
    return of(static_cast<Bits>(bits_of(shifted) << glasshead::Arithmetic<T>::kMantissaBits));
  }
  static Scalar magnitude(Scalar a) { return of(bits_of(a) & ~kSign); }
  static Scalar with_sign(Scalar a, Scalar b) {
    return of((bits_of(a) & ~kSign) | (bits_of(b) & kSign));
  }
  static Scalar quiet(Scalar a) {
    return a.x != a.x ? Scalar{static_cast<T>(__builtin_nan(""))} : a;
  }
  static Scalar scaled(Scalar a, double s) {
    return {static_cast<T>(static_cast<double>(a.x) * s)};
  }
  static void transpose(Scalar (&)[1]) {}

  using Word = std::uint32_t;
  static Word load_word(const std::uint32_t* from) { return *from; }
  static Word both(Word a, std::uint32_t mask) { return a & mask; }
  static Word either(Word a, Word b) { return a | b; }
  template <int N>
  static Word moved(Word a) {
    return N >= 0 ? a << (N & 31) : a >> (-N & 31);
  }
  static Scalar whole(Word a) { return {static_cast<T>(a)}; }

 private:
  static constexpr Bits kSign = Bits{1} << (8 * sizeof(T) - 1);
  static Bits bits_of(Scalar a) { return __builtin_bit_cast(Bits, a.x); }
  static Scalar of(Bits bits) { return {__builtin_bit_cast(T, bits)}; }
};

}  // namespace
