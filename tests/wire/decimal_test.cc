#include "wire/decimal.h"

#include <bit>
#include <clocale>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace glasshead::wire {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

struct Row {
  std::string what;
  double x = 0;
  int digits = 0;
  std::string text;
};

// Calls `check` with each row of this kind of the table made with Python's decimal.
template <class Check>
void for_each_row(const std::string& what, Check check) {
  std::ifstream file(GLASSHEAD_SOURCE_DIR "/tests/wire/data/decimal.txt");
  std::string line;
  int count = 0;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    Row row;
    std::string pattern;
    if (!(words >> row.what >> pattern >> row.digits >> row.text) || row.what != what) continue;
    row.x = std::bit_cast<double>(std::stoull(pattern, nullptr, 16));
    check(row);
    ++count;
  }
  EXPECT_GE(count, 300) << "rows of " << what;
}

TEST(Decimal, fixed_equals_decimal_arithmetic) {
  for_each_row("fixed", [](const Row& row) {
    EXPECT_EQ(fixed(row.x, row.digits), row.text) << std::hexfloat << row.x;
  });
}

TEST(Decimal, scientific_equals_decimal_arithmetic) {
  for_each_row("scientific", [](const Row& row) {
    EXPECT_EQ(scientific(row.x, row.digits), row.text) << std::hexfloat << row.x;
  });
}

TEST(Decimal, significant_equals_decimal_arithmetic) {
  for_each_row("significant", [](const Row& row) {
    EXPECT_EQ(significant(row.x, row.digits), row.text) << std::hexfloat << row.x;
  });
}

TEST(Decimal, round_half_up_equals_decimal_arithmetic) {
  for_each_row("half_up", [](const Row& row) {
    EXPECT_EQ(bits(round_half_up(row.x, row.digits)), std::stoull(row.text, nullptr, 16))
        << row.x << " to " << row.digits;
  });
}

TEST(Decimal, shortest_has_the_digits_of_pythons_repr) {
  for_each_row("shortest", [](const Row& row) { EXPECT_EQ(shortest(row.x), row.text); });
}

TEST(Decimal, parsing_equals_pythons_float) {
  for_each_row("parse", [](const Row& row) {
    const auto value = parse_double(row.text);
    ASSERT_TRUE(value) << row.text;
    EXPECT_EQ(bits(*value), bits(row.x)) << row.text;
  });
}

TEST(Decimal, ties_of_the_binary_value_go_to_the_even_digit) {
  EXPECT_EQ(fixed(0.5, 0), "0");
  EXPECT_EQ(fixed(1.5, 0), "2");
  EXPECT_EQ(fixed(2.5, 0), "2");
  EXPECT_EQ(fixed(0.125, 2), "0.12");
  EXPECT_EQ(fixed(0.615, 2), "0.61");  // the double is below 0.615: no tie
}

TEST(Decimal, paper_ties_go_away_from_zero) {
  EXPECT_EQ(round_half_up(0.615, 2), 0.62);
  EXPECT_EQ(round_half_up(-0.615, 2), -0.62);
  EXPECT_EQ(round_half_up(0.6149999999, 2), 0.61);     // the tenth digit still counts
  EXPECT_EQ(round_half_up(0.6149999999996, 2), 0.62);  // the thirteenth does not
  EXPECT_EQ(round_half_up(123456789.12345678, 4), 123456789.1235);
  EXPECT_EQ(bits(round_half_up(-0.001, 2)), bits(0.0));
  EXPECT_TRUE(std::isnan(round_half_up(std::nan(""), 2)));
  EXPECT_EQ(round_half_up(-kInf, 2), -kInf);
}

TEST(Decimal, zero_has_no_sign_in_print) {
  EXPECT_EQ(fixed(-0.0, 2), "0.00");
  EXPECT_EQ(fixed(-0.0001, 2), "0.00");
  EXPECT_EQ(scientific(-0.0, 2), "0.00e+0");
  EXPECT_EQ(significant(-0.0, 3), "0");
}

