// Exact decimal digits: natural numbers of any size, and a double's whole decimal expansion. Used
// by decimal.cc only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace glasshead::wire {

// A natural number in base 10^9, least significant limb first, no zero limbs on top.
class BigNatural {
 public:
  explicit BigNatural(std::uint64_t x);
  explicit BigNatural(std::string_view digits);  // decimal digits only

  void multiply(std::uint32_t factor);
  void multiply_by_power_of_2(int exponent);
  void multiply_by_power_of_5(int exponent);

  std::string digits() const;  // without leading zeros; "0" for zero
  // -1, 0, 1: this less than, equal to, greater than the other.
  int compare(const BigNatural& other) const;

 private:
  std::vector<std::uint32_t> limbs_;
};

// A finite double's magnitude: significand * 2^exponent, exactly.
struct Binary {
  std::uint64_t significand = 0;  // below 2^53
  int exponent = 0;               // at least -1074
};
Binary binary_parts(double x);

// 0.digits * 10^point, digits without zeros at either end; zero has no digits.
struct Decimal {
  std::string digits;
  int point = 0;
};

// |x| exactly: at most 767 digits.
Decimal exact_decimal(double x);

enum class Ties { to_even, away_from_zero };

// The first `keep` digits, rounded to nearest; keep <= 0 leaves zero, or (for 0) one unit above the
// first digit's place.
Decimal rounded(const Decimal& x, int keep, Ties ties);

// The first `keep` digits, cut; and that plus one unit of its last place.
Decimal cut(const Decimal& x, int keep);
Decimal cut_and_up(const Decimal& x, int keep);

}  // namespace glasshead::wire
