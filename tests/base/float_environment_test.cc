#include "base/float_environment.h"

#include <cfenv>
#include <limits>

#include <gtest/gtest.h>

namespace glasshead {
namespace {

// 1/10 lies between two floats; what it becomes shows the direction.
float tenth() {
  volatile float one = 1, ten = 10;
  return one / ten;
}

TEST(FloatEnvironment, rounds_to_nearest_whatever_the_thread_did) {
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  const float up = tenth();
  float nearest = 0;
  {
    const DefaultFloatEnvironment environment;
    nearest = tenth();
  }
  const float up_again = tenth();
  ASSERT_EQ(std::fesetround(FE_DOWNWARD), 0);
  const float down = tenth();
  float nearest_again = 0;
  {
    const DefaultFloatEnvironment environment;
    nearest_again = tenth();
  }
  const float down_again = tenth();
  ASSERT_EQ(std::fesetround(FE_TONEAREST), 0);
  EXPECT_EQ(up, 0x1.99999ap-4F);
  EXPECT_EQ(down, 0x1.999998p-4F);
  EXPECT_EQ(nearest, 0x1.99999ap-4F);
  EXPECT_EQ(nearest_again, 0x1.99999ap-4F);
  EXPECT_EQ(up_again, up);
  EXPECT_EQ(down_again, down);
}

TEST(FloatEnvironment, one_inside_another_changes_nothing) {
  ASSERT_EQ(std::fesetround(FE_DOWNWARD), 0);
  float inside = 0;
  {
    const DefaultFloatEnvironment outer;
    {
      const DefaultFloatEnvironment inner;
    }
    inside = tenth();
  }
  const float outside = tenth();
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(inside, 0x1.99999ap-4F);
  EXPECT_EQ(outside, 0x1.999998p-4F);
}

#if defined(__x86_64__)

TEST(FloatEnvironment, traps_nothing) {
  const unsigned before = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(before & ~0x0200U);  // division by zero traps
  volatile float quotient = 0;
  {
    const DefaultFloatEnvironment environment;
    volatile float one = 1, zero = 0;
    quotient = one / zero;  // would end the test with SIGFPE
  }
  const unsigned after = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(before);
  EXPECT_EQ(quotient, std::numeric_limits<float>::infinity());
  EXPECT_EQ(after & 0x0200U, 0U);
}

#elif defined(__aarch64__)

TEST(FloatEnvironment, keeps_subnormals_where_the_thread_flushes_them) {
  std::uint64_t before = 0, after = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(before));
  const std::uint64_t flushing = before | (std::uint64_t{1} << 24);
  __asm__ volatile("msr fpcr, %0" : : "r"(flushing));
  volatile float half = 0;
  {
    const DefaultFloatEnvironment environment;
    volatile float smallest = std::numeric_limits<float>::min();
    half = smallest / 2;
  }
  __asm__ volatile("mrs %0, fpcr" : "=r"(after));
  __asm__ volatile("msr fpcr, %0" : : "r"(before));
  EXPECT_EQ(half, 0x1p-127F);
  EXPECT_EQ(after, flushing);
}

#endif

}  // namespace
}  // namespace glasshead
