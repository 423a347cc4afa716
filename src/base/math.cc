#include "base/math.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/double_double.h"
#include "base/math_tables.h"

namespace glasshead::math {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int kExponentBias = 1023;

// 2^k, k from -1022 to 1023.
double power_of_two(int k) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(k + kExponentBias) << 52);
}

// x * 2^k for 0.5 < |x| < 4 and k from -1100 to 1100: only the last product can round.
double scale_by_power_of_two(double x, int k) {
  const int half = k / 2;
  return x * power_of_two(half) * power_of_two(k - half);
}

// e^s - 1 - s for |s| < 0.0055 by Taylor's series; the first omitted term is s^7/5040 < 2^-64 s.
double exp_curve(double s) {
  return s * s * (0.5 + s * (1.0 / 6 + s * (1.0 / 24 + s * (1.0 / 120 + s / 720))));
}

// (high + low) * 2^exponent with high from 0.99 to 2.02.
struct Scaled {
  DoubleDouble value;
  int exponent;
};

// e^(high + low), |high| < 800 and low its rest; relative error below 2^-64. With
// high + low = k ln(2)/64 + r, |r| < 0.0055: 2^(k/64) e^r, the first factor from a table (P. Tang,
// Table-driven implementation of the exponential function, 1989).
Scaled exp_parts(double high, double low) {
  const double k = std::floor(high * kStepsPerUnit + 0.5);
  const double rounded = high - k * kExpStepHigh;  // exact: k has 17 bits
  const DoubleDouble r = exact_sum(rounded, low - k * kExpStepLow);
  const double curve = exp_curve(r.high);
  const int whole = static_cast<int>(k);
  const DoubleDouble start = kPowersOfTwo[static_cast<std::size_t>(whole & 63)];
  // start * (1 + r + curve); the product of the low parts is below 2^-110.
  const DoubleDouble grown = exact_product(start.high, r.high);
  const double rest = start.low * (1 + r.high) + start.high * (r.low + curve) + grown.low;
  const DoubleDouble sum = exact_sum(start.high, grown.high);
  return {quick_sum(sum.high, sum.low + rest), whole >> 6};
}

double joined(const Scaled& x) {
  return scale_by_power_of_two(x.value.high + x.value.low, x.exponent);
}

// e^x - 1, |x| < 100; relative error below 2^-56.
DoubleDouble expm1_parts(double x) {
  // Else 1 would be added and taken away again.
  if (std::fabs(x) < 0.005) return quick_sum(x, exp_curve(x));
  const Scaled e = exp_parts(x, 0);
  const double high = scale_by_power_of_two(e.value.high, e.exponent);
  const double low = e.value.low == 0 ? 0 : e.value.low * power_of_two(e.exponent);
  const DoubleDouble less = exact_sum(high, -1.0);
  return exact_sum(less.high, less.low + low);
}

