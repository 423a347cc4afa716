#include "doctor/judge.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/math.h"

namespace glasshead::doctor {

double distance(double found, double expected, double tolerance) {
  if (found == expected || (std::isnan(found) && std::isnan(expected))) return 0;
  if (!std::isfinite(found) || !std::isfinite(expected) || std::isnan(tolerance))
    return std::numeric_limits<double>::infinity();
  return std::fabs(found - expected) / tolerance;
}

Compared Judge::compared(const char* claim, index_t last, double found, DType dtype,
                         double expected, double error, double size) const {
  // Rounded once more to be stored, and once to be printed.
  double tolerance =
      error + half_ulp(dtype) * std::fabs(expected) + smallest(dtype) + smallest(arithmetic_);
  // A little more than half a unit: a value on the edge may have been rounded from either side.
  if (decimals_) tolerance += 0.5000001 * math::pow(10, -*decimals_);
  if (std::isinf(found) && std::fabs(expected) > largest(dtype) && (found > 0) == (expected > 0))
    expected = found;
  return {claim, last, found, expected, tolerance, std::fabs(size)};
}

double Judge::misfit(const RowNumbers& numbers, const RowIndex& at, bool may_drop,
                     double enough) const {
  double worst = 0;
  each(numbers, at, may_drop, [&](const Compared& c) {
    worst = std::max(worst, distance(c.found, c.expected, c.tolerance));
    return worst <= enough;
  });
  return worst;
}

std::vector<Shown> shown(const Judge& judge, const RowNumbers& numbers, const RowIndex& at) {
  std::vector<Shown> all;
  judge.each(numbers, at, false, [&](const Compared& c) {
    all.push_back({c.expected, c.tolerance, std::string_view(c.claim) == "weights"});
    return true;
  });
  return all;
}

index_t count_differing(const std::vector<Shown>& a, const std::vector<Shown>& b) {
  if (a.size() != b.size()) return static_cast<index_t>(std::max(a.size(), b.size()));
  index_t count = 0;
  for (std::size_t n = 0; n < a.size(); ++n)
    if (distance(a[n].expected, b[n].expected, a[n].tolerance + b[n].tolerance) > 4) ++count;
  return count;
}

}  // namespace glasshead::doctor
