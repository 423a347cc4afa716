#include "core/findings.h"

#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/shape_text.h"

namespace glasshead {
namespace {

// 0 <= x < 1e15, six decimals, without trailing zeros.
std::string fixed_text(double x) {
  auto whole = static_cast<std::int64_t>(x);
  auto millionths =
      static_cast<std::int64_t>(std::floor((x - static_cast<double>(whole)) * 1e6 + 0.5));
  if (millionths == 1000000) {
    ++whole;
    millionths = 0;
  }
  if (millionths == 0) return fmt::format("{}", whole);
  std::string text = fmt::format("{}.{:06}", whole, millionths);
  while (text.back() == '0') text.pop_back();
  return text;
}

}  // namespace

void refuse(const char* function, const Findings& findings) {
  if (findings.is_empty()) return;
  fail(findings.has_shape ? ErrorKind::shape : ErrorKind::option, function, findings.problems);
}

std::string shape_text(std::span<const index_t> shape) { return "[" + joined(shape, ",") + "]"; }

std::string index_text(std::span<const index_t> at) { return "(" + joined(at, ", ") + ")"; }

std::string number_text(double x) {
  if (std::isnan(x)) return "nan";
  const std::string sign = std::signbit(x) && x != 0 ? "-" : "";
  double size = std::fabs(x);
  if (std::isinf(size)) return sign + "inf";
  if (size == 0 || (size >= 1e-3 && size < 1e15)) return sign + fixed_text(size);
  int exponent = 0;
  while (size >= 10) {
    size /= 10;
    ++exponent;
  }
  while (size < 1) {
    size *= 10;
    --exponent;
  }
  if (size >= 9.9999995) {  // would be written as 10
    size = 1;
    ++exponent;
  }
  return sign + fixed_text(size) + fmt::format("e{}", exponent);
}

}  // namespace glasshead
