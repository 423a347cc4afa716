#include "base/math.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace glasshead {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kMax = std::numeric_limits<double>::max();
constexpr double kLeast = 5e-324;

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

// The functions with the bounds that math.h states, in ulp.
struct Function {
  const char* name;
  double (*ours)(double);
  long double (*reference)(long double);
  double bound;
};
constexpr double kSubnormalBound = 0.8;

long double reference_exp(long double x) { return std::exp(x); }
long double reference_expm1(long double x) { return std::expm1(x); }
long double reference_log(long double x) { return std::log(x); }
long double reference_log1p(long double x) { return std::log1p(x); }
long double reference_tanh(long double x) { return std::tanh(x); }
long double reference_erf(long double x) { return std::erf(x); }
long double reference_sin(long double x) { return std::sin(x); }
long double reference_cos(long double x) { return std::cos(x); }

constexpr Function kExp{"exp", math::exp, reference_exp, 0.51};
constexpr Function kExpm1{"expm1", math::expm1, reference_expm1, 0.55};
constexpr Function kLog{"log", math::log, reference_log, 0.51};
constexpr Function kLog1p{"log1p", math::log1p, reference_log1p, 0.51};
constexpr Function kTanh{"tanh", math::tanh, reference_tanh, 0.55};
constexpr Function kErf{"erf", math::erf, reference_erf, 0.55};
constexpr Function kSin{"sin", math::sin, reference_sin, 0.8};
constexpr Function kCos{"cos", math::cos, reference_cos, 0.8};
constexpr double kPowBound = 0.51;

double ulp(double x) {
  const int exponent = x == 0 ? -1074 : std::max(std::ilogb(x) - 52, -1074);
  return std::ldexp(1.0, exponent);
}

bool is_subnormal(double x) { return std::fabs(x) < std::numeric_limits<double>::min(); }

// One row of tests/base/data/math.txt: the exact value is nearest + rest ulp, rest to 3 decimals.
struct Row {
  std::string name;
  std::vector<double> x;
  double nearest = 0;
  double rest = 0;
};

std::vector<Row> rows_of(const std::string& name) {
  std::ifstream file(GLASSHEAD_SOURCE_DIR "/tests/base/data/math.txt");
  std::vector<Row> rows;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    Row row;
    words >> row.name;
    if (row.name != name) continue;
    std::vector<double> numbers;
    const int count = name == "pow" ? 3 : 2;
    for (int n = 0; n < count; ++n) {
      std::string pattern;
      words >> pattern;
      numbers.push_back(std::bit_cast<double>(std::stoull(pattern, nullptr, 16)));
    }
    row.nearest = numbers.back();
    numbers.pop_back();
    row.x = numbers;
    int thousandths = 0;
    words >> thousandths;
    row.rest = thousandths / 1000.0;
    rows.push_back(row);
  }
  return rows;
}

template <class Ours>
void agrees_with_table(const std::string& name, double bound, Ours ours) {
  const std::vector<Row> rows = rows_of(name);
  ASSERT_GE(rows.size(), 400U);
  for (const Row& row : rows) {
    const double got = ours(row);
    // The difference of neighbouring doubles is exact.
    const double error = std::fabs((got - row.nearest) / ulp(row.nearest) - row.rest);
    const double allowed = is_subnormal(row.nearest) ? kSubnormalBound : bound;
    EXPECT_LE(error, allowed + 0.0005) << name << "(" << std::hexfloat << row.x[0] << ")";
  }
}

TEST(Math, every_function_is_within_its_bound_of_the_exact_value) {
  for (const Function& f : {kExp, kExpm1, kLog, kLog1p, kTanh, kErf, kSin, kCos})
    agrees_with_table(f.name, f.bound, [&](const Row& row) { return f.ours(row.x[0]); });
  agrees_with_table("pow", kPowBound, [](const Row& row) { return math::pow(row.x[0], row.x[1]); });
}

// The sweeps compare with the C library's long double functions, whose own error, with 64 bits, is
// a thousandth of our ulp.
#if LDBL_MANT_DIG == 64
constexpr double kReferenceError = 0.002;

double error_in_ulp(double got, long double exact) {
  const auto size = static_cast<double>(exact);
  return static_cast<double>((static_cast<long double>(got) - exact) / ulp(size));
}

struct Range {
  double low, high;
  bool is_by_exponent;  // arguments +-2^e, e from low to high
};

