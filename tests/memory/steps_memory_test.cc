// How much memory a streamed trace holds, counted by this program's own operator new.
#include <atomic>
#include <cstdlib>
#include <malloc.h>
#include <new>
#include <vector>

#include <gtest/gtest.h>

#include "glasshead/trace.h"

namespace {

std::atomic<std::size_t> live_bytes{0}, peak_bytes{0};

void* counted(std::size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  const std::size_t live = live_bytes += malloc_usable_size(memory);
  if (live > peak_bytes) peak_bytes = live;
  return memory;
}

void release(void* memory) {
  if (memory != nullptr) live_bytes -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }

namespace glasshead {
namespace {

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
