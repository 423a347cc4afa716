// What the benchmark measures as the processor's peak.
#include <gtest/gtest.h>

#include "sets.h"

namespace glasshead::test {
namespace {

TEST(Peak, every_multiply_add_that_is_counted_is_made) {
  for_kernels([](auto zero, const KernelSet& set, const auto& kernels) {
    using T = decltype(zero);
    T sum = 0;
    const index_t chains = kernels.multiply_adds(1, &sum) / kernels.width;
    ASSERT_GE(chains, 8) << set.name;
    // From 1: a = a / 2 + 1 gives 1.5, then 1.75, which any number of terms adds up exactly.
    EXPECT_EQ(sum, static_cast<T>(1.5) * static_cast<T>(chains)) << set.name;
    EXPECT_EQ(kernels.multiply_adds(2, &sum), 2 * chains * kernels.width) << set.name;
    EXPECT_EQ(sum, static_cast<T>(1.75) * static_cast<T>(chains)) << set.name;
    EXPECT_EQ(kernels.multiply_adds(0, &sum), 0) << set.name;
  });
}

}  // namespace
}  // namespace glasshead::test