// ln(high + low) for a normal high > 0 and low its rest; relative error below 2^-66. With
// high = m 2^e, m in about [0.707, 1.414], and c the table's 10-bit inverse of m:
// ln = e ln(2) - ln(c) + ln(1 + r), r = (m + low 2^-e) c - 1, |r| < 0.0068. Near 1, e = 0, c = 1
// and r is exact, so nothing cancels.
DoubleDouble log_parts(double high, double low) {
  const auto bits = std::bit_cast<std::uint64_t>(high);
  constexpr std::uint64_t kRootHalf = 0x3FE6A09E00000000;  // about sqrt(1/2)
  const std::int64_t shifted = static_cast<std::int64_t>(bits - kRootHalf) >> 52;
  const int exponent = static_cast<int>(shifted);
  const double m = std::bit_cast<double>(bits - (static_cast<std::uint64_t>(shifted) << 52));
  const int index = static_cast<int>(m * 128 + 0.5) - kFirstLogEntry;
  const LogEntry& entry = kLogEntries[static_cast<std::size_t>(index)];

  // m in two halves, so that each product with the inverse is exact.
  const double m_high = std::bit_cast<double>(std::bit_cast<std::uint64_t>(m) & 0xFFFFFFFF00000000);
  double tail = (m - m_high) * entry.inverse;
  if (low != 0) {
    const double low_scaled = exponent > 1000 ? 0 : low * power_of_two(-exponent);
    const DoubleDouble both = exact_sum(tail, low_scaled * entry.inverse);
    tail = both.high;
    low = both.low;
  }
  DoubleDouble r = exact_sum(m_high * entry.inverse - 1, tail);
  r = quick_sum(r.high, r.low + low);

  // ln(1 + r) = r - r^2/2 + r^3 (1/3 - r/4 + ...); the first omitted term is r^11/11 < 2^-75 r.
  const double s = r.high;
  const double cubic =
      s * s * s *
      (1.0 / 3 -
       s * (1.0 / 4 -
            s * (1.0 / 5 -
                 s * (1.0 / 6 - s * (1.0 / 7 - s * (1.0 / 8 - s * (1.0 / 9 - s / 10)))))));
  const DoubleDouble square = exact_product(s * -0.5, s);
  const DoubleDouble curved = r + DoubleDouble{square.high, square.low - s * r.low + cubic};
  const DoubleDouble powers = exact_sum(exponent * kLn2High, exponent * kLn2Low);
  return powers + entry.log + curved;
}

bool is_whole(double y) { return std::floor(y) == y; }
// Every double from 2^53 on is even.
bool is_odd(double y) {
  return std::fabs(y) < 0x1p53 && is_whole(y) && (static_cast<std::int64_t>(y) & 1) != 0;
}

// pow where x or y is 0 or infinite, neither is NaN, y is not 0 and x is not 1.
double pow_of_extremes(double x, double y) {
  const double magnitude = std::fabs(x);
  if (std::isinf(y)) {
    if (magnitude == 1) return 1;
    return (magnitude > 1) == (y > 0) ? kInf : 0;
  }
  const double result = (magnitude > 1) == (y > 0) ? kInf : 0;
  return std::signbit(x) && is_odd(y) ? -result : result;
}

}  // namespace

double exp(double x) {
  if (std::isnan(x)) return kNan;
  if (x > 709.79) return kInf;
  if (x < -745.14) return 0;
  return joined(exp_parts(x, 0));
}

double expm1(double x) {
  if (std::isnan(x)) return kNan;
  if (std::fabs(x) < 0x1p-54) return x;
  if (x > 709.79) return kInf;
  if (x > 50) return joined(exp_parts(x, 0));  // 1 is below 2^-72 of it
  if (x < -40) return -1;
  const DoubleDouble result = expm1_parts(x);
  return result.high + result.low;
}

double log(double x) {
  if (std::isnan(x) || x < 0) return kNan;
  if (x == 0) return -kInf;
  if (x == kInf) return kInf;
  if (x < 0x1p-1022) {  // subnormal: 54 binary places up, exactly
    const DoubleDouble result =
        log_parts(x * 0x1p54, 0) + DoubleDouble{-54 * kLn2High, -54 * kLn2Low};
    return result.high + result.low;
  }
  const DoubleDouble result = log_parts(x, 0);
  return result.high + result.low;
}

double log1p(double x) {
  if (std::isnan(x) || x < -1) return kNan;
  if (x == -1) return -kInf;
  if (x == kInf) return kInf;
  if (std::fabs(x) < 0x1p-54) return x;
  const DoubleDouble sum = exact_sum(1.0, x);
  const DoubleDouble result = log_parts(sum.high, sum.low);
  return result.high + result.low;
}

// With E = e^(2|x|) - 1: tanh = E / (E + 2).
double tanh(double x) {
  if (std::isnan(x)) return kNan;
  const double magnitude = std::fabs(x);
  if (magnitude < 0x1p-28) return x;               // x^3/3 is below half an ulp
  if (magnitude > 20) return std::copysign(1, x);  // 1 - tanh is below 2^-56
  const DoubleDouble top = expm1_parts(2 * magnitude);
  const DoubleDouble bottom = top + DoubleDouble{2, 0};
  const double quotient = top.high / bottom.high;
  const DoubleDouble back = bottom * quotient;
  const double rest = ((top.high - back.high) - back.low + top.low) / bottom.high;
  return std::copysign(quotient + rest, x);
}