TEST(Decimal, what_is_not_a_finite_number_is_spelled_out) {
  for (const auto& [x, text] : {std::pair{std::nan(""), "nan"}, {kInf, "inf"}, {-kInf, "-inf"}}) {
    EXPECT_EQ(fixed(x, 3), text);
    EXPECT_EQ(scientific(x, 3), text);
    EXPECT_EQ(significant(x, 3), text);
    EXPECT_EQ(shortest(x), text);
  }
  EXPECT_TRUE(std::isnan(*parse_double("nan")));
  EXPECT_EQ(parse_double("inf"), kInf);
  EXPECT_EQ(parse_double("-inf"), -kInf);
}

TEST(Decimal, any_magnitude_is_written_out_in_full) {
  EXPECT_EQ(fixed(1e23, 1), "99999999999999991611392.0");
  EXPECT_EQ(fixed(-std::numeric_limits<double>::max(), 0).size(), 310U);
  EXPECT_EQ(fixed(5e-324, 3), "0.000");
  EXPECT_EQ(fixed(0x1p-3, 20), "0.12500000000000000000");
}

TEST(Decimal, text_that_is_not_wholly_a_number_is_refused) {
  for (const char* text : {"", ".", "-", "+", "e5", ".e5", "1e", "1e+", "1x", " 1", "1 ", "1,5",
                           "1..2", "--1", "0x10", "1e5.0", "infinity", "NaN", "1e5e5"})
    EXPECT_FALSE(parse_double(text)) << text;
  double untouched = 7;
  EXPECT_FALSE(parse_double("7a", untouched));
  EXPECT_EQ(untouched, 7);
  EXPECT_TRUE(parse_double("8", untouched));
  EXPECT_EQ(untouched, 8);
}

TEST(Decimal, the_point_may_stand_first_or_last_and_signs_are_kept) {
  EXPECT_EQ(parse_double(".5"), 0.5);
  EXPECT_EQ(parse_double("5."), 5.0);
  EXPECT_EQ(parse_double("+1.5E+2"), 150.0);
  EXPECT_EQ(bits(*parse_double("-0")), bits(-0.0));
  EXPECT_EQ(parse_double("000000000000000000000000001.000000000000000000000000"), 1.0);
}

TEST(Decimal, numbers_out_of_range_become_infinite_or_zero) {
  EXPECT_EQ(parse_double("1e309"), kInf);
  EXPECT_EQ(parse_double("-1e99999999999999999999"), -kInf);
  EXPECT_EQ(parse_double("1e-99999999999999999999"), 0.0);
  EXPECT_EQ(parse_double("0e99999999999999999999"), 0.0);
  EXPECT_EQ(parse_double("1.7976931348623158e308"), std::numeric_limits<double>::max());
  EXPECT_EQ(parse_double("1.7976931348623159e308"), kInf);
  EXPECT_EQ(parse_double("2.4703282292062328e-324"), 5e-324);  // just above half of it
  EXPECT_EQ(parse_double("2.4703282292062327e-324"), 0.0);
}

TEST(Decimal, digits_far_behind_still_break_a_tie) {
  const std::string tie = "9007199254740993";  // 2^53 + 1
  EXPECT_EQ(parse_double(tie), 9007199254740992.0);
  EXPECT_EQ(parse_double(tie + "." + std::string(5000, '0') + "1"), 9007199254740994.0);
  EXPECT_EQ(parse_double(tie + std::string(5000, '0') + "e-5000"), 9007199254740992.0);
}

// x as any bit pattern, so that every exponent is as likely as the next.
double any_finite() {
  const auto x = std::bit_cast<double>(*rc::gen::arbitrary<std::uint64_t>());
  RC_PRE(std::isfinite(x));
  return x;
}

TEST(Decimal, every_double_reads_back_from_its_shortest_text) {
  EXPECT_TRUE(rc::check([] {
    const double x = any_finite();
    RC_ASSERT(bits(parse_double(shortest(x)).value()) == bits(x));
  }));
}

TEST(Decimal, fractions_read_back_from_their_shortest_text) {
  EXPECT_TRUE(rc::check([] {
    const auto x =
        static_cast<double>(*rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << 53)) *
        std::pow(2.0, -53 - *rc::gen::inRange(0, 200));
    RC_ASSERT(bits(parse_double(shortest(x)).value()) == bits(x));
  }));
}

