// exp and tanh of the arithmetic: how far from the exact value, and the same bits from every set.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "core/row_reference.h"
#include "kernels/arithmetic.h"
#include "random_rows.h"
#include "sets.h"

namespace glasshead::test {
namespace {

#ifdef GLASSHEAD_EMULATED_MACHINE
constexpr int kShare = 50;
#else
constexpr int kShare = 1;
#endif

// The bounds of kernels/arithmetic.h.
constexpr double kExpUlps = 0.95, kTanhUlps = 2.8;

// Distance in units in the last place of T at the exact value (2^-149 or 2^-1074 at least).
template <class T>
double ulps(T got, long double exact) {
  int exponent = 0;
  std::frexp(static_cast<double>(exact), &exponent);
  constexpr int kDigits = std::numeric_limits<T>::digits;
  const int last = std::max(exponent - kDigits, std::numeric_limits<T>::min_exponent - kDigits);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - exact) /
                             std::ldexp(1.0L, last));
}

// Every 1,000th float of [low, high], and every one of 20,000 at either end. Same sign only.
std::vector<float> floats(float low, float high) {
  const auto first = std::bit_cast<std::uint32_t>(low), last = std::bit_cast<std::uint32_t>(high);
  const auto begin = std::min(first, last), end = std::max(first, last);
  std::vector<float> all;
  for (std::uint32_t n = begin; n <= end; n += 1000 * kShare)
    all.push_back(std::bit_cast<float>(n));
  for (std::uint32_t n = 0; n < 20000 / kShare; ++n) {
    all.push_back(std::bit_cast<float>(begin + n));
    all.push_back(std::bit_cast<float>(end - n));
  }
  return all;
}

// A million doubles: half evenly in [low, high], half evenly in their logarithm.
std::vector<double> doubles(double low, double high) {
  Random random(17);
  std::vector<double> all;
  for (int n = 0; n < 500000 / kShare; ++n) {
    all.push_back(low + (high - low) * random.uniform());
    all.push_back((low < 0 ? low : high) *
                  std::ldexp(random.uniform(), -static_cast<int>(random.below(60))));
  }
  return all;
}

template <class T, class F>
double worst(const std::vector<T>& all, T (*ours)(T), const F& exact) {
  double most = 0;
  for (const T x : all) most = std::max(most, ulps(ours(x), exact(x)));
  return most;
}

// Exact enough for float: the C library's double functions, which err by less than an ulp of
// theirs; for double its long double ones.
double exact_exp(float x) { return std::exp(static_cast<double>(x)); }
double exact_tanh(float x) { return std::tanh(static_cast<double>(x)); }
long double exact_exp(double x) { return std::exp(static_cast<long double>(x)); }
long double exact_tanh(double x) { return std::tanh(static_cast<long double>(x)); }

TEST(Exp, is_within_the_stated_error_in_float) {
  const double most = worst(floats(-0.0F, Arithmetic<float>::kSmallest), row_exp<float>,
                            [](float x) { return exact_exp(x); });
  RecordProperty("ulps", std::to_string(most));
  EXPECT_LE(most, kExpUlps) << most;
}
TEST(Exp, is_within_the_stated_error_in_double) {
  const double most = worst(doubles(Arithmetic<double>::kSmallest, 0.0), row_exp<double>,
                            [](double x) { return exact_exp(x); });
  RecordProperty("ulps", std::to_string(most));
  EXPECT_LE(most, kExpUlps) << most;
}
TEST(Tanh, is_within_the_stated_error_in_float) {
  const auto exact = [](float x) { return exact_tanh(x); };
  const double most = std::max(worst(floats(0.0F, 40.0F), row_tanh<float>, exact),
                               worst(floats(-0.0F, -40.0F), row_tanh<float>, exact));
  RecordProperty("ulps", std::to_string(most));
  EXPECT_LE(most, kTanhUlps) << most;
}
TEST(Tanh, is_within_the_stated_error_in_double) {
  const auto exact = [](double x) { return exact_tanh(x); };
  const double most = std::max(worst(doubles(0.0, 50.0), row_tanh<double>, exact),
                               worst(doubles(-2.0, 0.0), row_tanh<double>, exact));
  RecordProperty("ulps", std::to_string(most));
  EXPECT_LE(most, kTanhUlps) << most;
}

