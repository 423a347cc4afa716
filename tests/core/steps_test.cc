// The list of steps against the worked examples' exact values (golden/seeds, 50-digit arithmetic
// rounded to f64), and its own promises. 8 ulp is the bar for an f64 path there: a few roundings of
// products, one of exp and one of the division.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "glasshead/attention.h"
#include "glasshead/trace.h"

namespace glasshead {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kUlps = 8;

std::int64_t ordered(double x) {
  const auto bits = std::bit_cast<std::int64_t>(x);
  return bits < 0 ? std::numeric_limits<std::int64_t>::min() - bits : bits;
}

void expect_close(const TraceTensor& got, const std::vector<double>& expected,
                  std::int64_t ulps = kUlps) {
  ASSERT_EQ(got.values.size(), expected.size());
  for (std::size_t n = 0; n < expected.size(); ++n)
    EXPECT_LE(std::llabs(ordered(got.values[n]) - ordered(expected[n])), ulps)
        << "entry " << n << ": " << got.values[n] << ", expected " << expected[n];
}

using Named = std::vector<std::pair<std::string, TraceTensor>>;

TraceTensor matrix(index_t rows, index_t columns, std::vector<double> values) {
  return {{rows, columns}, std::move(values)};
}

// Tokens A (1,0), B (0,1), C (1,1) with identity projections.
Named three_tokens() {
  const TraceTensor x = matrix(3, 2, {1, 0, 0, 1, 1, 1});
  return {{"q", x}, {"k", x}, {"v", x}};
}

AttentionOptions causal() {
  AttentionOptions options;
  options.mask = Mask::causal();
  return options;
}

std::vector<std::string> taps_of(const std::vector<Step>& list) {
  std::vector<std::string> taps;
  for (const Step& step : list) taps.push_back(step.tap);
  return taps;
}

TEST(Steps, three_tokens_causal_has_the_exact_values) {
  const Trace trace = run_steps(steps(causal(), 2), three_tokens());
  expect_close(trace.at("scores"), {1, 0, 1, 0, 1, 1, 1, 1, 2}, 0);
  const double z = 0.7071067811865475;  // 1/sqrt(2) as computed
  expect_close(trace.at("scaled"), {z, 0, z, 0, z, z, z, z, 2 * z}, 0);
  expect_close(trace.at("masked"), {z, -kInfinity, -kInfinity, 0, z, -kInfinity, z, z, 2 * z}, 0);
  expect_close(trace.at("row_max"), {z, z, 2 * z}, 0);
  expect_close(trace.at("exp"),
               {1, 0, 0, 0.4930686913952398, 1, 0, 0.4930686913952398, 0.4930686913952398, 1});
  expect_close(trace.at("row_sum"), {1, 1.4930686913952398, 1.9861373827904796});
  expect_close(trace.at("lse"), {0.7071067811865476, 1.1079403076572498, 2.100405301228165});
  expect_close(trace.at("weights"), {1, 0, 0, 0.33023845067334306, 0.6697615493266569, 0,
                                     0.24825507825772308, 0.24825507825772308, 0.5034898434845538});
  expect_close(trace.at("out"), {1, 0, 0.33023845067334306, 0.6697615493266569, 0.7517449217422769,
                                 0.7517449217422769});
  EXPECT_EQ(trace.at("row_sum").shape, (std::vector<index_t>{3}));
  EXPECT_EQ(trace.at("weights").shape, (std::vector<index_t>{3, 3}));
}

TEST(Steps, separating_unmasked_has_the_exact_values) {
  const Trace trace = run_steps(steps({}, 2), {{"q", matrix(3, 2, {-1, 1, -1, -1, -2, 0})},
                                               {"k", matrix(3, 2, {1, -1, 0, 1, 1, 0})},
                                               {"v", matrix(3, 2, {3, 3, 3, -1, 6, 2})}});
  EXPECT_EQ(trace.find("masked"), nullptr);
  expect_close(trace.at("weights"), {0.08794873877550644, 0.733681106496889, 0.1783701547276046,
                                     0.5034898434845538, 0.24825507825772308, 0.24825507825772308,
                                     0.1635791008120115, 0.672841798375977, 0.1635791008120115});
  expect_close(trace.at("out"), {3.535110464182814, -0.11309458071516047, 3.744765234773169,
                                 1.7587246087113846, 3.4907373024360346, 0.14505370568408052});
}

TEST(Steps, one_query_with_the_third_key_hidden) {
  const std::vector<std::uint8_t> allowed{1, 1, 0};
  AttentionOptions options;
  options.mask = Mask::allowed(Broadcast(ConstTensor<1>(allowed.data(), DType::u8, {3}, {1})));
  const Trace trace = run_steps(steps(options, 2), {{"q", matrix(1, 2, {1, 0})},
                                                    {"k", matrix(3, 2, {1, 0, 0, 1, 1, 1})},
                                                    {"v", matrix(3, 2, {2, 0, 0, 2, 1, 1})}});
  expect_close(trace.at("weights"), {0.6697615493266569, 0.33023845067334306, 0});
  expect_close(trace.at("out"), {1.3395230986533138, 0.6604769013466861});
}

TEST(Steps, a_step_whose_option_is_off_is_left_out) {
  EXPECT_EQ(taps_of(steps({}, 2)), (std::vector<std::string>{"scores", "scaled", "row_max", "exp",
                                                             "row_sum", "lse", "weights", "out"}));
  AttentionOptions all = causal();
  all.softcap = 5;
  all.bias = Bias::alibi({0.5});
  all.dropout = {.p = 0.5, .seed = 1};
  EXPECT_EQ(taps_of(steps(all, 2, "block.0.")),
            (std::vector<std::string>{"block.0.scores", "block.0.scaled", "block.0.capped",
                                      "block.0.biased", "block.0.masked", "block.0.row_max",
                                      "block.0.exp", "block.0.row_sum", "block.0.lse",
                                      "block.0.weights", "block.0.dropped", "block.0.out"}));
}

TEST(Steps, scale_is_one_over_the_root_as_computed_unless_given) {
  EXPECT_EQ(number(steps({}, 2)[1], "scale", 0), 0.7071067811865475);
  AttentionOptions options;
  options.scale = -3;
  EXPECT_EQ(number(steps(options, 2)[1], "scale", 0), -3);
}

TEST(Steps, softcap_and_bias_come_between_scale_and_mask) {
  // scale 1: Z = (2, -1); capped at 1: tanh 2, tanh -1; then ALiBi adds -1·|p - j| at position 1.
  AttentionOptions options;
  options.scale = 1;
  options.softcap = 1;
  options.query_start = index_t{1};
  options.bias = Bias::alibi({1});
  const Trace trace = run_steps(
      steps(options, 1),
      {{"q", matrix(1, 1, {1})}, {"k", matrix(2, 1, {2, -1})}, {"v", matrix(2, 1, {1, 1})}});
  expect_close(trace.at("capped"), {0.9640275800758169, -0.7615941559557649}, 1);
  expect_close(trace.at("biased"), {0.9640275800758169 - 1, -0.7615941559557649}, kUlps);
}

TEST(Steps, a_dense_bias_of_minus_infinity_hides_its_pair) {
  const std::vector<double> bias{0, -kInfinity};
  AttentionOptions options;
  options.bias = Bias::dense(Broadcast(ConstTensor<1>(bias.data(), DType::f64, {2}, {1})));
  const Trace trace = run_steps(steps(options, 1), {{"q", matrix(1, 1, {1})},
                                                    {"k", matrix(2, 1, {1, std::nan("")})},
                                                    {"v", matrix(2, 1, {5, std::nan("")})}});
  EXPECT_EQ(trace.at("weights").values, (std::vector<double>{1, 0}));
  EXPECT_EQ(trace.at("out").values, (std::vector<double>{5}));
}

TEST(Steps, hidden_keys_and_values_are_never_read_into_a_result) {
  Named inputs = three_tokens();
  const Trace clean = run_steps(steps(causal(), 2), inputs);
  for (const double poison : {std::nan(""), kInfinity, -kInfinity}) {
    inputs[1].second.values[4] = inputs[2].second.values[5] = poison;  // token C
    const Trace trace = run_steps(steps(causal(), 2), inputs);
    for (std::size_t n = 0; n < 4; ++n)  // rows A and B
      EXPECT_EQ(trace.at("out").values[n], clean.at("out").values[n]);
    EXPECT_FALSE(std::isfinite(trace.at("out").values[5]));
  }
}

TEST(Steps, nan_in_a_visible_value_shows_even_behind_a_weight_of_0) {
  // exp(-2000) underflows to exactly 0, yet the key is visible.
  AttentionOptions options;
  options.scale = 1;
  const Trace trace = run_steps(steps(options, 1), {{"q", matrix(1, 1, {1})},
                                                    {"k", matrix(2, 1, {0, -2000})},
                                                    {"v", matrix(2, 1, {1, std::nan("")})}});
  EXPECT_EQ(trace.at("weights").values[1], 0);
  EXPECT_TRUE(std::isnan(trace.at("out").values[0]));
}

TEST(Steps, row_with_no_allowed_key_is_zero) {
  AttentionOptions options;
  options.mask = Mask::key_lengths({0});
  const Trace trace = run_steps(steps(options, 2), three_tokens());
  EXPECT_EQ(trace.at("weights").values, std::vector<double>(9, 0.0));
  EXPECT_EQ(trace.at("out").values, std::vector<double>(6, 0.0));
  EXPECT_EQ(trace.at("lse").values, std::vector<double>(3, -kInfinity));
}

TEST(Steps, row_with_no_allowed_key_is_refused_by_name_when_asked) {
  AttentionOptions options;
  options.mask = Mask::causal();
  options.query_start = index_t{-1};  // row 0 stands before every key
  options.empty_row = EmptyRow::error;
  try {
    run_steps(steps(options, 2), three_tokens());
    FAIL() << "not refused";
  } catch (const OptionError& error) {
    ASSERT_EQ(error.problems().size(), 1U);
    EXPECT_NE((error.problems()[0].where + error.problems()[0].what).find("0"), std::string::npos);
  }
}

TEST(Steps, a_row_of_scores_of_minus_infinity_counts_as_empty) {
  const Trace trace = run_steps(steps({}, 1), {{"q", matrix(1, 1, {1})},
                                               {"k", matrix(2, 1, {-kInfinity, -kInfinity})},
                                               {"v", matrix(2, 1, {1, 2})}});
  EXPECT_EQ(trace.at("weights").values, (std::vector<double>{0, 0}));
  EXPECT_EQ(trace.at("out").values, (std::vector<double>{0}));
  EXPECT_EQ(trace.at("lse").values, (std::vector<double>{-kInfinity}));
}

TEST(Steps, a_sink_joins_maximum_and_sum_and_has_no_value) {
  // Scores 0 and ln 3, sink ln 4: the sum is (1 + 3 + 4)/4 after the maximum ln 4 is taken away.
  AttentionOptions options;
  options.scale = 1;
  options.sinks = {std::log(4.0)};
  const Trace trace = run_steps(steps(options, 1), {{"q", matrix(1, 1, {1})},
                                                    {"k", matrix(2, 1, {0, std::log(3.0)})},
                                                    {"v", matrix(2, 1, {8, 16})}});
  EXPECT_EQ(trace.at("row_max").values[0], std::log(4.0));
  expect_close(trace.at("row_sum"), {2});
  expect_close(trace.at("weights"), {0.125, 0.375});
  expect_close(trace.at("out"), {7});
  expect_close(trace.at("lse"), {2.0794415416798357});  // ln 8
}

TEST(Steps, a_sink_alone_gives_0_and_its_own_lse) {
  AttentionOptions options;
  options.mask = Mask::key_lengths({0});
  options.sinks = {0.5};
  options.empty_row = EmptyRow::zero;
  const Trace trace = run_steps(steps(options, 2), three_tokens());
  EXPECT_EQ(trace.at("out").values, std::vector<double>(6, 0.0));
  EXPECT_EQ(trace.at("lse").values, std::vector<double>(3, 0.5));
}

// A row whose scores are all -inf by what q and k hold has no key that counts, dropout or not: its
// output is 0 and the NaN in v stays out, as in attend.
TEST(Steps, a_row_of_scores_minus_infinity_stays_0_under_dropout) {
  Tensor<double, 4> queries({1, 1, 2, 1}), keys({1, 1, 2, 1}), values({1, 1, 2, 1});
  Tensor<double, 4> out({1, 1, 2, 1});
  queries(0, 0, 0, 0) = -1e200;  // row 0: -1e400 twice
  keys(0, 0, 0, 0) = keys(0, 0, 1, 0) = 1e200;
  values(0, 0, 0, 0) = 5;
  values(0, 0, 1, 0) = std::nan("");
  AttentionOptions options;
  options.dropout = {.p = 0.5, .seed = 7};
  const Trace trace = run_steps(steps(options, 1), queries, keys, values, options);
  attend(queries, keys, values, out, options);
  EXPECT_EQ(out(0, 0, 0, 0), 0);
  EXPECT_EQ(trace.at("out").values[0], 0);
  EXPECT_TRUE(std::isnan(trace.at("out").values[1]));
}

TEST(Steps, dropout_drops_or_enlarges_and_leaves_the_weights_alone) {
  AttentionOptions options;
  options.dropout = {.p = 0.25, .seed = 7};
  TraceTensor x{{64, 1}, std::vector<double>(64, 1.0)};
  const Trace trace = run_steps(steps(options, 1), {{"q", x}, {"k", x}, {"v", x}});
  std::size_t dropped = 0;
  for (double weight : trace.at("dropped").values) {
    if (weight == 0)
      ++dropped;
    else
      EXPECT_EQ(weight, 1.0 / 64 * (1 / 0.75));  // 1/64 is exact, so is its product
  }
  // 4,096 independent draws: mean 1,024, standard deviation 27.7; six of them either way.
  EXPECT_NEAR(static_cast<double>(dropped), 1024, 6 * 27.7);
  EXPECT_EQ(trace.at("weights").values, std::vector<double>(4096, 1.0 / 64));
  const Trace again = run_steps(steps(options, 1), {{"q", x}, {"k", x}, {"v", x}});
  EXPECT_EQ(trace.at("dropped").values, again.at("dropped").values);
  options.dropout.seed = 8;
  const Trace other = run_steps(steps(options, 1), {{"q", x}, {"k", x}, {"v", x}});
  EXPECT_NE(trace.at("dropped").values, other.at("dropped").values);
}

TEST(Steps, query_heads_that_share_a_key_value_head_are_adjacent) {
  // Four query heads over two key/value heads, one key each: out is the value of head h / 2.
  const Trace trace = run_steps(
      steps({}, 1),
      {{"q", {{4, 1, 1}, {1, 1, 1, 1}}}, {"k", {{2, 1, 1}, {1, 1}}}, {"v", {{2, 1, 1}, {10, 20}}}});
  EXPECT_EQ(trace.at("out").values, (std::vector<double>{10, 10, 20, 20}));
  EXPECT_EQ(trace.at("out").shape, (std::vector<index_t>{4, 1, 1}));
  EXPECT_EQ(trace.at("lse").shape, (std::vector<index_t>{4, 1}));
}

TEST(Steps, without_subtracting_the_maximum_large_scores_overflow) {
  std::vector<Step> list = steps({}, 1);
  const Named inputs{
      {"q", matrix(1, 1, {1})}, {"k", matrix(2, 1, {800, 800})}, {"v", matrix(2, 1, {1, 3})}};
  EXPECT_EQ(run_steps(list, inputs).at("out").values[0], 2);
  for (Step& step : list)
    if (number(step, "shift", -1) == 1) set_number(step, "shift", 0);
  const Trace naive = run_steps(list, inputs);
  EXPECT_EQ(naive.at("exp").values[0], kInfinity);
  EXPECT_TRUE(std::isnan(naive.at("weights").values[0]));
}

TEST(Steps, a_list_without_its_scale_is_the_unscaled_attention) {
  std::vector<Step> list = steps({}, 2);
  list.erase(list.begin() + 1);
  for (Step& step : list)
    for (std::string& tap : step.reads)
      if (tap == "scaled") tap = "scores";
  const Trace trace = run_steps(list, three_tokens());
  AttentionOptions unscaled;
  unscaled.scale = 1;
  EXPECT_EQ(trace.at("out").values, run_steps(steps(unscaled, 2), three_tokens()).at("out").values);
}

TEST(Steps, a_list_without_its_mask_sees_every_key) {
  std::vector<Step> list = steps(causal(), 2);
  std::erase_if(list, [](const Step& step) { return step.tap == "masked"; });
  for (Step& step : list)
    for (std::string& tap : step.reads)
      if (tap == "masked") tap = "scaled";
  EXPECT_EQ(run_steps(list, three_tokens()).at("out").values,
            run_steps(steps({}, 2), three_tokens()).at("out").values);
}

TEST(Steps, streaming_gives_the_same_bits_as_keeping) {
  AttentionOptions options = causal();
  options.softcap = 3;
  options.bias = Bias::alibi({0.25, 0.5});
  options.dropout = {.p = 0.3, .seed = 3};
  TraceTensor x{{2, 5, 3}, {}};
  for (int n = 0; n < 30; ++n) x.values.push_back(std::sin(n));
  const Named inputs{{"q", x}, {"k", x}, {"v", x}};
  const std::vector<Step> list = steps(options, 3);
  const Trace kept = run_steps(list, inputs);
  std::size_t count = 0;
  run_steps(list, inputs, [&](const Step& step, TraceTensor& value) {
    EXPECT_EQ(value.shape, kept.at(step.tap).shape) << step.tap;
    for (std::size_t n = 0; n < value.values.size(); ++n)
      EXPECT_EQ(std::bit_cast<std::uint64_t>(value.values[n]),
                std::bit_cast<std::uint64_t>(kept.at(step.tap).values[n]))
          << step.tap;
    ++count;
  });
  EXPECT_EQ(count, list.size());
}

TEST(Steps, a_sink_may_change_a_value_before_later_steps_read_it) {
  std::vector<double> out;
  run_steps(steps({}, 2), three_tokens(), [&](const Step& step, TraceTensor& value) {
    if (step.tap == "weights") value.values.assign(9, 0.5);
    if (step.tap == "out") out = value.values;
  });
  EXPECT_EQ(out, std::vector<double>(6, 1.0));
}

TEST(Steps, a_step_reads_the_latest_value_of_a_name) {
  std::vector<Step> list = steps({}, 2);
  Step twice = list[1];
  twice.reads = {"scaled"};
  set_number(twice, "scale", 2);
  list.insert(list.begin() + 2, twice);
  const Trace trace = run_steps(list, three_tokens());
  EXPECT_EQ(trace.at("row_max").values[2], 2 * (2 * 0.7071067811865475));
  EXPECT_EQ(trace.at("scaled").values[0], 2 * 0.7071067811865475);
}

TEST(Steps, a_tap_that_nothing_writes_is_refused_by_name) {
  std::vector<Step> list = steps({}, 2);
  list.erase(list.begin());
  try {
    run_steps(list, three_tokens());
    FAIL() << "not refused";
  } catch (const OptionError& error) {
    ASSERT_EQ(error.problems().size(), 1U);
    EXPECT_EQ(error.problems()[0].where, "scores");
  }
  EXPECT_THROW(run_steps(steps({}, 2), three_tokens()).at("nothing"), OptionError);
}

TEST(Steps, shapes_that_a_step_cannot_take_are_refused_not_read) {
  Named inputs = three_tokens();
  inputs[1].second = matrix(2, 3, {1, 2, 3, 4, 5, 6});
  EXPECT_THROW(run_steps(steps({}, 2), inputs), ShapeError);
  inputs = three_tokens();
  inputs[2].second = matrix(2, 2, {1, 2, 3, 4});
  EXPECT_THROW(run_steps(steps({}, 2), inputs), ShapeError);
  inputs = three_tokens();
  inputs[0].second.values.pop_back();
  EXPECT_THROW(run_steps(steps({}, 2), inputs), ShapeError);
  AttentionOptions options;
  const std::vector<std::uint8_t> allowed{1, 1};
  options.mask = Mask::allowed(Broadcast(ConstTensor<1>(allowed.data(), DType::u8, {2}, {1})));
  EXPECT_THROW(run_steps(steps(options, 2), three_tokens()), ShapeError);
}

TEST(Steps, lengths_of_0_give_empty_tensors_and_empty_rows) {
  const Trace none = run_steps(steps({}, 2), {{"q", matrix(0, 2, {})},
                                              {"k", matrix(3, 2, {1, 2, 3, 4, 5, 6})},
                                              {"v", matrix(3, 1, {1, 2, 3})}});
  EXPECT_EQ(none.at("out").shape, (std::vector<index_t>{0, 1}));
  const Trace no_keys =
      run_steps(steps({}, 2),
                {{"q", matrix(1, 2, {1, 2})}, {"k", matrix(0, 2, {})}, {"v", matrix(0, 1, {})}});
  EXPECT_EQ(no_keys.at("out").values, (std::vector<double>{0}));
}

}  // namespace
}  // namespace glasshead
