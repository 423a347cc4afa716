// Norms, activations, softmax, embeddings. Expected values: mpmath at 40 digits, unless a line says
// otherwise; tolerances are a few roundings of f64.
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "close.h"
#include "nn/activation.h"
#include "nn/embedding.h"
#include "nn/norm.h"
#include "nn/softmax.h"

namespace glasshead::nn {
namespace {

using test::expect_within_ulps;
using test::ulps_apart;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(LayerNorm, subtracts_the_mean_divides_by_the_spread_then_gain_and_bias) {
  std::vector<double> out(4);
  const Moments moments =
      layer_norm(std::vector<double>{1, 2, 4, -3}, std::vector<double>{1, 2, .5, -1},
                 std::vector<double>{0, .25, -1, 3}, 1e-5, out);
  EXPECT_EQ(moments.mean, 1);
  EXPECT_LE(ulps_apart(moments.inverse_std, 0.3922319685595852), 2);
  expect_within_ulps(out, {0, 1.0344639371191704, -0.41165204716062215, 4.568927874238341}, 4);
}

TEST(LayerNorm, of_equal_numbers_is_the_bias) {
  std::vector<double> x{3, 3, 3};
  layer_norm(x, {}, std::vector<double>{1, 2, 3}, 1e-5, x);  // in place
  EXPECT_EQ(x, (std::vector<double>{1, 2, 3}));
}

TEST(RmsNorm, divides_by_the_root_of_the_mean_square_and_keeps_the_mean) {
  std::vector<double> out(4);
  const double r =
      rms_norm(std::vector<double>{1, 2, 4, -3}, std::vector<double>{1, 2, .5, -1}, 1e-5, out);
  EXPECT_LE(ulps_apart(r, 0.3651481282381064), 2);
  expect_within_ulps(
      out, {0.3651481282381064, 1.4605925129524255, 0.7302962564762128, 1.0954443847143192}, 4);
}

TEST(Activation, matches_its_formula) {
  struct Row {
    double x, gelu, gelu_tanh, silu, swish_1_5;
  };
  for (const Row& row :
       {Row{-3, -0.0040496940948902835, -0.003637392081773019, -0.14227761953270035,
            -0.03296082789177954},
        Row{-.5, -0.15426876936299344, -0.15428599017485609, -0.18877033439907273,
            -0.1604106504123035},
        Row{.25, 0.14967658142073093, 0.149675350701685, 0.14054412522144952, 0.14816664998851745},
        Row{1, 0.8413447460685429, 0.8411919906082767, 0.7310585786300049, 0.8175744761936437},
        Row{2.5, 2.4844758366855597, 2.484915733910001, 2.310354549946891, 2.442556575224936}}) {
    // 1 + erf and 1 + tanh are off by up to 2^-53 of 1 each: an absolute error of x.
    const double absolute = std::fabs(row.x) * 0x1p-51;
    EXPECT_NEAR(gelu(row.x), row.gelu, absolute);
    EXPECT_NEAR(gelu_tanh(row.x), row.gelu_tanh, absolute);
    EXPECT_LE(ulps_apart(silu(row.x), row.silu), 4);
    EXPECT_LE(ulps_apart(silu(row.x, 1.5), row.swish_1_5), 4);
  }
  EXPECT_EQ(relu(-2), 0);
  EXPECT_EQ(relu(2), 2);
  EXPECT_TRUE(std::isnan(relu(std::nan(""))));
}

TEST(Activation, silu_keeps_its_tiny_values_where_exp_would_overflow) {
  // x·(e/(1 + e)): exp's own error of one ulp and two roundings.
  EXPECT_LE(ulps_apart(silu(-710), -3.1781632202293424e-306), 4);
}

TEST(Activation, ends_at_0_on_the_far_negative_side_and_at_x_on_the_other) {
  for (const Activation kind :
       {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
    EXPECT_EQ(activate(kind, -kInfinity), 0) << name(kind);
    EXPECT_EQ(activate(kind, kInfinity), kInfinity) << name(kind);
    EXPECT_EQ(activate(kind, 0), 0) << name(kind);
    EXPECT_EQ(activate(kind, 1e6), 1e6) << name(kind);
  }
  EXPECT_EQ(activate(Activation::none, -2), -2);
}

TEST(Softmax, of_a_row) {
  std::vector<double> out(4);
  const std::vector<index_t> shape{4};
  softmax(std::vector<double>{1, 2, 4, -3}, shape, 0, out);
  expect_within_ulps(
      out, {0.04197776671083263, 0.11410740044934936, 0.8431459832233869, 0.0007688496164311372},
      4);
  log_softmax(std::vector<double>{1, 2, 4, -3}, shape, 0, out);
  expect_within_ulps(
      out, {-3.170615164889167, -2.170615164889167, -0.17061516488916717, -7.170615164889167}, 8);
}

TEST(Softmax, runs_along_the_axis_asked_for) {
  // Logarithms of whole numbers: every column of the middle axis is 1/4, 3/4 or 3/4, 1/4.
  const double three = std::log(3.0);
  std::vector<double> x{0, three, three, 0};
  const std::vector<index_t> shape{1, 2, 2};
  softmax(x, shape, 1, x);
  expect_within_ulps(x, {.25, .75, .75, .25}, 4);
}

TEST(Softmax, is_not_moved_by_large_numbers_and_shows_nan) {
  const std::vector<index_t> shape{2};
  std::vector<double> out(2);
  softmax(std::vector<double>{1e300, 1e300}, shape, 0, out);
  EXPECT_EQ(out, (std::vector<double>{.5, .5}));
  softmax(std::vector<double>{1, std::nan("")}, shape, 0, out);
  EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1]));
  softmax(std::vector<double>{-kInfinity, 0}, shape, 0, out);
  EXPECT_EQ(out, (std::vector<double>{0, 1}));
}

TEST(Embedding, picks_the_row_of_the_id) {
  std::vector<double> out(2);
  embed(std::vector<double>{1, 2, 3, 4, 5, 6}, 2, out);
  EXPECT_EQ(out, (std::vector<double>{5, 6}));
}

TEST(Embedding, sinusoidal_positions_alternate_sine_and_cosine) {
  std::vector<double> out(5);
  sinusoidal(7, 10000, out);
  expect_within_ulps(out,
                     {0.6569865987187891, 0.7539022543433046, 0.17492741915009652,
                      0.9845813313431686, 0.004416687051757925},
                     8);  // the angle carries two roundings
  sinusoidal(0, 10000, out);
  EXPECT_EQ(out, (std::vector<double>{0, 1, 0, 1, 0}));
}

}  // namespace
}  // namespace glasshead::nn
