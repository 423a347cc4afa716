// Doubles as decimal text and back, by exact integer arithmetic on the double's bits: the same
// characters on every machine, whatever the locale.
//
//   fixed(0.33023845067334, 4) == "0.3302"      scientific(123456, 4) == "1.2346e+5"
//   shortest(0.1) == "0.1"                      *parse_double("0.1") == 0.1
//   round_half_up(0.615, 2) == 0.62             (the double 0.615 lies below 0.615)
//
// Printing rounds the exact binary value to nearest; a value exactly between two decimals goes to
// the even digit. "-0", "-0.00" are never printed, save by shortest; not-numbers are "nan", "inf",
// "-inf".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace glasshead::wire {

// x with this many digits after the point, at least 0: "0.3302", "12", any magnitude.
std::string fixed(double x, int decimals);

// One digit before the point, `decimals` (at least 0) after it, the exponent with its sign and no
// padding: "1.2346e+5", "5e-324".
std::string scientific(double x, int decimals);

// At most `digits` (at least 1) significant digits, zeros at the end left out: 0.1f with 8 prints
// "0.1". Written out from 10^-5 to below 10^7 ("1230"), else as "1.23e+7".
std::string significant(double x, int digits);

// x rounded to `decimals` places as on paper, half away from zero; the double nearest to that
// decimal. What a half is, is decided on x rounded to 12 significant digits: 0.615 on paper is
// 0.61499999999999999 in binary. nan, inf and -inf stay.
double round_half_up(double x, int decimals);

// The fewest digits that read back as the same double, of these the nearest to x: at most 17.
// A JSON number for every finite x: "1", "0.1", "1e+300", "-0.0" (its sign survives reading).
// Written out from 10^-5 to below 10^17.
std::string shortest(double x);

// The double nearest to the decimal (ties to the even one); nullopt if the text is not wholly a
// number: [+-] digits with or without a point, [e [+-] digits], or inf, -inf, nan. ".5" and "5."
// are numbers, "" and "." are not. Too large is inf, too small is 0, with the sign.
std::optional<double> parse_double(std::string_view text);
bool parse_double(std::string_view text, double& value);  // false leaves value alone

}  // namespace glasshead::wire
