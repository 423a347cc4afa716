#include "glasshead/tensor.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace glasshead {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

struct Format {
  int fraction_bits;
  int least_exponent;
  std::uint16_t infinity;
};
constexpr Format kBf16{7, -126, 0x7F80};
constexpr Format kF16{10, -14, 0x7C00};

// The value of a finite pattern straight from the definition of the format.
double value_of(std::uint16_t bits, const Format& format) {
  const int exponent = (bits & 0x7FFF) >> format.fraction_bits;
  const int fraction = bits & ((1 << format.fraction_bits) - 1);
  const int significand = exponent == 0 ? fraction : fraction + (1 << format.fraction_bits);
  const int power =
      format.least_exponent - format.fraction_bits + (exponent == 0 ? 0 : exponent - 1);
  const double magnitude = std::ldexp(significand, power);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// Round to nearest, ties to even, by searching the sorted finite values: the pattern just past the
// largest one stands for the next power of two, from whose midpoint on everything is infinite.
std::uint16_t nearest_pattern(double x, const Format& format) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(x) ? 0x8000 : 0);
  const double magnitude = std::fabs(x);
  std::uint16_t low = 0;
  std::uint16_t high = format.infinity;
  while (high - low > 1) {
    const auto middle = static_cast<std::uint16_t>((low + high) / 2);
    (value_of(middle, format) <= magnitude ? low : high) = middle;
  }
  // Exact: neighbours differ by a power of two, so their midpoint is a double.
  const double midpoint = (value_of(low, format) + value_of(high, format)) / 2;
  const bool up = magnitude > midpoint || (magnitude == midpoint && (low & 1) != 0);
  return static_cast<std::uint16_t>(sign | (up ? high : low));
}

template <class Widen, class Narrow>
void every_pattern_round_trips(const Format& format, Widen to_double, Narrow from_double) {
  for (int pattern = 0; pattern < 65536; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const double wide = to_double(bits);
    const int magnitude = bits & 0x7FFF;
    if (magnitude > format.infinity) {
      ASSERT_TRUE(std::isnan(wide)) << pattern;
      const int quiet = format.infinity | (1 << (format.fraction_bits - 1));
      ASSERT_EQ(from_double(wide), quiet) << pattern;
      continue;
    }
    if (magnitude == format.infinity) {
      ASSERT_EQ(wide, (bits & 0x8000) != 0 ? -kInf : kInf);
    } else {
      ASSERT_EQ(wide, value_of(bits, format)) << pattern;
      ASSERT_EQ(std::signbit(wide), (bits & 0x8000) != 0) << pattern;
    }
    ASSERT_EQ(from_double(wide), bits) << pattern;
  }
}

template <class Narrow>
void narrowing_is_nearest_even(const Format& format, Narrow from_double) {
  // Every value, every tie between neighbours, and the doubles just beside both.
  for (int pattern = 0; pattern < format.infinity; ++pattern) {
    const double here = value_of(static_cast<std::uint16_t>(pattern), format);
    const double next = value_of(static_cast<std::uint16_t>(pattern + 1), format);
    for (double x : {here, (here + next) / 2}) {
      for (double y : {x, std::nextafter(x, kInf), std::nextafter(x, -kInf)}) {
        ASSERT_EQ(from_double(y), nearest_pattern(y, format)) << std::hexfloat << y;
        ASSERT_EQ(from_double(-y), nearest_pattern(-y, format)) << std::hexfloat << -y;
      }
    }
  }
  std::mt19937_64 random(7);
  for (int n = 0; n < 200000; ++n) {
    const double fraction = 1 + static_cast<double>(random() >> 12) * 0x1p-52;
    const int span = 2 * (20 - format.least_exponent);
    const int exponent =
        static_cast<int>(random() % static_cast<std::uint64_t>(span)) + format.least_exponent - 20;
    const double x = std::ldexp(n % 2 == 0 ? fraction : -fraction, exponent);
    ASSERT_EQ(from_double(x), nearest_pattern(x, format)) << std::hexfloat << x;
  }
}

double from_bf16(std::uint16_t bits) { return widen(bf16{bits}); }
double from_f16(std::uint16_t bits) { return widen(f16{bits}); }
std::uint16_t to_bf16(double x) { return narrow_to_bf16(x).bits; }
std::uint16_t to_f16(double x) { return narrow_to_f16(x).bits; }

TEST(Bf16, every_pattern_widens_exactly_and_comes_back) {
  every_pattern_round_trips(kBf16, from_bf16, to_bf16);
}
TEST(F16, every_pattern_widens_exactly_and_comes_back) {
  every_pattern_round_trips(kF16, from_f16, to_f16);
}
TEST(Bf16, narrowing_rounds_to_nearest_ties_to_even) { narrowing_is_nearest_even(kBf16, to_bf16); }
TEST(F16, narrowing_rounds_to_nearest_ties_to_even) { narrowing_is_nearest_even(kF16, to_f16); }

TEST(F16, a_double_just_above_a_tie_is_not_rounded_through_f32) {
  const double tie = 1 + 0x1p-11;
  EXPECT_EQ(to_f16(tie), 0x3C00);
  EXPECT_EQ(to_f16(tie + 0x1p-40), 0x3C01);  // f32 would drop the 2^-40 and see a tie
  EXPECT_EQ(to_bf16(1 + 0x1p-8 + 0x1p-45), 0x3F81);
}

