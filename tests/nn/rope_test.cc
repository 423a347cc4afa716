// Expected values: mpmath at 40 digits. A few ulp are allowed for the angle (one rounded power and
// one rounded product) and the two rounded products of each coordinate.
#include "nn/rope.h"

#include <vector>

#include <gtest/gtest.h>

#include "close.h"

namespace glasshead::nn {
namespace {

using test::expect_within_ulps;

std::vector<double> counting(int n) {
  std::vector<double> x;
  for (int i = 1; i <= n; ++i) x.push_back(i);
  return x;
}

std::vector<double> turned(int n, const Rope& rope, double position) {
  std::vector<double> x = counting(n);
  const RopeTable table = rope_table(rope, n, position);
  rotate(x, table.cos, table.sin, rope);
  return x;
}

TEST(Rope, halves_pair_a_coordinate_with_the_one_half_a_vector_on) {
  expect_within_ulps(
      turned(4, {}, 1),
      {-1.9841106485555497, 1.959900667496664, 2.4623779024123156, 4.019799668334994}, 4);
}

TEST(Rope, adjacent_pairs_a_coordinate_with_its_neighbour) {
  expect_within_ulps(turned(4, {.pairing = RopePairing::adjacent}, 1),
                     {-1.1426396637476532, 1.922075596544176, 2.959850667913329, 4.029799501669161},
                     4);
}

TEST(Rope, partial_rotary_lays_pairs_and_exponent_over_the_leading_coordinates) {
  expect_within_ulps(
      turned(8, {.rotary = 4}, 3),
      {-1.413352520780047, 1.8791180666879923, -2.828857481741469, 4.058191135400941, 5, 6, 7, 8},
      4);
}

TEST(Rope, proportional_rotary_lays_pairs_and_exponent_over_the_whole_vector) {
  expect_within_ulps(
      turned(8, {.rotary = 4, .span = 8}, 3),
      {-1.6955925368997815, 0.1375517382831746, 3, 4, -4.80884247494236, 6.323059348076315, 7, 8},
      32);  // coordinate 1 is a difference of numbers fourteen times its size
}

TEST(Rope, partial_and_proportional_agree_at_position_0_only) {
  EXPECT_EQ(turned(8, {.rotary = 4}, 0), counting(8));
  EXPECT_EQ(turned(8, {.rotary = 4, .span = 8}, 0), counting(8));
  EXPECT_NE(turned(8, {.rotary = 4}, 1), turned(8, {.rotary = 4, .span = 8}, 1));
}

TEST(Rope, tables_from_elsewhere_are_used_as_they_are) {
  std::vector<double> x = counting(4);
  rotate(x, std::vector<double>{0.0, 1.0}, std::vector<double>{1.0, 0.0}, {});
  EXPECT_EQ(x, (std::vector<double>{-3, 2, 1, 4}));
}

TEST(Rope, product_of_turned_vectors_depends_on_the_distance_alone) {
  const auto product = [](double p, double j) {
    const std::vector<double> a = turned(8, {}, p), b = turned(8, {}, j);
    double sum = 0;
    for (std::size_t d = 0; d < a.size(); ++d) sum += a[d] * b[d];
    return sum;
  };
  // 204 = |x|²; each product is off by at most 8 terms' rounding of angles up to 1,000.
  EXPECT_NEAR(product(5, 2), product(1005, 1002), 204 * 1005 * 0x1p-50);
  EXPECT_GT(product(5, 3) - product(5, 2), 1);
}

TEST(Rope, yarn_slows_slow_pairs_leaves_fast_ones_and_mixes_those_between) {
  // base 10000, 16 coordinates, factor 4, 4,096 tokens: pairs 2 to 6 are the mixed ones.
  const Rope rope{.yarn = Yarn{.factor = 4, .original_length = 4096}};
  expect_within_ulps(rope_frequencies(rope, 16),
                     {1, 0.31622776601683794, 0.1, 0.025693505988868083, 0.00625,
                      0.001383496476323666, 0.00025, 7.905694150420948e-05},
                     4);
}

TEST(Rope, yarn_amplitude_is_the_ratio_of_both_factors) {
  EXPECT_EQ(yarn_amplitude({.factor = 16, .mscale = 1, .mscale_all_dim = 1}), 1);
  EXPECT_NEAR(yarn_amplitude({.factor = 16, .mscale = 1, .mscale_all_dim = 0.707}),
              1.0679225365606495, 0x1p-51);
  EXPECT_NEAR(yarn_amplitude({.factor = 16}), 1.2772588722239782, 0x1p-51);
  EXPECT_EQ(yarn_amplitude({.factor = 1}), 1);
}

TEST(Rope, yarn_amplitude_multiplies_cos_and_sin) {
  const RopeTable table = rope_table({.yarn = Yarn{.factor = 16, .original_length = 4096}}, 4, 0);
  EXPECT_NEAR(table.cos[0], 1.2772588722239782, 0x1p-51);
  EXPECT_EQ(table.sin[0], 0);
}

TEST(Rope, check_names_every_field_that_does_not_fit) {
  EXPECT_TRUE(check({}, 4, "rope").empty());
  EXPECT_TRUE(check({.rotary = 4, .span = 8}, 8, "rope").empty());
  const auto problems = check({.base = -1, .rotary = 3, .yarn = Yarn{}}, 8, "rope");
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_EQ(problems[0].where, "rope.base");
  EXPECT_EQ(problems[1].where, "rope.rotary");
  EXPECT_EQ(problems[2].where, "rope.yarn.original_length");
  ASSERT_EQ(check({}, 5, "rope").size(), 1U);
  EXPECT_EQ(check({}, 5, "rope")[0].where, "rope.span");
}

}  // namespace
}  // namespace glasshead::nn
