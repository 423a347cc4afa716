// The steps beside `attend`, in f64: the same formula, but `attend` scales q and the steps scale
// the product, so that they differ by roundings.
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "glasshead/attention.h"
#include "glasshead/trace.h"

namespace glasshead {
namespace {

Tensor<double, 4> waves(const std::array<index_t, 4>& shape, double step) {
  Tensor<double, 4> tensor(shape);
  for (index_t n = 0; n < tensor.size(); ++n)
    tensor.data()[n] = std::sin(step * static_cast<double>(n * n % 1009));
  return tensor;
}

void expect_equal_to_attend(const AttentionOptions& options, index_t q_len, index_t kv_len) {
  const Tensor<double, 4> q = waves({2, 4, q_len, 5}, 0.7), k = waves({2, 2, kv_len, 5}, 0.3),
                          v = waves({2, 2, kv_len, 3}, 0.9);
  Tensor<double, 4> out({2, 4, q_len, 3});
  Tensor<double, 3> max({2, 4, q_len}), sum({2, 4, q_len}), lse({2, 4, q_len});
  RowState rows;
  rows.max = MutableTensor<3>(max);
  rows.sum = MutableTensor<3>(sum);
  rows.lse = MutableTensor<3>(lse);
  attend(q, k, v, out, options, rows);
  const Trace trace = attend_traced(q, k, v, options);
  // |scores| <= 5 and |v| <= 1: a score is off by at most 6 roundings of numbers up to 5, which
  // moves a weight by that factor; sums over up to 300 keys in blocks add their own.
  const double bar = 64 * 0x1p-53 * 5;
  for (index_t n = 0; n < out.size(); ++n)
    EXPECT_NEAR(trace.at("out").values[static_cast<std::size_t>(n)], out.data()[n], bar);
  for (index_t n = 0; n < lse.size(); ++n) {
    const auto at = static_cast<std::size_t>(n);
    if (std::isinf(lse.data()[n])) {
      EXPECT_EQ(trace.at("lse").values[at], lse.data()[n]);
      continue;
    }
    EXPECT_NEAR(trace.at("lse").values[at], lse.data()[n], bar);
    EXPECT_NEAR(trace.at("row_max").values[at], max.data()[n], bar);
    EXPECT_NEAR(trace.at("row_sum").values[at], sum.data()[n], bar * 300);
  }
}

TEST(StepsAndAttend, agree_without_a_mask) { expect_equal_to_attend({}, 7, 300); }

TEST(StepsAndAttend, agree_under_masks_that_intersect) {
  AttentionOptions options;
  options.query_start = Align::end;
  options.mask = Mask::causal() & Mask::window(40, 3) & Mask::key_lengths({250, 299});
  expect_equal_to_attend(options, 9, 300);
}

TEST(StepsAndAttend, agree_with_softcap_bias_and_sinks) {
  AttentionOptions options;
  options.softcap = 2;
  options.query_start = index_t{4};
  options.bias = Bias::alibi(Bias::alibi_slopes(4));
  options.sinks = {0.5, -1, 2, 0};
  options.mask = Mask::prefix({3});
  expect_equal_to_attend(options, 6, 131);
}

TEST(StepsAndAttend, agree_with_dropout) {
  AttentionOptions options;
  options.dropout = {.p = 0.4, .seed = 99};
  expect_equal_to_attend(options, 5, 40);
}

TEST(StepsAndAttend, agree_on_rows_without_a_key) {
  AttentionOptions options;
  options.mask = Mask::key_lengths({0, 2});
  expect_equal_to_attend(options, 3, 4);
}

// A weight of 0 times NaN is NaN: what a row sees is never left out in silence.
void expect_nan_in_both(const AttentionOptions& options) {
  const Tensor<double, 4> q = waves({1, 1, 1, 2}, 1), k = waves({1, 1, 2, 2}, 1);
  Tensor<double, 4> v({1, 1, 2, 1});
  v.data()[1] = std::nan("");
  Tensor<double, 4> out({1, 1, 1, 1});
  attend(q, k, v, out, options);
  EXPECT_TRUE(std::isnan(out.data()[0]));
  EXPECT_TRUE(std::isnan(attend_traced(q, k, v, options).at("out").values[0]));
}

TEST(StepsAndAttend, agree_that_nan_beside_a_sink_that_takes_all_is_seen) {
  AttentionOptions options;
  options.sinks = {1e6};
  expect_nan_in_both(options);
}

TEST(StepsAndAttend, agree_that_nan_is_seen_where_every_weight_is_dropped) {
  AttentionOptions options;
  options.dropout = {.p = 1 - 0x1p-53, .seed = 1};
  expect_nan_in_both(options);
}

TEST(StepsAndAttend, agree_that_rows_without_a_key_see_no_nan) {
  const Tensor<double, 4> q = waves({1, 1, 1, 2}, 1), k = waves({1, 1, 2, 2}, 1);
  Tensor<double, 4> v({1, 1, 2, 1});
  v.data()[0] = v.data()[1] = std::nan("");
  AttentionOptions hidden, beside_a_sink, through_the_data;
  hidden.mask = beside_a_sink.mask = Mask::key_lengths({0});
  beside_a_sink.sinks = {0};
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> bias{-infinity, -infinity};
  through_the_data.bias = Bias::dense(Broadcast(ConstTensor<1>(bias.data(), DType::f64, {2}, {1})));
  for (const AttentionOptions& options : {hidden, beside_a_sink, through_the_data}) {
    Tensor<double, 4> out({1, 1, 1, 1});
    attend(q, k, v, out, options);
    EXPECT_EQ(out.data()[0], 0);
    EXPECT_EQ(attend_traced(q, k, v, options).at("out").values[0], 0);
  }
}

TEST(StepsAndAttend, both_refuse_what_check_refuses) {
  const Tensor<double, 4> q = waves({1, 3, 2, 4}, 1), k = waves({1, 2, 2, 4}, 1);
  EXPECT_THROW(attend_traced(q, k, k), ShapeError);
}

}  // namespace
}  // namespace glasshead