double sweep(const Function& f, const Range& range) {
  std::mt19937_64 random(11);
  double largest = 0;
  for (int n = 0; n < 200000; ++n) {
    const double u = static_cast<double>(random() >> 11) * 0x1p-53;
    double x = range.low + (range.high - range.low) * u;
    if (range.is_by_exponent) x = (n % 2 == 0 ? 1 : -1) * std::exp2(x);
    const long double exact = f.reference(x);
    if (!std::isfinite(static_cast<double>(exact))) continue;
    const double error = std::fabs(error_in_ulp(f.ours(x), exact));
    const bool is_small = is_subnormal(static_cast<double>(exact));
    EXPECT_LE(error, (is_small ? kSubnormalBound : f.bound) + kReferenceError)
        << f.name << "(" << std::hexfloat << x << ")";
    if (!is_small) largest = std::max(largest, error);
  }
  return largest;
}

void sweep_all(const Function& f, std::initializer_list<Range> ranges) {
  double largest = 0;
  for (const Range& range : ranges) largest = std::max(largest, sweep(f, range));
  testing::Test::RecordProperty("largest_error_in_thousandths_of_an_ulp",
                                static_cast<int>(largest * 1000));
  std::printf("%s: at most %.4f ulp, bound %.2f\n", f.name, largest, f.bound);
}

TEST(MathSweep, exp) { sweep_all(kExp, {{-745, 709.78, false}, {-2, 2, false}, {-60, 9.4, true}}); }
TEST(MathSweep, expm1) { sweep_all(kExpm1, {{-3, 3, false}, {-60, 9.4, true}}); }
TEST(MathSweep, log) { sweep_all(kLog, {{0.5, 2, false}, {0.99, 1.01, false}, {0, 1e300, false}}); }
TEST(MathSweep, log1p) { sweep_all(kLog1p, {{-0.999, 3, false}, {-60, -0.001, true}}); }
TEST(MathSweep, tanh) { sweep_all(kTanh, {{-3, 3, false}, {-60, 4.4, true}}); }
TEST(MathSweep, erf) { sweep_all(kErf, {{-6, 6, false}, {-0.2, 0.2, false}, {-60, 2.6, true}}); }
TEST(MathSweep, sin) { sweep_all(kSin, {{-10, 10, false}, {0, 1e5, false}, {-60, 62, true}}); }
TEST(MathSweep, cos) { sweep_all(kCos, {{-10, 10, false}, {0, 1e5, false}, {-60, 62, true}}); }

TEST(MathSweep, log_of_every_size) {
  std::mt19937_64 random(13);
  for (int n = 0; n < 200000; ++n) {
    const double x = std::bit_cast<double>(random() >> 1);
    if (!std::isfinite(x)) continue;
    EXPECT_LE(std::fabs(error_in_ulp(math::log(x), std::log(static_cast<long double>(x)))),
              kLog.bound + kReferenceError)
        << x;
  }
}

TEST(MathSweep, pow) {
  std::mt19937_64 random(17);
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  double largest = 0;
  for (int n = 0; n < 300000; ++n) {
    const double x = n % 2 == 0 ? std::exp2(2000 * uniform() - 1000) : 0.5 + 1.5 * uniform();
    const double y = (uniform() - 0.5) * 1400 / std::log(x);
    if (!std::isfinite(y)) continue;
    const long double exact = std::pow(static_cast<long double>(x), static_cast<long double>(y));
    const double error = std::fabs(error_in_ulp(math::pow(x, y), exact));
    EXPECT_LE(error, kPowBound + kReferenceError) << std::hexfloat << x << " to " << y;
    largest = std::max(largest, error);
  }
  std::printf("pow: at most %.4f ulp, bound %.2f\n", largest, kPowBound);
}
#endif

TEST(Math, nan_gives_nan) {
  for (const Function& f : {kExp, kExpm1, kLog, kLog1p, kTanh, kErf, kSin, kCos})
    EXPECT_TRUE(std::isnan(f.ours(kNan))) << f.name;
  EXPECT_TRUE(std::isnan(math::pow(kNan, 2)));
  EXPECT_TRUE(std::isnan(math::pow(2, kNan)));
}

TEST(Math, odd_functions_keep_the_sign_of_zero_and_of_the_smallest_numbers) {
  for (const Function& f : {kExpm1, kLog1p, kTanh, kErf, kSin}) {
    EXPECT_EQ(bits(f.ours(0.0)), bits(0.0)) << f.name;
    EXPECT_EQ(bits(f.ours(-0.0)), bits(-0.0)) << f.name;
    EXPECT_EQ(f.ours(-kLeast), -kLeast) << f.name;  // erf(x) is 1.13 x: it rounds to x as well
  }
}

