// How far two doubles are apart, counted in doubles between them.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <gtest/gtest.h>

namespace glasshead::test {

inline std::int64_t ordered(double x) {
  const auto bits = std::bit_cast<std::int64_t>(x);
  return bits < 0 ? std::numeric_limits<std::int64_t>::min() - bits : bits;
}

inline std::int64_t ulps_apart(double a, double b) {
  const std::int64_t distance = ordered(a) - ordered(b);
  return distance < 0 ? -distance : distance;
}

inline void expect_within_ulps(std::span<const double> got, const std::vector<double>& expected,
                               std::int64_t ulps) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t n = 0; n < expected.size(); ++n)
    EXPECT_LE(ulps_apart(got[n], expected[n]), ulps)
        << "entry " << n << ": got " << got[n] << ", expected " << expected[n];
}

inline void expect_within(std::span<const double> got, const std::vector<double>& expected,
                          double absolute) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t n = 0; n < expected.size(); ++n)
    EXPECT_NEAR(got[n], expected[n], absolute) << "entry " << n;
}

}  // namespace glasshead::test
