#include "core/mask_plan.h"

#include <algorithm>

#include "case_table.h"
#include "core/bias_plan.h"
#include "naive.h"
#include "testing.h"

namespace glasshead::test {
namespace {

PairShape shape_of(const Attention& call) {
  return {call.q.shape[0], call.q.shape[1], call.q.shape[2], call.k.shape[2]};
}

// allowed, reasons, key_range, fill_row, count_allowed and has_allowed say the same, which is what
// the independent reading of the rules says; key_range is as small as the interval-shaped rules
// make it.
TEST(MaskPlan, all_its_answers_agree_for_every_case) {
  for (const Case& entry : case_table()) {
    SCOPED_TRACE(entry.name);
    const PairShape shape = shape_of(entry.call);
    const MaskPlan plan(entry.call.options, shape);
    std::vector<std::uint8_t> flags(static_cast<std::size_t>(shape.kv_len));
    for (index_t b = 0; b < shape.batch; ++b)
      for (index_t h = 0; h < shape.heads; ++h)
        for (index_t i = 0; i < shape.q_len; ++i) {
          const KeyRange keys = plan.key_range(b, h, i);
          index_t count = 0;
          std::fill(flags.begin(), flags.end(), std::uint8_t{9});
          const index_t filled = plan.fill_row(b, h, i, {0, shape.kv_len}, flags.data());
          for (index_t j = 0; j < shape.kv_len; ++j) {
            const bool is_allowed = naive_allowed(entry.call, b, h, i, j);
            ASSERT_EQ(plan.allowed(b, h, i, j), is_allowed) << b << h << i << j;
            ASSERT_EQ(flags[static_cast<std::size_t>(j)], is_allowed ? 1 : 0);
            if (is_allowed) {
              ASSERT_TRUE(keys.begin <= j && j < keys.end) << "outside its range";
            }
            count += is_allowed ? 1 : 0;
          }
          ASSERT_EQ(plan.count_allowed(b, h, i), count);
          ASSERT_EQ(filled, count);
          ASSERT_EQ(plan.has_allowed(b, h, i), count > 0);
        }
  }
}

TEST(MaskPlan, key_range_is_the_smallest_interval) {
  AttentionOptions options;
  options.mask = Mask::causal() & Mask::window(2, 5) & Mask::key_lengths({7});
  options.query_start = index_t{4};
  const MaskPlan plan(options, {1, 1, 6, 10});
  const index_t expected[6][2] = {{2, 5}, {3, 6}, {4, 7}, {5, 7}, {6, 7}, {0, 0}};
  for (index_t i = 0; i < 6; ++i) {
    EXPECT_EQ(plan.key_range(0, 0, i).begin, expected[i][0]);
    EXPECT_EQ(plan.key_range(0, 0, i).end, expected[i][1]);
  }
}

TEST(MaskPlan, names_every_rule_that_hides_a_pair) {
  AttentionOptions options;
  options.mask = Mask::causal() & Mask::window(1, 1) & Mask::key_lengths({3}) &
                 Mask::segments(1, {0, 0, 0, 0}, {0, 0, 0, 1}) & Mask::prefix({1}) &
                 mask_of({4}, {1, 1, 1, 0});
  options.bias = bias_of({4}, {0, 0, 0, -kInf});
  const MaskPlan plan(options, {1, 1, 4, 4});
  EXPECT_EQ(plan.reasons(0, 0, 0, 3).names(),
            (std::vector<std::string>{"causal", "window", "padding", "segments", "prefix", "mask",
                                      "bias"}));
  EXPECT_EQ(plan.reasons(0, 0, 0, 1).names(), (std::vector<std::string>{"causal", "prefix"}));
  EXPECT_EQ(plan.reasons(0, 0, 3, 0).names(), (std::vector<std::string>{"window"}));
  EXPECT_TRUE(plan.reasons(0, 0, 2, 2).is_empty());
}

TEST(MaskPlan, windows_as_wide_as_the_type_do_not_overflow) {
  constexpr index_t kLargest = std::numeric_limits<index_t>::max();
  AttentionOptions options;
  options.mask = Mask::window(kLargest, kLargest);
  for (const index_t start : {-(index_t{1} << 61), index_t{0}, index_t{1} << 61}) {
    options.query_start = start;
    const MaskPlan plan(options, {1, 1, 1, 3});
    EXPECT_EQ(plan.count_allowed(0, 0, 0), 3);
  }
}

TEST(BiasPlan, its_answers_agree_with_the_naive_reading_for_every_case) {
  for (const Case& entry : case_table()) {
    SCOPED_TRACE(entry.name);
    const PairShape shape = shape_of(entry.call);
    const BiasPlan plan(entry.call.options, shape);
    EXPECT_EQ(plan.is_empty(), entry.call.options.bias.terms().empty());
    for (index_t b = 0; b < shape.batch; ++b)
      for (index_t h = 0; h < shape.heads; ++h)
        for (index_t i = 0; i < shape.q_len; ++i) {
          std::vector<double> row(static_cast<std::size_t>(shape.kv_len), 2.0);
          plan.add_row(b, h, i, {0, shape.kv_len}, row.data());
          for (index_t j = 0; j < shape.kv_len; ++j) {
            const double at = plan.at<double>(b, h, i, j);
            ASSERT_EQ(row[static_cast<std::size_t>(j)], 2.0 + at);
            const auto expected =
                static_cast<double>(naive_bias<long double>(entry.call, b, h, i, j));
            if (at != expected) {
              ASSERT_NEAR(at, expected, 1e-15 * std::fabs(expected) + 1e-16);
            }
          }
        }
  }
}

// The slopes of the paper's code, printed there for 8 heads and for 12 (not 2^(-8 h / 12)).
TEST(Alibi, slopes_for_any_number_of_heads) {
  EXPECT_EQ(Bias::alibi_slopes(8), (std::vector<double>{0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625,
                                                        0.0078125, 0.00390625}));
  const std::vector<double> twelve = Bias::alibi_slopes(12);
  ASSERT_EQ(twelve.size(), 12U);
  EXPECT_EQ(twelve[7], 0.00390625);
  EXPECT_NEAR(twelve[8], std::sqrt(0.5), 2e-16);
  EXPECT_NEAR(twelve[9], std::sqrt(0.5) / 2, 1e-16);
  EXPECT_NEAR(twelve[11], std::sqrt(0.5) / 8, 3e-17);
  EXPECT_EQ(Bias::alibi_slopes(1), (std::vector<double>{0.00390625}));
  EXPECT_TRUE(Bias::alibi_slopes(0).empty());
}

// 32 buckets, max_distance 128: both sides of each edge, by integer arithmetic on
// (distance / exact)^n >= (max_distance / exact)^bucket, which has no logarithm to round.
TEST(T5, buckets_of_both_directions) {
  Bias::T5 t5;
  const std::pair<index_t, index_t> both[] = {
      {0, 0},    {-1, 1},   {-7, 7},   {-8, 8},   {-11, 8},   {-12, 9},    {-15, 9},
      {-16, 10}, {-22, 10}, {-23, 11}, {-31, 11}, {-32, 12},  {-45, 12},   {-46, 13},
      {-63, 13}, {-64, 14}, {-90, 14}, {-91, 15}, {-128, 15}, {-9999, 15}, {1, 17},
      {7, 23},   {8, 24},   {16, 26},  {64, 30},  {128, 31},  {9999, 31}};
  for (const auto& [distance, bucket] : both)
    EXPECT_EQ(Bias::t5_bucket(distance, t5), bucket) << distance;
  t5.is_bidirectional = false;
  const std::pair<index_t, index_t> back[] = {
      {5, 0},    {0, 0},    {-1, 1},    {-15, 15},  {-16, 16},  {-18, 16},  {-19, 17},
      {-32, 21}, {-64, 26}, {-112, 30}, {-113, 31}, {-128, 31}, {-5000, 31}};
  for (const auto& [distance, bucket] : back)
    EXPECT_EQ(Bias::t5_bucket(distance, t5), bucket) << distance;
}

}  // namespace
}  // namespace glasshead::test