TEST(Math, exp_at_its_ends) {
  EXPECT_EQ(math::exp(0), 1);
  EXPECT_EQ(math::exp(-0.0), 1);
  EXPECT_EQ(math::exp(kInf), kInf);
  EXPECT_EQ(bits(math::exp(-kInf)), bits(0.0));
  EXPECT_LT(math::exp(709.782712893384), kInf);  // ln of the largest double, rounded down
  EXPECT_EQ(math::exp(709.7827128933841), kInf);
  // Half the smallest subnormal is e^-745.13321910194120762.
  EXPECT_EQ(math::exp(-745.1332191019411), kLeast);
  EXPECT_EQ(math::exp(-745.1332191019412), 0);
  EXPECT_EQ(math::exp(1e308), kInf);
  EXPECT_EQ(math::exp(-1e308), 0);
}

TEST(Math, expm1_at_its_ends) {
  EXPECT_EQ(math::expm1(-kInf), -1);
  EXPECT_EQ(math::expm1(-800), -1);
  EXPECT_EQ(math::expm1(kInf), kInf);
  EXPECT_EQ(math::expm1(710), kInf);
}

TEST(Math, log_at_its_ends) {
  EXPECT_EQ(bits(math::log(1)), bits(0.0));
  EXPECT_EQ(math::log(0.0), -kInf);
  EXPECT_EQ(math::log(-0.0), -kInf);
  EXPECT_EQ(math::log(kInf), kInf);
  EXPECT_TRUE(std::isnan(math::log(-kLeast)));
  EXPECT_TRUE(std::isnan(math::log(-kInf)));
}

TEST(Math, log1p_at_its_ends) {
  EXPECT_EQ(math::log1p(-1), -kInf);
  EXPECT_EQ(math::log1p(kInf), kInf);
  EXPECT_TRUE(std::isnan(math::log1p(std::nextafter(-1, -2))));
  EXPECT_EQ(math::log1p(kMax), math::log(kMax));
}

TEST(Math, tanh_and_erf_end_at_one) {
  for (double x : {30.0, 700.0, kMax, kInf}) {
    EXPECT_EQ(math::tanh(x), 1);
    EXPECT_EQ(math::tanh(-x), -1);
    EXPECT_EQ(math::erf(x), 1);
    EXPECT_EQ(math::erf(-x), -1);
  }
}

TEST(Math, sin_and_cos_of_infinity_are_nan_and_cos_of_zero_is_one) {
  for (double x : {kInf, -kInf}) {
    EXPECT_TRUE(std::isnan(math::sin(x)));
    EXPECT_TRUE(std::isnan(math::cos(x)));
  }
  EXPECT_EQ(math::cos(0), 1);
  EXPECT_EQ(math::cos(-0.0), 1);
}

// C, annex F.10.4.4.
TEST(Math, pow_has_the_special_values_of_c) {
  for (double x : {0.0, -0.0, 1.0, -3.0, kInf, -kInf, kNan}) {
    EXPECT_EQ(math::pow(x, 0.0), 1);
    EXPECT_EQ(math::pow(x, -0.0), 1);
    EXPECT_EQ(math::pow(1, x), 1);
  }
  const double values[] = {0.0,  0.5,  1.0,  2.0,  3.0,     2.5,      kLeast,     0x1p53,
                           kInf, kMax, 1e20, 0.75, 0x1p-70, 1 + 1e-9, 0x1p53 - 1, 1e-310};
  for (double x_size : values) {
    for (double y_size : values) {
      for (double x : {x_size, -x_size}) {
        for (double y : {y_size, -y_size}) {
          const double expected = std::pow(x, y);
          const double got = math::pow(x, y);
          if (std::isnan(expected)) {
            EXPECT_TRUE(std::isnan(got)) << x << " to " << y;
          } else if (expected == 0 || std::isinf(expected) || std::fabs(expected) == 1) {
            EXPECT_EQ(bits(got), bits(expected)) << x << " to " << y;
          } else {
            EXPECT_NEAR(got / expected, 1, 0x1p-51) << x << " to " << y;
          }
        }
      }
    }
  }
}

TEST(Math, pow_of_small_integers_is_exact) {
  for (int base = -9; base <= 9; ++base) {
    double product = 1;
    for (int n = 0; n <= 15; ++n, product *= base) EXPECT_EQ(math::pow(base, n), product) << base;
  }
  EXPECT_EQ(math::pow(2, 1023), 0x1p1023);
  EXPECT_EQ(math::pow(2, -1074), kLeast);
  EXPECT_EQ(math::pow(4, 0.5), 2);
}

// What the engine leans on: weights in order of scores, and no weight above the maximum's.
TEST(Math, exp_never_decreases) {
  std::mt19937_64 random(19);
  for (int n = 0; n < 200000; ++n) {
    const double x = -50 * static_cast<double>(random() >> 11) * 0x1p-53;
    EXPECT_LE(math::exp(std::nextafter(x, -kInf)), math::exp(x)) << x;
    EXPECT_LE(math::exp(x), 1);
  }
}

}  // namespace
}  // namespace glasshead
