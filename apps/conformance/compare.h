// Two arrays held against each other, entry by entry: what is wrong, at the worst entry.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "conformance/array.h"
#include "glasshead/error.h"

namespace glasshead::conformance {

// Why a case failed: the worst entry of one quantity, or a sentence.
struct Failure {
  std::string run;       // "f32", "f64", "trace", ...
  std::string quantity;  // "Y"
  std::vector<index_t> index;
  double got = 0, expected = 0;
  double error_ulp = 0;  // in units in the last place of the expected number
  double limit_ulp = 0;
  std::string sentence;  // instead of the numbers, where there are none
};

Failure in_words(std::string quantity, std::string sentence);
std::string text(const Failure& failure);
std::string text(double x);  // 17 digits, "nan", "inf"

// Whether a call that must fail does.
template <class Call>
bool refuses(const Call& call) {
  try {
    call();
    return false;
  } catch (const Error&) {
    return true;
  }
}

// One unit in the last place of a number of this type at x: 2^(e - 23) for f32, never less than the
// smallest subnormal.
double ulp(double x, DType type);

struct Tolerance {
  DType type = DType::f64;                     // in whose ulps errors are reported
  std::function<double(std::size_t)> allowed;  // |got - expected| of entry n in row-major order
  bool nonfinite_passes = false;               // a non-finite number is right as well
};

// `count` ulp of every expected number.
Tolerance ulps(double count, DType type, const Array& expected);
// Equal numbers; NaN equals NaN, and 0 equals -0.
Tolerance exact(DType type);

// NaN must meet NaN, inf the same inf, and finite numbers within the tolerance. Nothing when all
// entries pass.
std::optional<Failure> compare(const std::string& quantity, const Array& got, const Array& expected,
                               const Tolerance& tolerance);

}  // namespace glasshead::conformance
