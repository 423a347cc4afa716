// Whole rows, panel by panel, against the literal row function: the same bits from every set, and
// from those that round to bf16 the bits of the function that rounds as they do.
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "panel_run.h"
#include "sets.h"

namespace glasshead::test {
namespace {

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <class T>
void expect_same(const Result<T>& a, const Result<T>& b, const std::string& what) {
  EXPECT_TRUE(same_bits(a.out, b.out)) << what << ": out";
  EXPECT_TRUE(same_bits(a.max, b.max)) << what << ": max";
  EXPECT_TRUE(same_bits(a.sum, b.sum)) << what << ": sum";
}

// Each case through every set, with layouts, pieces and panels drawn anew.
template <class T>
void compare_all(std::uint64_t first_seed, int cases, const Sizes& sizes,
                 const std::vector<KernelSet>& sets = runnable_sets()) {
  for (int n = 0; n < cases; ++n) {
    const std::uint64_t seed = first_seed + static_cast<std::uint64_t>(n);
    const Rows<T> rows = random_rows<T>(seed, sizes);
    const Result<T> expected = reference_result(rows, !sets.empty() && sets[0].rounds);
    for (const KernelSet& set : sets) {
      expect_same(run_rows(kernels_of<T>(set), rows, seed), expected,
                  std::string(set.name) + ", seed " + std::to_string(seed));
    }
    if (testing::Test::HasFailure()) return;
  }
}

#ifdef GLASSHEAD_EMULATED_MACHINE
constexpr int kShare = 8;
#else
constexpr int kShare = 1;
#endif

TEST(Panels, give_the_bits_of_the_row_function_in_float) {
  compare_all<float>(1000, 160 / kShare, {40, 300, 40});
  compare_all<float>(2000, 24 / kShare, {20, 200, 130});
}

TEST(Panels, give_the_bits_of_the_row_function_in_double) {
  compare_all<double>(3000, 160 / kShare, {40, 300, 40});
  compare_all<double>(4000, 24 / kShare, {20, 200, 130});
}

TEST(Panels, merge_chunks_as_the_row_function_does) {
  compare_all<float>(5000, 16 / kShare, {9, 5000, 5});
  compare_all<double>(6000, 16 / kShare, {9, 5000, 5});
}

TEST(Panels, give_the_bits_of_the_row_function_in_bf16) {
  compare_all<float>(7000, 160 / kShare, {40, 300, 40}, rounding_sets());
  compare_all<float>(8000, 24 / kShare, {20, 200, 300}, rounding_sets());
  compare_all<float>(9000, 16 / kShare, {9, 5000, 5}, rounding_sets());
}

}  // namespace
}  // namespace glasshead::test