// Taylor's series of erf around the nearest c = k/16. With g(h) = erf'(c + h)/erf'(c) =
// e^(-2ch - h^2), g' = -2 (c + h) g gives the coefficients one from the next:
// (n + 1) g[n+1] = -2 (c g[n] + g[n-1]), and erf(c + h) = erf(c) + erf'(c) h (1 + sum of
// g[n] h^n / (n + 1)).
double erf(double x) {
  if (std::isnan(x)) return kNan;
  const double magnitude = std::fabs(x);
  if (magnitude >= 6) return std::copysign(1, x);  // 1 - erf(6) is 2e-17, below 2^-55
  if (magnitude < 0x1p-28) {  // x^3/3 is below half an ulp; scaled, since parts may be subnormal
    const DoubleDouble line = kErfEntries[0].slope * (magnitude * 0x1p100);
    return std::copysign((line.high + line.low) * 0x1p-100, x);
  }
  // Not by adding a half, which rounds up just below 1/32, and then h is not exact.
  const int index = (static_cast<int>(magnitude * 32) + 1) / 2;
  const ErfEntry& entry = kErfEntries[static_cast<std::size_t>(index)];
  const double c = index * 0.0625;
  const double h = magnitude - c;  // exact: |h| <= 1/32 <= magnitude, or c is 0

  constexpr int kTerms =
      14;  // at c = 6 the whole correction is below 2^-50, elsewhere it converges
  constexpr std::array<double, kTerms + 2> kInverse = [] {
    std::array<double, kTerms + 2> inverse{};
    for (int n = 1; n < kTerms + 2; ++n) inverse[static_cast<std::size_t>(n)] = 1.0 / n;
    return inverse;
  }();
  double before = 0;  // g[n-1] h^(n-1)
  double here = 1;    // g[n] h^n
  double sum = 0;
  for (std::size_t n = 0; n < kTerms; ++n) {
    const double next = -2 * h * (c * here + h * before) * kInverse[n + 1];
    before = here;
    here = next;
    sum += next * kInverse[n + 2];
  }
  const DoubleDouble line = entry.slope * h;
  const DoubleDouble total = entry.value + DoubleDouble{line.high, line.low + line.high * sum};
  return std::copysign(total.high + total.low, x);
}

// |x|^y = e^(y ln|x|), the logarithm with 13 bits more than a double has: its error is multiplied
// by up to 745.
double pow(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (std::isnan(x) || std::isnan(y)) return kNan;
  if (x == 0 || std::isinf(x) || std::isinf(y)) return pow_of_extremes(x, y);
  if (x < 0 && !is_whole(y)) return kNan;
  const bool is_negative = x < 0 && is_odd(y);
  const double sign = is_negative ? -1 : 1;
  const double magnitude = std::fabs(x);
  if (magnitude == 1) return sign;
  // |ln|x|| is from 2^-53 to 745, so beyond these y the result is certain.
  if (std::fabs(y) > 0x1p64) return (magnitude > 1) == (y > 0) ? sign * kInf : sign * 0;
  if (std::fabs(y) < 0x1p-65) return 1;

  const DoubleDouble log_x = magnitude < 0x1p-1022 ? log_parts(magnitude * 0x1p54, 0) +
                                                         DoubleDouble{-54 * kLn2High, -54 * kLn2Low}
                                                   : log_parts(magnitude, 0);
  const DoubleDouble exponent = log_x * y;
  if (exponent.high > 709.79) return sign * kInf;
  if (exponent.high < -745.14) return sign * 0;
  return sign * joined(exp_parts(exponent.high, exponent.low));
}

}  // namespace glasshead::math
