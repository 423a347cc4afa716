// parse_double of decimal.h.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/double_double.h"
#include "wire/big_decimal.h"
#include "wire/decimal.h"

namespace glasshead::wire {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// A decimal as written: digits (no zero in front) times 10^exponent.
struct Written {
  std::string digits;
  int exponent = 0;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A midpoint between doubles has at most 767 digits: beyond so many only "is anything left" counts.
constexpr std::size_t kEnoughDigits = 780;

// Takes "[digits][.digits]" off the front of the text. False: no digit at all.
bool take_digits(std::string_view& text, Written& number) {
  bool is_any = false;
  bool is_after_point = false;
  bool is_rest_nonzero = false;
  while (!text.empty() && (is_digit(text[0]) || (text[0] == '.' && !is_after_point))) {
    const char c = text[0];
    text.remove_prefix(1);
    if (c == '.') {
      is_after_point = true;
      continue;
    }
    is_any = true;
    const bool is_leading_zero = c == '0' && number.digits.empty();
    const bool is_kept = !is_leading_zero && number.digits.size() < kEnoughDigits;
    if (is_kept) {
      number.digits += c;
      if (is_after_point) --number.exponent;
    } else if (is_leading_zero) {
      if (is_after_point) --number.exponent;
    } else {
      if (c != '0') is_rest_nonzero = true;
      if (!is_after_point) ++number.exponent;
    }
  }
  if (is_rest_nonzero) {
    number.digits += '1';
    --number.exponent;
  }
  return is_any;
}

// Takes "e[+-]digits" off the front; no exponent is fine, an unfinished one is not.
bool take_exponent(std::string_view& text, Written& number) {
  if (text.empty()) return true;
  if (text[0] != 'e' && text[0] != 'E') return false;
  text.remove_prefix(1);
  const bool is_negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  if (text.empty()) return false;
  constexpr int kLimit = 1000000000;  // beyond any exponent that matters; no overflow
  int exponent = 0;
  for (; !text.empty() && is_digit(text[0]); text.remove_prefix(1))
    exponent = std::min(exponent, kLimit / 10) * 10 + (text[0] - '0');
  const std::int64_t sum = std::int64_t{number.exponent} + (is_negative ? -exponent : exponent);
  number.exponent = static_cast<int>(std::clamp(sum, -std::int64_t{kLimit}, std::int64_t{kLimit}));
  return true;
}

// Digits and power small enough for exact factors: one rounding, or one that is certain.
bool parse_quickly(const Written& number, double& value) {
  constexpr int kLargestExactPower = 22;
  constexpr std::size_t kMostDigits = 18;  // below 2^63
  if (number.digits.size() > kMostDigits || std::abs(number.exponent) > kLargestExactPower)
    return false;
  std::int64_t whole = 0;
  for (const char digit : number.digits) whole = whole * 10 + (digit - '0');
  double power = 1;
  for (int n = 0; n < std::abs(number.exponent); ++n) power *= 10;  // exact up to 10^22

  const auto high = static_cast<double>(whole);
  const auto low = static_cast<double>(whole - static_cast<std::int64_t>(high));  // exact
  math::DoubleDouble result{high, low};
  if (number.exponent > 0) {
    result = result * power;
  } else if (number.exponent < 0) {
    const double quotient = high / power;
    const math::DoubleDouble back = math::exact_product(quotient, power);
    result = math::quick_sum(quotient, ((high - back.high) - back.low + low) / power);
  }
  // The error is below 2^-100 of the value; the rounding is certain when it changes nothing.
  const double doubt = std::fabs(result.high) * 0x1p-95;
  value = result.high + (result.low - doubt);
  return value == result.high + (result.low + doubt);
}

// digits 10^exponent compared with the midpoint between the double and the next one up.
class MidpointOrder {
 public:
  explicit MidpointOrder(const Written& number) : number_(number), digits_(number.digits) {
    digits_.multiply_by_power_of_5(number.exponent);
  }

  bool is_above(std::uint64_t pattern) const {
    const int order = compare(pattern);
    return order > 0 || (order == 0 && (pattern & 1) != 0);  // a tie goes to the even neighbour
  }

 private:
  int compare(std::uint64_t pattern) const {
    const Binary parts = binary_parts(std::bit_cast<double>(pattern));
    BigNatural decimal = digits_;
    BigNatural binary(2 * parts.significand + 1);
    binary.multiply_by_power_of_5(-number_.exponent);
    const int shift = number_.exponent - (parts.exponent - 1);
    decimal.multiply_by_power_of_2(shift);
    binary.multiply_by_power_of_2(-shift);
    return decimal.compare(binary);
  }

  const Written& number_;
  BigNatural digits_;
};

// A guess within a few ulp, by repeated multiplication.
double guess(const Written& number) {
  double value = 0;
  int exponent = number.exponent;
  const std::size_t used = std::min<std::size_t>(number.digits.size(), 17);
  for (const char digit : number.digits.substr(0, used)) value = value * 10 + (digit - '0');
  exponent += static_cast<int>(number.digits.size() - used);
  for (; exponent >= 22; exponent -= 22) value *= 1e22;
  for (; exponent > 0; --exponent) value *= 10;
  for (; exponent <= -22; exponent += 22) value /= 1e22;
  for (; exponent < 0; ++exponent) value /= 10;
  return value;
}

// The bit pattern of a double grows with its value: the answer is the first pattern whose midpoint
// to the next is not below the decimal. Infinity's pattern, one past the largest double, works as
// the double it would be.
double parse_exactly(const Written& number) {
  const MidpointOrder order(number);
  std::uint64_t low = 0;
  std::uint64_t high = std::bit_cast<std::uint64_t>(kInf);
  constexpr std::uint64_t kMargin = 64;  // far more than the guess errs
  const auto near = std::bit_cast<std::uint64_t>(guess(number));
  if (near > kMargin && order.is_above(near - kMargin)) low = near - kMargin;
  if (near < high - kMargin && !order.is_above(near + kMargin)) high = near + kMargin;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (order.is_above(middle))
      low = middle + 1;
    else
      high = middle;
  }
  return std::bit_cast<double>(low);
}

double parse_magnitude(const Written& number) {
  if (number.digits.empty()) return 0;
  const std::int64_t point =
      static_cast<std::int64_t>(number.digits.size()) + std::int64_t{number.exponent};
  if (point > 310) return kInf;  // at least 10^310
  if (point < -330) return 0;    // below 10^-330
  double value = 0;
  if (parse_quickly(number, value)) return value;
  return parse_exactly(number);
}

}  // namespace

std::optional<double> parse_double(std::string_view text) {
  bool is_negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    is_negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return is_negative ? -kInf : kInf;
  Written number;
  if (!take_digits(text, number) || !take_exponent(text, number) || !text.empty())
    return std::nullopt;
  const double magnitude = parse_magnitude(number);
  return is_negative ? -magnitude : magnitude;
}

bool parse_double(std::string_view text, double& value) {
  const std::optional<double> parsed = parse_double(text);
  if (parsed) value = *parsed;
  return parsed.has_value();
}

}  // namespace glasshead::wire
