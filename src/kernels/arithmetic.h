// The constants of `arithmetic/1`: the order in which a row of attention is computed, and the
// polynomials it is computed with. Every kernel set and core/row_reference, the literal scalar form
// that the kernels are compared with to the bit, read them from here; a change to any of them is a
// new version of the arithmetic and a release note.
//
//     exp(x), x <= 0:  n = round(x log2(e));  r = x - n ln2_high - n ln2_low
//                      exp = (1 + r + r^2 P(r)) 2^(n + 64) 2^-64,   x at least smallest
//     tanh(y):         e = expm1(min(2|y|, largest));  tanh = sign(y) e / (e + 2)
//     expm1(x), x>=0:  2^n (r + r^2 P(r)) + (2^n - 1)
//
// Two factors, because 2^n alone is no normal number where the result is subnormal: those are
// results like any other (a weight of 1e-40 may meet a value of 1e38).
//
// P is the minimax polynomial of the relative error of exp on |r| <= ln2/2 (Remez exchange in 60
// digits, coefficients then rounded): 3.1e-9 in float, 3.6e-18 in double before rounding
// (tools/make_exp_polynomial.py). exp errs by at most 0.95 ulp (0.882 over every float, 0.918 over
// 60 million doubles), tanh by 2.8 (2.61, 2.68); tests/kernels/elementary_test.cc measures. Of the
// 1.1e9 pairs of neighbouring floats 2,885 of exp fall, by one ulp, and 771,846 of tanh.
#pragma once

#include <cstdint>

namespace glasshead {

using index_t = std::int64_t;  // as in glasshead/tensor.h, which kernels don't include

inline constexpr int kArithmetic = 1;       // the version that these numbers and the order make up
inline constexpr index_t kBlock = 128;      // keys that share one maximum; absolute multiples
inline constexpr index_t kChunk = 1024;     // keys of one running state; absolute multiples
inline constexpr index_t kPartialSums = 8;  // partial sums of a block's exp, by key mod 8

namespace {  // of its own in every object: an instruction set's exports nothing but its table

template <class T>
struct Arithmetic;

template <>
struct Arithmetic<float> {
  static constexpr float kStart = -0x1.fffffep+127F;  // the maximum over no keys: -FLT_MAX
  static constexpr float kLog2e = 0x1.715476p+0F;
  static constexpr float kLn2High = 0x1.62e4p-1F;  // 15 bits: its product with n is exact
  static constexpr float kLn2Low = 0x1.7f7d1cp-20F;
  // exp rounds to 0 from -104 on. Here n + 64 + 127 is 0 and so is the factor of two: hidden keys
  // cost no underflow, which takes AMD's processors longer than a product.
  static constexpr float kSmallest = -132.4F;
  // Adding it rounds to a whole number n and leaves n + 64 + 127 in the low bits of the float.
  static constexpr float kRound = 0x1.8p+23F + 191.0F;
  static constexpr float kDown = 0x1p-64F;
  static constexpr int kMantissaBits = 23;
  static constexpr int kTerms = 5;  // P's coefficients, lowest power first
  static constexpr float kP[kTerms] = {0x1.fffffcp-2F, 0x1.555492p-3F, 0x1.5558f2p-5F,
                                       0x1.1239e2p-7F, 0x1.6a2434p-10F};
  static constexpr float kLargestTwice = 20.0F;  // tanh(10) rounds to 1
};

template <>
struct Arithmetic<double> {
  static constexpr double kStart = -0x1.fffffffffffffp+1023;
  static constexpr double kLog2e = 0x1.71547652b82fep+0;
  static constexpr double kLn2High = 0x1.62e42feep-1;  // 32 bits
  static constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  static constexpr double kSmallest = -753.4;  // likewise: n is -1087
  static constexpr double kRound = 0x1.8p+52 + 1087.0;
  static constexpr double kDown = 0x1p-64;
  static constexpr int kMantissaBits = 52;
  static constexpr int kTerms = 10;
  static constexpr double kP[kTerms] = {
      0x1.000000000000ap-1,  0x1.55555555554fap-3,  0x1.555555555087cp-5,  0x1.1111111127be5p-7,
      0x1.6c16c1842a126p-10, 0x1.a01a012a57b5ep-13, 0x1.a0199a0c66195p-16, 0x1.71df255235e0bp-19,
      0x1.28ad72cd4ab37p-22, 0x1.ad7f6f0e24922p-26};
  static constexpr double kLargestTwice = 44.0;
};

}  // namespace

}  // namespace glasshead