template <class T>
void expect_exact_cases() {
  using Limits = std::numeric_limits<T>;
  constexpr T kInfinity = Limits::infinity();
  constexpr T kSmallest = Arithmetic<T>::kSmallest;
  EXPECT_EQ(row_exp(T(0)), T(1));
  EXPECT_EQ(row_exp(-T(0)), T(1));
  EXPECT_EQ(row_exp(-kInfinity), T(0));
  EXPECT_FALSE(std::signbit(row_exp(-kInfinity)));
  EXPECT_EQ(row_exp(Limits::lowest()), T(0));
  EXPECT_EQ(row_exp(std::nextafter(kSmallest, -kInfinity)), T(0));
  EXPECT_EQ(row_exp(kSmallest), T(0));
  // Between half the smallest subnormal number and itself.
  EXPECT_EQ(row_exp(sizeof(T) == sizeof(float) ? T(-103.9) : T(-745.1)), Limits::denorm_min());
  EXPECT_TRUE(std::isnan(row_exp(Limits::quiet_NaN())));

  for (const T x : {T(0), Limits::denorm_min(), Limits::min()}) {  // tanh x rounds to x
    EXPECT_EQ(row_tanh(x), x);
    EXPECT_EQ(row_tanh(-x), -x);
    EXPECT_TRUE(std::signbit(row_tanh(-x)));
  }
  for (const T x : {Arithmetic<T>::kLargestTwice / 2, T(1e30), Limits::max(), kInfinity}) {
    EXPECT_EQ(row_tanh(x), T(1));
    EXPECT_EQ(row_tanh(-x), T(-1));
  }
  EXPECT_TRUE(std::isnan(row_tanh(Limits::quiet_NaN())));
}
TEST(Exp, and_tanh_are_exact_where_they_must_be) {
  expect_exact_cases<float>();
  expect_exact_cases<double>();
}

// Two polynomials meet where n changes: 4,000 floats around each such place, in order.
TEST(Exp, never_falls_as_x_rises_where_its_polynomials_meet) {
  for (int n = 0; n <= 125; n += kShare > 1 ? 25 : 1) {
    auto x = static_cast<float>(-(n + 0.5) * 0.69314718055994531);
    for (int i = 0; i < 2000; ++i) x = std::nextafter(x, -1e9F);
    float last = row_exp(x);
    for (int i = 0; i < 4000; ++i) {
      x = std::nextafter(x, 1e9F);
      const float next = row_exp(x);
      ASSERT_GE(next, last) << "at " << x;
      last = next;
    }
  }
}

template <class T>
void expect_same_bits_from_every_set() {
  std::vector<T> exponents, angles;
  if constexpr (sizeof(T) == 4) {
    exponents = floats(-0.0F, -104.0F);
    angles = floats(0.0F, 40.0F);
  } else {
    exponents = doubles(-760.0, 0.0);
    angles = doubles(-50.0, 50.0);
  }
  using Limits = std::numeric_limits<T>;
  for (const T x : {Limits::infinity(), Limits::max(), Limits::min(), Limits::denorm_min(), T(0)}) {
    exponents.push_back(-x);
    angles.push_back(x);
    angles.push_back(-x);
  }
  const auto compare = [](const std::vector<T>& all, T (*expected)(T), auto function) {
    std::vector<T> got(all.size());
    function(all.data(), got.data(), static_cast<index_t>(all.size()));
    for (std::size_t n = 0; n < all.size(); ++n) {
      const T x = expected(all[n]);
      ASSERT_EQ(std::memcmp(&got[n], &x, sizeof x), 0) << "at " << all[n];
    }
  };
  for (const KernelSet& set : runnable_sets()) {
    SCOPED_TRACE(set.name);
    compare(exponents, row_exp<T>, kernels_of<T>(set).exp);
    compare(angles, row_tanh<T>, kernels_of<T>(set).tanh);
    T nan = Limits::quiet_NaN(), result = 0;
    kernels_of<T>(set).exp(&nan, &result, 1);
    EXPECT_TRUE(std::isnan(result));
    kernels_of<T>(set).tanh(&nan, &result, 1);
    EXPECT_TRUE(std::isnan(result));
  }
}
TEST(Exp, and_tanh_are_the_same_bits_from_every_set) {
  expect_same_bits_from_every_set<float>();
  expect_same_bits_from_every_set<double>();
}

}  // namespace
}  // namespace glasshead::test
