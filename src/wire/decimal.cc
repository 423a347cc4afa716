#include "wire/decimal.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/assert.h"
#include "base/double_double.h"
#include "wire/big_decimal.h"

namespace glasshead::wire {
namespace {

const char* not_a_number(double x) {
  if (std::isnan(x)) return "nan";
  return x > 0 ? "inf" : "-inf";
}

// "0.0123", with `decimals` places (zeros added), or as many as there are when negative.
std::string written_out(const Decimal& x, int decimals, bool is_negative) {
  std::string text = is_negative && !x.digits.empty() ? "-" : "";
  const auto size = static_cast<int>(x.digits.size());
  if (decimals < 0) decimals = std::max(size - x.point, 0);
  const auto add = [&](int begin, int end) {  // places; 0 is the first of x.digits
    if (begin < 0) text.append(static_cast<std::size_t>(std::min(end, 0) - begin), '0');
    const int first = std::clamp(begin, 0, size);
    const int last = std::clamp(end, first, size);
    text.append(x.digits, static_cast<std::size_t>(first), static_cast<std::size_t>(last - first));
    if (end > size) text.append(static_cast<std::size_t>(end - std::max(begin, size)), '0');
  };
  if (x.point <= 0) text += '0';
  if (x.point > 0) add(0, x.point);
  if (decimals > 0) text += '.';
  add(x.point, x.point + decimals);
  return text;
}

// "1.2346e+5", with `decimals` places, or as many as there are when negative.
std::string with_exponent(const Decimal& x, int decimals, bool is_negative) {
  std::string text = is_negative && !x.digits.empty() ? "-" : "";
  std::string digits = x.digits.empty() ? "0" : x.digits;
  const int exponent = x.digits.empty() ? 0 : x.point - 1;
  if (decimals >= 0) digits.resize(static_cast<std::size_t>(decimals) + 1, '0');
  text += digits[0];
  if (digits.size() > 1) text += '.';
  text.append(digits, 1);
  text += exponent < 0 ? "e-" : "e+";
  return text + std::to_string(std::abs(exponent));
}

// Where shortest stops writing numbers out: below 10^-5, and from 10^17 on, where zeros would have
// to stand for digits that are not known.
std::string shortest_form(const Decimal& x, bool is_negative) {
  if (x.point > -5 && x.point <= 17) return written_out(x, -1, is_negative);
  return with_exponent(x, -1, is_negative);
}

constexpr double kPowersOfTen[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr int kLargestExactPower = 22;  // 10^22 is a double, 10^23 is not

// 10^k, 0 <= k <= 88, within 4 ulp; exact up to 10^22.
double power_of_ten(int k) {
  double power = kPowersOfTen[k % kLargestExactPower];
  for (; k >= kLargestExactPower; k -= kLargestExactPower)
    power *= kPowersOfTen[kLargestExactPower];
  return power;
}

// Does the decimal lie where reading rounds to x? Exact: compares it with the midpoints between x
// and its neighbours, (2m +- 1) 2^(e-1), below a power of two (4m - 1) 2^(e-2).
bool reads_back_as(const Decimal& candidate, double x) {
  const Binary parts = binary_parts(x);
  const bool is_power_of_two = parts.significand == std::uint64_t{1} << 52;
  const int power_of_ten = candidate.point - static_cast<int>(candidate.digits.size());
  const auto compare_with = [&](std::uint64_t significand, int exponent) {
    BigNatural decimal{std::string_view(candidate.digits)};
    BigNatural binary(significand);
    decimal.multiply_by_power_of_5(power_of_ten);
    binary.multiply_by_power_of_5(-power_of_ten);
    decimal.multiply_by_power_of_2(power_of_ten - exponent);
    binary.multiply_by_power_of_2(exponent - power_of_ten);
    return decimal.compare(binary);
  };
  const bool is_even = parts.significand % 2 == 0;  // then ties come here
  const int above = compare_with(2 * parts.significand + 1, parts.exponent - 1);
  const int below = is_power_of_two && parts.exponent > -1074
                        ? compare_with(4 * parts.significand - 1, parts.exponent - 2)
                        : compare_with(2 * parts.significand - 1, parts.exponent - 1);
  return (above < 0 || (above == 0 && is_even)) && (below > 0 || (below == 0 && is_even));
}

Decimal shortest_exactly(double x) {
  const Decimal exact = exact_decimal(x);
  constexpr std::size_t kKnownDigits = 15;
  if (exact.digits.size() <= kKnownDigits) return exact;
  // A normal double gets back any 15 digits it was read from, so the shortest text, if that short,
  // is found among 15 rounded digits with their zeros left out. Subnormals have fewer.
  const int start =
      std::fabs(x) < std::numeric_limits<double>::min() ? 1 : static_cast<int>(kKnownDigits);
  for (int keep = start; keep < 17; ++keep) {
    const Decimal nearest = rounded(exact, keep, Ties::to_even);
    if (reads_back_as(nearest, x)) return nearest;
    // Below a power of two doubles lie closer, so the farther candidate, above, may do.
    const Decimal up = cut_and_up(exact, keep);
    if (reads_back_as(up, x)) return up;
  }
  return rounded(exact, 17, Ties::to_even);
}

// 17 digits of x > 0 from products of two doubles, for 10^-60 <= x < 10^15: false where a closer
// look is needed. x 10^k = whole + rest, whole a 17-digit integer, |rest| <= 8; exact for x from
// 10^-5 on, else the products' rounding errors are below 2^-98 of the value, 10^-12 of a unit.
bool shortest_quickly(double x, Decimal& result) {
  if (!(x >= 1e-60 && x < 1e15)) return false;
  const Binary parts = binary_parts(x);
  if ((parts.significand & (parts.significand - 1)) == 0) return false;  // uneven neighbours
  // floor(log10 x), or one less, from the binary exponent: log10(2) = 0.30103.
  int power = 16 - static_cast<int>(std::floor((parts.exponent + 52) * 0.30102999566398120));
  if (x * power_of_ten(power) >= 1e17) --power;
  math::DoubleDouble scaled{x, 0};
  for (int left = power; left > 0; left -= kLargestExactPower)
    scaled = scaled * kPowersOfTen[std::min(left, kLargestExactPower)];
  if (!(scaled.high >= 1e16 && scaled.high < 1e17)) return false;
  const auto whole = static_cast<std::int64_t>(scaled.high);  // an integer: above 2^53
  const double half_ulp =
      std::bit_cast<double>(static_cast<std::uint64_t>(parts.exponent - 1 + 1023) << 52) *
      power_of_ten(power);

  constexpr double kDoubt = 1e-9;  // far above all rounding errors here, in units of `whole`
  for (const std::int64_t unit : {100, 10, 1}) {
    const std::int64_t base = whole - whole % unit;
    const double part = static_cast<double>(whole - base) + scaled.low;  // may leave [0, unit)
    const auto unit_size = static_cast<double>(unit);
    const double steps = std::floor(part / unit_size + 0.5);
    const double distance = std::fabs(steps * unit_size - part);
    if (std::fabs(distance - 0.5 * unit_size) < kDoubt) return false;  // a tie between candidates
    if (std::fabs(distance - half_ulp) < kDoubt) return false;
    if (distance > half_ulp) continue;
    const std::int64_t chosen = base + static_cast<std::int64_t>(steps) * unit;
    result.digits = std::to_string(chosen);
    result.point = static_cast<int>(result.digits.size()) - power;
    result.digits.erase(result.digits.find_last_not_of('0') + 1);
    return true;
  }
  return false;
}

// a * b as high and low halves.
struct Product {
  std::uint64_t high, low;
};
Product multiply(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t kHalf = 0xFFFFFFFF;
  const std::uint64_t low = (a & kHalf) * (b & kHalf), first = (a >> 32) * (b & kHalf),
                      second = (a & kHalf) * (b >> 32);
  const std::uint64_t middle = (low >> 32) + (first & kHalf) + (second & kHalf);
  return {(a >> 32) * (b >> 32) + (first >> 32) + (second >> 32) + (middle >> 32),
          middle << 32 | (low & kHalf)};
}

// x / 2^shift to nearest, ties to even; the quotient fits 64 bits.
std::uint64_t divide_by_power_of_2(const Product& x, int shift) {
  if (shift >= 128) return 0;                 // below a half: x < 2^117
  std::uint64_t whole, rest, half, more = 0;  // rest and half are compared; more: below rest
  if (shift <= 64) {
    const bool is_whole_word = shift == 64;
    whole = is_whole_word ? x.high : x.high << (64 - shift) | x.low >> shift;
    rest = is_whole_word ? x.low : x.low & ((std::uint64_t{1} << shift) - 1);
    half = std::uint64_t{1} << (shift - 1);
  } else {
    whole = x.high >> (shift - 64);
    rest = x.high & ((std::uint64_t{1} << (shift - 64)) - 1);
    half = std::uint64_t{1} << (shift - 65);
    more = x.low;
  }
  const bool is_above = rest > half || (rest == half && more != 0);
  const bool is_tie = rest == half && more == 0;
  return whole + (is_above || (is_tie && whole % 2 == 1) ? 1 : 0);
}

// As fixed, for |x| 10^decimals < 10^18: the significand times 10^decimals fits 128 bits and is
// rounded there, exactly. False: out of range.
bool fixed_quickly(double x, int decimals, std::string& text) {
  constexpr int kMostDecimals = 12;
  if (decimals > kMostDecimals || !(std::fabs(x) * kPowersOfTen[decimals] < 1e18)) return false;
  std::uint64_t units = 0;
  if (x != 0) {
    const Binary parts = binary_parts(std::fabs(x));
    if (parts.exponent >= 0) return false;
    units = divide_by_power_of_2(
        multiply(parts.significand, static_cast<std::uint64_t>(kPowersOfTen[decimals])),
        -parts.exponent);
  }
  text = std::to_string(units);
  const auto places = static_cast<std::size_t>(decimals);
  if (text.size() <= places) text.insert(0, places + 1 - text.size(), '0');
  if (places > 0) text.insert(text.size() - places, 1, '.');
  if (x < 0 && units != 0) text.insert(0, 1, '-');
  return true;
}

}  // namespace

std::string fixed(double x, int decimals) {
  GLASSHEAD_ASSERT(decimals >= 0);
  if (!std::isfinite(x)) return not_a_number(x);
  std::string text;
  if (fixed_quickly(x, decimals, text)) return text;
  const Decimal exact = exact_decimal(x);
  return written_out(rounded(exact, exact.point + decimals, Ties::to_even), decimals, x < 0);
}

std::string scientific(double x, int decimals) {
  GLASSHEAD_ASSERT(decimals >= 0);
  if (!std::isfinite(x)) return not_a_number(x);
  return with_exponent(rounded(exact_decimal(x), decimals + 1, Ties::to_even), decimals, x < 0);
}

std::string significant(double x, int digits) {
  GLASSHEAD_ASSERT(digits >= 1);
  if (!std::isfinite(x)) return not_a_number(x);
  const Decimal decimal = rounded(exact_decimal(x), digits, Ties::to_even);
  if (decimal.point > -5 && decimal.point <= 7) return written_out(decimal, -1, x < 0);
  return with_exponent(decimal, -1, x < 0);
}

double round_half_up(double x, int decimals) {
  GLASSHEAD_ASSERT(decimals >= 0);
  if (!std::isfinite(x)) return x;
  constexpr int kPaperDigits = 12;
  const Decimal exact = exact_decimal(x);
  const Decimal paper = rounded(exact, kPaperDigits, Ties::to_even);
  const bool is_tie = static_cast<int>(paper.digits.size()) == paper.point + decimals + 1 &&
                      paper.digits.back() == '5';
  const Decimal& source = is_tie ? paper : exact;
  const Decimal result = rounded(source, source.point + decimals, Ties::away_from_zero);
  return *parse_double(written_out(result, -1, x < 0));
}

std::string shortest(double x) {
  if (!std::isfinite(x)) return not_a_number(x);
  if (x == 0) return std::signbit(x) ? "-0.0" : "0";
  const double magnitude = std::fabs(x);
  if (magnitude < 1e15 && std::floor(magnitude) == magnitude)
    return std::to_string(static_cast<std::int64_t>(x));
  Decimal decimal;
  if (!shortest_quickly(magnitude, decimal)) decimal = shortest_exactly(magnitude);
  return shortest_form(decimal, x < 0);
}

}  // namespace glasshead::wire
