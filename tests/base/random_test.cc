#include "base/random.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace glasshead {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The known answers that the paper's authors publish with Random123 (kat_vectors, philox4x32 10).
TEST(Philox, gives_the_published_answers) {
  EXPECT_EQ(philox({0, 0}, {0, 0, 0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xFFFFFFFF;
  EXPECT_EQ(philox({kOnes, kOnes}, {kOnes, kOnes, kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0xa4093822, 0x299f31d0}, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, a_seed_is_the_key_and_a_position_the_counter) {
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Uniform, lies_in_the_unit_interval_with_the_right_mean_and_variance) {
  constexpr int kCount = 200000;
  double sum = 0;
  double squares = 0;
  for (int n = 0; n < kCount; ++n) {
    const double u = uniform(5, static_cast<std::uint64_t>(n));
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    ASSERT_EQ(u * 0x1p53, std::floor(u * 0x1p53));
    sum += u;
    squares += (u - 0.5) * (u - 0.5);
  }
  // Five standard deviations: sqrt(1/12/n) of the mean, sqrt(1/180/n) of the variance.
  EXPECT_NEAR(sum / kCount, 0.5, 5 * std::sqrt(1.0 / 12 / kCount));
  EXPECT_NEAR(squares / kCount, 1.0 / 12, 5 * std::sqrt(1.0 / 180 / kCount));
}

TEST(Uniform, has_53_random_bits_made_of_the_first_two_words) {
  // 0xe169c58d6627e8d5 >> 11 and 0x9b00dbd8bc57ac4c >> 11, from the first published answer.
  EXPECT_EQ(uniform(0, 0), static_cast<double>(0xe169c58d6627e8d5 >> 11) * 0x1p-53);
  EXPECT_EQ(uniform(0, 1), static_cast<double>(0x9b00dbd8bc57ac4c >> 11) * 0x1p-53);
}

TEST(Normal, is_box_and_mullers_of_two_uniforms) {
  const long double u = 1 - static_cast<long double>(uniform(3, 8));
  const long double v = uniform(3, 9);
  const long double radius = std::sqrt(-2 * std::log(u));
  const long double angle = 2 * std::acos(-1.0L) * v;
  // A few roundings of numbers below 10.
  EXPECT_NEAR(standard_normal(3, 8), static_cast<double>(radius * std::cos(angle)), 1e-14);
  EXPECT_NEAR(standard_normal(3, 9), static_cast<double>(radius * std::sin(angle)), 1e-14);
}

TEST(Normal, has_the_moments_and_the_tails_of_the_normal_distribution) {
  constexpr int kCount = 200000;
  double sum = 0;
  double squares = 0;
  double products = 0;
  int beyond_two = 0;
  double before = 0;
  for (int n = 0; n < kCount; ++n) {
    const double z = standard_normal(1, static_cast<std::uint64_t>(n));
    sum += z;
    squares += z * z;
    products += z * before;
    beyond_two += std::fabs(z) > 2 ? 1 : 0;
    before = z;
  }
  const double unit = 5 / std::sqrt(static_cast<double>(kCount));  // five standard deviations
  EXPECT_NEAR(sum / kCount, 0, unit);
  EXPECT_NEAR(squares / kCount, 1, unit * std::sqrt(2.0));
  EXPECT_NEAR(products / kCount, 0, unit);
  const double p = std::erfc(std::sqrt(2.0));  // P(|z| > 2)
  EXPECT_NEAR(beyond_two / static_cast<double>(kCount), p, unit * std::sqrt(p * (1 - p)));
}

TEST(Random, seeds_streams_and_positions_give_different_numbers) {
  std::set<double> seen;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    for (std::uint64_t stream = 0; stream < 4; ++stream) {
      for (std::uint64_t n = 0; n < 100; ++n) seen.insert(uniform(seed, n, stream));
    }
  }
  EXPECT_EQ(seen.size(), 1600U);
}

TEST(Dropped, never_at_0_and_always_at_1) {
  for (index_t j = 0; j < 1000; ++j) {
    EXPECT_FALSE(dropped(9, {0, 1, 2, j}, 0));
    EXPECT_TRUE(dropped(9, {0, 1, 2, j}, 1));
  }
}

TEST(Dropped, a_run_of_pairs_is_dropped_as_they_are_one_by_one) {
  const index_t far = (index_t{1} << 32) - 20;  // the run crosses the counter's lower half
  for (const double p : {0.0, 0x1p-53, 0.1, 0.5, 1 - 0x1p-53, 1.0}) {
    for (const index_t j : {index_t{0}, index_t{5}, far}) {
      for (const index_t count : {0, 1, 15, 16, 17, 128}) {
        std::vector<std::uint8_t> flags(static_cast<std::size_t>(count) + 1, 7);
        dropped_run(3, {far, 2, far + 1, j}, count, p, flags.data());
        for (index_t n = 0; n < count; ++n)
          ASSERT_EQ(flags[static_cast<std::size_t>(n)],
                    dropped(3, {far, 2, far + 1, j + n}, p) ? 1 : 0)
              << p << ", " << j << " + " << n;
        EXPECT_EQ(flags.back(), 7) << "past the run's end";
      }
    }
  }
}

TEST(Dropped, happens_to_the_stated_share_along_every_axis) {
  constexpr int kCount = 20000;
  for (int axis = 0; axis < 4; ++axis) {
    int count = 0;
    for (index_t n = 0; n < kCount; ++n) {
      const PairIndex pair{axis == 0 ? n : 1, axis == 1 ? n : 2, axis == 2 ? n : 3,
                           axis == 3 ? n : 4};
      count += dropped(7, pair, 0.1) ? 1 : 0;
    }
    // Five standard deviations of a share of 0.1.
    EXPECT_NEAR(count / static_cast<double>(kCount), 0.1, 5 * std::sqrt(0.09 / kCount)) << axis;
  }
}

TEST(Dropped, differs_with_each_number_also_above_32_bits) {
  const auto pattern = [](std::uint64_t seed, const PairIndex& at) {
    std::uint64_t bits = 0;
    for (index_t j = 0; j < 64; ++j)
      bits = bits << 1 | (dropped(seed, {at.b, at.h, at.i, at.j + j}, 0.5) ? 1U : 0U);
    return bits;
  };
  const index_t far = index_t{1} << 32;
  std::set<std::uint64_t> seen{pattern(1, {}),
                               pattern(2, {}),
                               pattern(1, {1, 0, 0, 0}),
                               pattern(1, {0, 1, 0, 0}),
                               pattern(1, {0, 0, 1, 0}),
                               pattern(1, {0, 0, 0, 64}),
                               pattern(1, {far, 0, 0, 0}),
                               pattern(1, {0, far, 0, 0}),
                               pattern(1, {0, 0, far, 0}),
                               pattern(1, {0, 0, 0, far})};
  EXPECT_EQ(seen.size(), 10U);
}

}  // namespace
}  // namespace glasshead