TEST(F16, overflow_is_infinite_from_the_midpoint_on) {
  EXPECT_EQ(to_f16(65519.999), 0x7BFF);
  EXPECT_EQ(to_f16(65520), 0x7C00);
  EXPECT_EQ(to_f16(-1e300), 0xFC00);
  EXPECT_EQ(to_bf16(1e300), 0x7F80);
}

TEST(F16, tiny_doubles_become_a_signed_zero) {
  EXPECT_EQ(to_f16(-5e-324), 0x8000);
  EXPECT_EQ(to_f16(0x1p-25), 0);  // a tie between 0 and the smallest subnormal
  EXPECT_EQ(to_f16(std::nextafter(0x1p-25, 1)), 1);
}

TEST(Element, sizes_and_names_are_those_of_files) {
  EXPECT_EQ(size_of(DType::f64), 8U);
  EXPECT_EQ(size_of(DType::i64), 8U);
  EXPECT_EQ(size_of(DType::f32), 4U);
  EXPECT_EQ(size_of(DType::bf16), 2U);
  EXPECT_EQ(size_of(DType::f16), 2U);
  EXPECT_EQ(size_of(DType::u8), 1U);
  EXPECT_STREQ(name(DType::bf16), "bf16");
  EXPECT_STREQ(name(DType::u8), "bool");
}

TEST(Element, every_type_stores_and_loads_at_its_offset) {
  for (DType type : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::u8, DType::i64}) {
    std::vector<unsigned char> bytes(4 * 8);
    store_element(bytes.data(), type, 2, 1.0);
    EXPECT_EQ(load_element(bytes.data(), type, 2), 1.0) << name(type);
    EXPECT_EQ(load_element(bytes.data(), type, 1), 0.0) << name(type);
    EXPECT_EQ(load_element(bytes.data(), type, 3), 0.0) << name(type);
  }
}

TEST(Element, f32_is_rounded_once_and_overflows_to_infinity) {
  float stored = 0;
  store_element(&stored, DType::f32, 0, 0.1);
  EXPECT_EQ(stored, 0.1F);
  store_element(&stored, DType::f32, 0, 1 + 0x1p-24 + 0x1p-50);
  EXPECT_EQ(stored, 1 + 0x1p-23F);
  store_element(&stored, DType::f32, 0, -1e300);
  EXPECT_EQ(stored, -std::numeric_limits<float>::infinity());
}

TEST(Element, a_nan_of_any_sign_is_stored_as_the_same_quiet_nan) {
  std::uint32_t plain = 0;
  std::uint32_t negative = 1;
  store_element(&plain, DType::f32, 0, kNan);
  store_element(&negative, DType::f32, 0, std::copysign(kNan, -1.0));
  EXPECT_EQ(plain, 0x7FC00000U);
  EXPECT_EQ(negative, plain);
  EXPECT_EQ(to_f16(std::copysign(kNan, -1.0)), 0x7E00);
}

TEST(Element, booleans_are_zero_or_one) {
  std::uint8_t stored = 9;
  EXPECT_EQ(load_element(&stored, DType::u8, 0), 1.0);
  store_element(&stored, DType::u8, 0, 0.25);
  EXPECT_EQ(stored, 1);
  store_element(&stored, DType::u8, 0, -0.0);
  EXPECT_EQ(stored, 0);
}

TEST(Element, integers_round_to_nearest_even_and_saturate) {
  index_t stored = 0;
  const auto after = [&](double x) {
    store_element(&stored, DType::i64, 0, x);
    return stored;
  };
  EXPECT_EQ(after(2.5), 2);
  EXPECT_EQ(after(3.5), 4);
  EXPECT_EQ(after(-1.75), -2);
  EXPECT_EQ(after(1e300), std::numeric_limits<index_t>::max());
  EXPECT_EQ(after(-kInf), std::numeric_limits<index_t>::min());
  EXPECT_EQ(after(kNan), 0);
}

TEST(Tensor, is_dense_zeroed_and_aligned_and_a_view_may_broadcast) {
  Tensor<double, 2> tensor({2, 3});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data()) % 64, 0U);
  for (index_t n = 0; n < tensor.size(); ++n) EXPECT_EQ(tensor.data()[n], 0);
  tensor(1, 2) = 5;
  EXPECT_EQ(tensor.data()[5], 5);
  const View<double, 2> row(tensor.data() + 3, {4, 3}, {0, 1});
  EXPECT_EQ(row(3, 2), 5);
  const ConstTensor<2> any = row;
  EXPECT_EQ(any.load(1, 2), 5);
}

TEST(Tensor, a_typed_store_is_seen_by_a_load) {
  Tensor<f16, 2> tensor({2, 2});
  const MutableTensor<2> out(tensor);
  out.store_at({1, 0}, 0.1);
  const ConstTensor<2> in = out;
  EXPECT_EQ(in.load(1, 0), 0.0999755859375);
}

}  // namespace
}  // namespace glasshead
