#include "wire/big_decimal.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace glasshead::wire {
namespace {

constexpr std::uint32_t kBase = 1000000000;
constexpr std::size_t kDigitsPerLimb = 9;

void strip_zeros(Decimal& x) {
  const std::size_t first = x.digits.find_first_not_of('0');
  if (first == std::string::npos) {
    x = {};
    return;
  }
  x.digits.erase(0, first);
  x.point -= static_cast<int>(first);
  x.digits.erase(x.digits.find_last_not_of('0') + 1);
}

}  // namespace

BigNatural::BigNatural(std::uint64_t x) {
  for (; x != 0; x /= kBase) limbs_.push_back(static_cast<std::uint32_t>(x % kBase));
}

BigNatural::BigNatural(std::string_view digits) {
  for (std::size_t end = digits.size(); end > 0;) {
    const std::size_t begin = end > kDigitsPerLimb ? end - kDigitsPerLimb : 0;
    std::uint32_t limb = 0;
    for (const char digit : digits.substr(begin, end - begin))
      limb = limb * 10 + static_cast<std::uint32_t>(digit - '0');
    limbs_.push_back(limb);
    end = begin;
  }
  while (!limbs_.empty() && limbs_.back() == 0) limbs_.pop_back();
}

void BigNatural::multiply(std::uint32_t factor) {
  std::uint64_t carry = 0;
  for (std::uint32_t& limb : limbs_) {
    carry += static_cast<std::uint64_t>(limb) * factor;
    limb = static_cast<std::uint32_t>(carry % kBase);
    carry /= kBase;
  }
  for (; carry != 0; carry /= kBase) limbs_.push_back(static_cast<std::uint32_t>(carry % kBase));
}

void BigNatural::multiply_by_power_of_2(int exponent) {
  constexpr int kStep = 31;
  for (; exponent >= kStep; exponent -= kStep) multiply(std::uint32_t{1} << kStep);
  if (exponent > 0) multiply(std::uint32_t{1} << exponent);
}

void BigNatural::multiply_by_power_of_5(int exponent) {
  constexpr int kStep = 13;
  constexpr std::uint32_t kFiveToStep = 1220703125;  // 5^13, the largest that fits
  for (; exponent >= kStep; exponent -= kStep) multiply(kFiveToStep);
  for (; exponent > 0; --exponent) multiply(5);
}

std::string BigNatural::digits() const {
  if (limbs_.empty()) return "0";
  std::string text(limbs_.size() * kDigitsPerLimb, '0');
  std::size_t at = text.size();
  for (std::uint32_t limb : limbs_) {
    for (std::size_t n = 0; n < kDigitsPerLimb; ++n, limb /= 10)
      text[--at] = static_cast<char>('0' + limb % 10);
  }
  text.erase(0, text.find_first_not_of('0'));
  return text;
}

int BigNatural::compare(const BigNatural& other) const {
  if (limbs_.size() != other.limbs_.size()) return limbs_.size() < other.limbs_.size() ? -1 : 1;
  for (std::size_t n = limbs_.size(); n-- > 0;) {
    if (limbs_[n] != other.limbs_[n]) return limbs_[n] < other.limbs_[n] ? -1 : 1;
  }
  return 0;
}

Binary binary_parts(double x) {
  constexpr std::uint64_t kImplicitBit = std::uint64_t{1} << 52;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t fraction = bits & (kImplicitBit - 1);
  const int biased = static_cast<int>((bits >> 52) & 0x7FF);
  if (biased == 0) return {fraction, -1074};
  return {fraction | kImplicitBit, biased - 1075};
}

// m 2^-e = m 5^e 10^-e
Decimal exact_decimal(double x) {
  Binary parts = binary_parts(x);
  if (parts.significand == 0) return {};
  const int zeros = std::countr_zero(parts.significand);  // 1 has one digit, not 53
  parts.significand >>= zeros;
  parts.exponent += zeros;
  BigNatural number(parts.significand);
  int places = 0;
  if (parts.exponent >= 0) {
    number.multiply_by_power_of_2(parts.exponent);
  } else {
    places = -parts.exponent;
    number.multiply_by_power_of_5(places);
  }
  Decimal result{number.digits(), 0};
  result.point = static_cast<int>(result.digits.size()) - places;
  strip_zeros(result);
  return result;
}

Decimal cut(const Decimal& x, int keep) {
  if (keep <= 0) return {};
  Decimal result{x.digits.substr(0, static_cast<std::size_t>(keep)), x.point};
  strip_zeros(result);
  return result;
}

Decimal cut_and_up(const Decimal& x, int keep) {
  if (keep <= 0) return {"1", x.point - keep + 1};
  // One digit more in front, for the carry.
  Decimal result{"0" + x.digits.substr(0, static_cast<std::size_t>(keep)), x.point + 1};
  result.digits.resize(static_cast<std::size_t>(keep) + 1, '0');
  std::size_t at = result.digits.size() - 1;
  while (result.digits[at] == '9') result.digits[at--] = '0';
  ++result.digits[at];
  strip_zeros(result);
  return result;
}

Decimal rounded(const Decimal& x, int keep, Ties ties) {
  const auto size = static_cast<int>(x.digits.size());
  if (keep < 0 || size == 0) return {};
  if (keep >= size) return x;
  const auto first_dropped = static_cast<std::size_t>(keep);
  const char next = x.digits[first_dropped];
  bool is_up = next > '5' || (next == '5' && first_dropped + 1 < x.digits.size());
  if (next == '5' && first_dropped + 1 == x.digits.size()) {
    const bool is_odd = keep > 0 && ((x.digits[first_dropped - 1] - '0') & 1) != 0;
    is_up = ties == Ties::away_from_zero || is_odd;
  }
  return is_up ? cut_and_up(x, keep) : cut(x, keep);
}

}  // namespace glasshead::wire