TEST(Decimal, seventeen_digits_read_back_too) {
  EXPECT_TRUE(rc::check([] {
    const double x = any_finite();
    RC_ASSERT(bits(parse_double(scientific(x, 16)).value()) == bits(x == 0 ? 0.0 : x));
  }));
}

// A multiple of 2^-20 below 2^40 is exact in 20 decimals, so rounding it is integer arithmetic:
// x = n / 2^20 at 2 places is (100 n) / 2^20.
TEST(Decimal, fixed_agrees_with_integer_division) {
  EXPECT_TRUE(rc::check([] {
    const std::int64_t n = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 50);
    const std::int64_t scaled = n * 100;
    std::int64_t hundredths = scaled >> 20;
    const std::int64_t rest = scaled & ((1 << 20) - 1);
    if (rest > (1 << 19) || (rest == (1 << 19) && hundredths % 2 == 1)) ++hundredths;
    const std::string places = std::to_string(hundredths % 100);
    const std::string expected =
        std::to_string(hundredths / 100) + "." + std::string(2 - places.size(), '0') + places;
    RC_ASSERT(fixed(static_cast<double>(n) * 0x1p-20, 2) == expected);
  }));
}

// The exact digits of x cut to `decimals` places, the last one rounded by what was cut off.
std::string rounded_by_hand(double x, int decimals) {
  constexpr int kAll = 1100;  // more than any double has
  std::string exact = fixed(std::fabs(x), kAll);
  const std::size_t keep = exact.size() - static_cast<std::size_t>(kAll - decimals);
  const std::string rest = exact.substr(keep);
  std::string digits = exact.substr(0, keep);
  const bool is_tie = rest.find_last_not_of('0') == 0 && rest[0] == '5';
  if (decimals == 0) digits.pop_back();  // the point
  bool carries = is_tie ? (digits.back() - '0') % 2 == 1 : rest[0] >= '5';
  for (std::size_t n = digits.size(); carries && n-- > 0;) {
    if (digits[n] == '.') continue;
    carries = digits[n] == '9';
    digits[n] = carries ? '0' : static_cast<char>(digits[n] + 1);
  }
  if (carries) digits.insert(0, 1, '1');
  const bool is_zero = digits.find_first_not_of("0.") == std::string::npos;
  return (x < 0 && !is_zero ? "-" : "") + digits;
}

TEST(Decimal, few_decimals_are_all_of_them_rounded) {
  EXPECT_EQ(rounded_by_hand(0.125, 2), "0.12");  // the test's own rounding
  EXPECT_EQ(rounded_by_hand(-0.375, 2), "-0.38");
  EXPECT_EQ(rounded_by_hand(99.99, 1), "100.0");
  const auto check = [](double x) {
    for (const int decimals : {0, 1, 2, 4, 7, 12})
      RC_ASSERT(fixed(x, decimals) == rounded_by_hand(x, decimals));
  };
  EXPECT_TRUE(rc::check("any double", [&] {
    const double x = std::bit_cast<double>(*rc::gen::arbitrary<std::uint64_t>());
    if (std::isfinite(x)) check(x);
  }));
  EXPECT_TRUE(rc::check("of the sizes that are printed, ties among them", [&] {
    const auto numerator =
        *rc::gen::inRange<std::int64_t>(-(std::int64_t{1} << 53), std::int64_t{1} << 53);
    check(std::ldexp(static_cast<double>(numerator >> *rc::gen::inRange(0, 50)),
                     -*rc::gen::inRange(0, 130)));
  }));
}

TEST(Decimal, a_locale_changes_nothing) {
  const char* before = std::setlocale(LC_ALL, nullptr);
  const std::string saved = before == nullptr ? "C" : before;
  for (const char* locale : {"de_DE.UTF-8", "fr_FR.UTF-8", "C"}) {
    std::setlocale(LC_ALL, locale);  // where it is not installed, nothing changes
    EXPECT_EQ(fixed(1234.5, 1), "1234.5");
    EXPECT_EQ(shortest(0.1), "0.1");
    EXPECT_EQ(parse_double("0.1"), 0.1);
  }
  std::setlocale(LC_ALL, saved.c_str());
}

}  // namespace
}  // namespace glasshead::wire
