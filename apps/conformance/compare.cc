#include "conformance/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace glasshead::conformance {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool passes(double got, double expected, double allowed) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected) || std::isinf(got)) return got == expected;
  return std::fabs(got - expected) <= allowed;  // false for NaN
}

// How many times the tolerance an entry is off: what "worst" means.
double excess(double got, double expected, double allowed) {
  const double error = std::fabs(got - expected);
  if (!std::isfinite(error)) return kInfinity;
  return allowed > 0 ? error / allowed : kInfinity;
}

std::string shape_text(const std::vector<index_t>& shape) {
  std::string result;
  for (const index_t extent : shape) result += (result.empty() ? "" : ",") + std::to_string(extent);
  return "[" + result + "]";
}

std::string short_text(double x) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.3g", x);
  return buffer;
}

}  // namespace

std::string text(double x) {
  if (std::isnan(x)) return "nan";
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.17g", x);
  return buffer;
}

Failure in_words(std::string quantity, std::string sentence) {
  Failure failure;
  failure.quantity = std::move(quantity);
  failure.sentence = std::move(sentence);
  return failure;
}

std::string text(const Failure& failure) {
  std::string line = failure.run.empty() ? "" : failure.run + ": ";
  line += failure.quantity;
  if (!failure.sentence.empty()) {
    return line + (failure.quantity.empty() ? "" : ": ") + failure.sentence;
  }
  line += shape_text(failure.index) + " = " + text(failure.got) + " where " +
          text(failure.expected) + " is right: ";
  if (!std::isfinite(failure.error_ulp)) return line + "not near";
  return line + short_text(failure.error_ulp) + " ulp, allowed " + short_text(failure.limit_ulp);
}

double ulp(double x, DType type) {
  int digits = 53;
  int smallest = -1074;
  switch (type) {
    case DType::f32:
      digits = 24;
      smallest = -149;
      break;
    case DType::f16:
      digits = 11;
      smallest = -24;
      break;
    case DType::bf16:
      digits = 8;
      smallest = -133;
      break;
    default:
      break;
  }
  if (x == 0 || !std::isfinite(x)) return std::ldexp(1.0, smallest);
  return std::ldexp(1.0, std::max(std::ilogb(x) - digits + 1, smallest));
}

Tolerance ulps(double count, DType type, const Array& expected) {
  return {type, [count, type, &expected](std::size_t n) {
            return count * ulp(expected.values[n], type);
          }};
}

Tolerance exact(DType type) {
  return {type, [](std::size_t) { return 0.0; }};
}

std::optional<Failure> compare(const std::string& quantity, const Array& got, const Array& expected,
                               const Tolerance& tolerance) {
  if (got.shape != expected.shape) {
    return in_words(quantity, "has shape " + shape_text(got.shape) + " where " +
                                  shape_text(expected.shape) + " is right");
  }
  std::optional<Failure> worst;
  double worst_excess = -1;
  for (std::size_t n = 0; n < expected.values.size(); ++n) {
    const double allowed = tolerance.allowed(n);
    const double right = expected.values[n];
    const double value = got.values[n];
    if (passes(value, right, allowed)) continue;
    if (tolerance.nonfinite_passes && !std::isfinite(value)) continue;
    const double now = excess(value, right, allowed);
    if (now <= worst_excess) continue;
    worst_excess = now;
    const double unit = ulp(right, tolerance.type);
    worst = Failure{"",
                    quantity,
                    index_of(static_cast<index_t>(n), expected.shape),
                    value,
                    right,
                    std::fabs(value - right) / unit,
                    allowed / unit,
                    ""};
  }
  return worst;
}

}  // namespace glasshead::conformance
