// sin and cos of base/math.h.
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/double_double.h"
#include "base/math.h"
#include "base/math_tables.h"

namespace glasshead::math {
namespace {

// x = quadrant * pi/2 + rest (modulo 2 pi), |rest| <= pi/4 and a little.
struct Reduced {
  int quadrant;  // 0 to 3
  DoubleDouble rest;
};

// 32 digits of 2/pi from binary place `place` on; place 0 is the first of the table's zeros.
std::uint32_t digits_from(int place) {
  const auto word = static_cast<std::size_t>(place / 32);
  const int shift = place % 32;
  const std::uint64_t pair =
      (static_cast<std::uint64_t>(kTwoOverPi[word]) << 32) | kTwoOverPi[word + 1];
  return static_cast<std::uint32_t>(pair >> (32 - shift));
}

constexpr std::size_t kWords = 6;
using Fraction = std::array<std::uint32_t, kWords>;  // most significant word first

// M * 2/pi * 2^e modulo 4 as a multiple of 2^-190, for x = M * 2^e. Digits of 2/pi that only
// contribute multiples of 4 are left out in front; 192 digits are used from there, and those after
// them contribute less than 2^-137. The nearest that a double comes to a multiple of pi/2 is
// 2^-61, so the rest keeps 75 correct bits.
Fraction turns(std::uint64_t significand, int exponent) {
  constexpr int kZeros = 64;
  const int start = exponent - 2 + kZeros;  // place exponent - 1, counted from 1
  const std::array<std::uint64_t, 2> factors{significand & 0xFFFFFFFF, significand >> 32};
  Fraction product{};
  for (std::size_t f = 0; f < 2; ++f) {
    std::uint64_t carry = 0;
    for (std::size_t n = kWords - f; n-- > 0;) {  // word n of the product, from the last one on
      const std::uint64_t digits = digits_from(start + 32 * static_cast<int>(n + f));
      const std::uint64_t sum = digits * factors[f] + product[n] + carry;
      product[n] = static_cast<std::uint32_t>(sum);
      carry = sum >> 32;
    }
  }
  return product;
}

Fraction negated(Fraction x) {
  std::uint32_t carry = 1;
  for (std::size_t n = kWords; n-- > 0;) {
    x[n] = ~x[n] + carry;
    carry = carry != 0 && x[n] == 0 ? 1 : 0;
  }
  return x;
}

// The 53 bits of x from bit `first` on (0 is the most significant), as an integer.
double bits_from(const Fraction& x, int first) {
  std::uint64_t value = 0;
  for (int place = first; place < first + 53; ++place) {
    value <<= 1;
    if (place < 32 * static_cast<int>(kWords))
      value |= (x[static_cast<std::size_t>(place / 32)] >> (31 - place % 32)) & 1;
  }
  return static_cast<double>(value);
}

double power_of_two(int k) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52);
}

// Payne and Hanek, Radian reduction for trigonometric functions, 1983; x > pi/4, finite.
Reduced reduce(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t implicit = std::uint64_t{1} << 52;
  const int exponent = static_cast<int>(bits >> 52) - 1023 - 52;
  Fraction turn = turns((bits & (implicit - 1)) | implicit, exponent);
  int quadrant = static_cast<int>(turn[0] >> 30);
  turn[0] &= 0x3FFFFFFF;
  const bool is_above_half = (turn[0] >> 29) != 0;
  if (is_above_half) {
    quadrant = (quadrant + 1) & 3;
    turn = negated(turn);
    turn[0] &= 0x3FFFFFFF;
  }
  int first = 2;  // bit 2 is worth 1/2
  while (first < 130 &&
         ((turn[static_cast<std::size_t>(first / 32)] >> (31 - first % 32)) & 1) == 0)
    ++first;
  const double high = bits_from(turn, first) * power_of_two(-(first + 51));
  const double low = bits_from(turn, first + 53) * power_of_two(-(first + 104));
  const double sign = is_above_half ? -1 : 1;
  const DoubleDouble scaled = kHalfPi * (sign * high);
  return {quadrant, quick_sum(scaled.high, scaled.low + sign * low * kHalfPi.high)};
}

Reduced reduce_magnitude(double magnitude) {
  constexpr double kQuarterPi = 0.7853981633974483;
  if (magnitude <= kQuarterPi) return {0, {magnitude, 0}};
  return reduce(magnitude);
}

// Taylor's series; the first omitted terms are r^19/19! < 2^-63 and r^20/20! < 2^-67.
double sin_near_zero(DoubleDouble r) {
  const double h = r.high;
  const double z = h * h;
  const double series =
      -1.0 / 6 +
      z * (1.0 / 120 +
           z * (-1.0 / 5040 +
                z * (1.0 / 362880 +
                     z * (-1.0 / 39916800 + z * (1.0 / 6227020800 + z * (-1.0 / 1307674368000 +
                                                                         z / 355687428096000))))));
  return h + (r.low * (1 - 0.5 * z) + h * z * series);
}

double cos_near_zero(DoubleDouble r) {
  const double h = r.high;
  const DoubleDouble square = exact_product(h, h);
  const double z = square.high;
  const double series =
      1.0 / 24 +
      z * (-1.0 / 720 +
           z * (1.0 / 40320 + z * (-1.0 / 3628800 +
                                   z * (1.0 / 479001600 +
                                        z * (-1.0 / 87178291200 +
                                             z * (1.0 / 20922789888000 - z / 6402373705728000))))));
  const DoubleDouble start = quick_sum(1, -0.5 * z);
  return start.high + (start.low - 0.5 * square.low - h * r.low + z * z * series);
}

}  // namespace

double sin(double x) {
  if (std::isnan(x) || std::isinf(x)) return std::numeric_limits<double>::quiet_NaN();
  if (std::fabs(x) < 0x1p-27) return x;  // x^3/6 is below half an ulp
  const Reduced at = reduce_magnitude(std::fabs(x));
  const double value = (at.quadrant & 1) != 0 ? cos_near_zero(at.rest) : sin_near_zero(at.rest);
  const bool is_negative = ((at.quadrant & 2) != 0) != (x < 0);
  return is_negative ? -value : value;
}

double cos(double x) {
  if (std::isnan(x) || std::isinf(x)) return std::numeric_limits<double>::quiet_NaN();
  const Reduced at = reduce_magnitude(std::fabs(x));
  const double value = (at.quadrant & 1) != 0 ? sin_near_zero(at.rest) : cos_near_zero(at.rest);
  const bool is_negative = at.quadrant == 1 || at.quadrant == 2;
  return is_negative ? -value : value;
}

}  // namespace glasshead::math
