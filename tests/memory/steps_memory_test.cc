// How much memory a streamed trace holds.
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "glasshead/trace.h"
#include "memory/counted.h"

namespace glasshead {
namespace {

using counted::live_bytes;
using counted::peak_bytes;

TEST(StepsMemory, a_streamed_head_stays_within_one_score_matrix_and_small_change) {
  constexpr index_t kLength = 1000;
  AttentionOptions options;
  options.mask = Mask::causal();
  options.softcap = 20;
  options.bias = Bias::alibi({0.01});
  const std::vector<Step> list = steps(options, 2);
  const TraceTensor x{{kLength, 2}, std::vector<double>(2 * kLength, 0.5)};
  std::vector<std::pair<std::string, TraceTensor>> inputs{{"q", x}, {"k", x}, {"v", x}};
  const std::size_t before = live_bytes;
  peak_bytes = before;
  std::size_t count = 0;
  run_steps(list, std::move(inputs), [&](const Step&, TraceTensor&) { ++count; });
  EXPECT_EQ(count, list.size());
  const std::size_t matrix = kLength * kLength * sizeof(double);
  EXPECT_GE(peak_bytes - before, matrix);  // it was counted
  EXPECT_LE(peak_bytes - before, matrix + matrix / 10);
}

TEST(StepsMemory, one_row_of_many_keys_needs_no_square_matrix) {
  constexpr index_t kKeys = 100'000;
  const TraceTensor q{{1, 2}, {1, 1}};
  const TraceTensor k{{kKeys, 2}, std::vector<double>(2 * kKeys, 0.5)};
  std::vector<std::pair<std::string, TraceTensor>> inputs{{"q", q}, {"k", k}, {"v", k}};
  const std::size_t before = live_bytes;
  peak_bytes = before;
  const Trace trace = run_steps(steps({}, 2), std::move(inputs));
  EXPECT_EQ(trace.at("out").shape, (std::vector<index_t>{1, 2}));
  EXPECT_LE(peak_bytes - before, 10 * kKeys * sizeof(double));  // rows of 100,000, a few of them
}

}  // namespace
}  // namespace glasshead
