// The trace's check that the fused path computes what is shown.
#include "wire/fused_check.h"

#include <gtest/gtest.h>

#include "glasshead/trace.h"

namespace glasshead::wire {
namespace {

TraceTensor matrix(index_t rows, index_t columns, std::vector<double> values) {
  return {{rows, columns}, std::move(values)};
}

const std::vector<std::pair<std::string, TraceTensor>> kInputs{
    {"q", matrix(2, 2, {1, 0, 0.5, -1})},
    {"k", matrix(3, 2, {1, 1, -2, 0.25, 0, 3})},
    {"v", matrix(3, 2, {1, 2, 3, 4, 5, 6})}};

AttentionOptions causal() {
  AttentionOptions options;
  options.mask = Mask::causal();
  options.query_start = 1;
  return options;
}

TEST(FusedCheck, a_right_trace_agrees) {
  const auto line = fused_check(run_steps(steps(causal(), 2), kInputs));
  ASSERT_TRUE(line);
  EXPECT_EQ(line->id, "fused-path");
  EXPECT_EQ(line->text, "fused path agrees");
  EXPECT_TRUE(line->is_ok);
}

TEST(FusedCheck, one_changed_digit_is_found_and_its_row_named) {
  Trace trace = run_steps(steps(causal(), 2), kInputs);
  trace.steps.back().value.values[3] += 1e-13;  // out is some units: 500 times its rounding
  const auto line = fused_check(trace);
  ASSERT_TRUE(line);
  EXPECT_FALSE(line->is_ok);
  EXPECT_EQ(line->detail.substr(0, 21), "out row 1 differs by ");
}

TEST(FusedCheck, attention_with_a_mistake_is_not_compared) {
  std::vector<Step> list = steps(causal(), 2);
  set_number(list[1], "scale", 1);  // the options say 1/sqrt(d_k)
  EXPECT_FALSE(fused_check(run_steps(list, kInputs)));
}

TEST(FusedCheck, a_row_without_a_key_and_infinite_scores_agree) {
  AttentionOptions options = causal();
  options.query_start = -1;  // row 0 sees nothing
  auto inputs = kInputs;
  const auto empty = fused_check(run_steps(steps(options, 2), inputs));
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->is_ok);
  inputs[0].second.values[0] = 1e308;  // 1e308 * -2 overflows
  const auto infinite = fused_check(run_steps(steps(causal(), 2), inputs));
  ASSERT_TRUE(infinite);
  EXPECT_TRUE(infinite->is_ok);
}

TEST(FusedCheck, a_large_trace_has_no_such_line) {
  // 2^20 multiply-adds are checked: 513 * 512 * (2 + 2) are more.
  const index_t n = 512;
  const auto rows = [](index_t count) {
    return matrix(count, 2, std::vector<double>(static_cast<std::size_t>(2 * count), 0.5));
  };
  const auto has_line = [&](index_t queries) {
    return fused_check(
               run_steps(steps({}, 2), {{"q", rows(queries)}, {"k", rows(n)}, {"v", rows(n)}}))
        .has_value();
  };
  EXPECT_TRUE(has_line(n));
  EXPECT_FALSE(has_line(n + 1));
}

TEST(FusedCheck, no_attention_no_line) { EXPECT_FALSE(fused_check(Trace{})); }

}  // namespace
}  // namespace glasshead::wire
