// An unevaluated sum of two doubles, high + low with |low| at most half an ulp of high: about 106
// bits out of + - * alone. Without fused operations the exact product needs Dekker's splitting, so
// operands of exact_product stay below 2^995 and products above 2^-960.
// T. J. Dekker, A floating-point technique for extending the available precision, 1971.
#pragma once

namespace glasshead::math {

struct DoubleDouble {
  double high = 0;
  double low = 0;
};

// a + b exactly; |a| >= |b| or a == 0.
constexpr DoubleDouble quick_sum(double a, double b) {
  const double high = a + b;
  return {high, b - (high - a)};
}

// a + b exactly.
constexpr DoubleDouble exact_sum(double a, double b) {
  const double high = a + b;
  const double b_part = high - a;
  return {high, (a - (high - b_part)) + (b - b_part)};
}

// a * b exactly.
constexpr DoubleDouble exact_product(double a, double b) {
  constexpr double kSplitter = 0x1p27 + 1;
  const double a_scaled = kSplitter * a;
  const double a_high = a_scaled - (a_scaled - a);
  const double a_low = a - a_high;
  const double b_scaled = kSplitter * b;
  const double b_high = b_scaled - (b_scaled - b);
  const double b_low = b - b_high;
  const double high = a * b;
  return {high, ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

// Relative error at most 2^-100 or so each, unless a sum cancels.
constexpr DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble high = exact_sum(a.high, b.high);
  const DoubleDouble low = exact_sum(a.low, b.low);
  const DoubleDouble sum = quick_sum(high.high, high.low + low.high);
  return quick_sum(sum.high, sum.low + low.low);
}

constexpr DoubleDouble operator*(DoubleDouble a, double b) {
  const DoubleDouble product = exact_product(a.high, b);
  return quick_sum(product.high, product.low + a.low * b);
}

}  // namespace glasshead::math
