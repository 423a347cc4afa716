// The bends of feed-forward layers: how far from the exact value, and the same bits from every set.
#include "kernels/layer_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "guarded.h"
#include "random_rows.h"
#include "sets.h"

namespace glasshead::test {
namespace {

#ifdef GLASSHEAD_EMULATED_MACHINE
constexpr std::uint32_t kStep = 2000003;
#else
constexpr std::uint32_t kStep = 20011;
#endif

using Limits = std::numeric_limits<float>;

long double sigmoid(long double u) { return 1 / (1 + std::exp(-u)); }
long double exact(Bend bend, float number) {
  const auto x = static_cast<long double>(number);
  switch (bend) {
    case Bend::relu:
      return x < 0 ? 0 : x;
    case Bend::gelu:
      return x / 2 * std::erfc(-x * 0.70710678118654752440L);
    case Bend::gelu_tanh:
      return x * sigmoid(2 * 0.79788456080286535588L * (x + 0.044715L * x * x * x));
    case Bend::silu:
      return x * sigmoid(x);
    case Bend::quick_gelu:
      return x * sigmoid(1.702L * x);
    case Bend::tanh:
      return std::tanh(x);
  }
  return 0;
}

// The bounds of kernels/layer_kernels.h.
struct Bound {
  Bend bend;
  const char* name;
  double ulps;
};
constexpr Bound kBounds[] = {{Bend::relu, "relu", 0},
                             {Bend::gelu, "gelu", 6},
                             {Bend::gelu_tanh, "gelu_tanh", 4},
                             {Bend::silu, "silu", 4},
                             {Bend::quick_gelu, "quick_gelu", 4},
                             {Bend::tanh, "tanh", 2.8}};
static_assert(std::size(kBounds) == kBends);

// Some of all finite floats, and more of those around which the bends bend.
std::vector<float> floats() {
  std::vector<float> all;
  for (std::uint32_t n = 0; n < 0x7f800000U; n += kStep)
    for (const std::uint32_t sign : {0U, 0x80000000U})
      all.push_back(std::bit_cast<float>(n | sign));
  for (int n = 0; n < 40000; n += kStep > 100000 ? 100 : 1) {
    all.push_back(static_cast<float>(n) * 0.0005F);
    all.push_back(static_cast<float>(n) * -0.003F);
  }
  return all;
}

std::vector<float> bent(const KernelSet& set, Bend bend, std::vector<float> x,
                        const float* up = nullptr) {
  set.layers.bend({.bend = bend, .count = static_cast<index_t>(x.size()), .x = x.data(), .up = up});
  return x;
}

TEST(Bends, are_within_the_stated_error_of_the_exact_value) {
  const std::vector<float> x = floats();
  const KernelSet set = runnable_sets().front();
  for (const Bound& bound : kBounds) {
    const std::vector<float> y = bent(set, bound.bend, x);
    double most = 0, most_at = 0;
    for (std::size_t n = 0; n < x.size(); ++n) {
      const long double wanted = exact(bound.bend, x[n]);
      const auto away = static_cast<double>(std::fabs(static_cast<long double>(y[n]) - wanted));
      if (std::fabs(wanted) < static_cast<long double>(Limits::min())) {
        ASSERT_LE(away, 1e-43) << bound.name << " of " << x[n] << " is " << y[n];
        continue;
      }
      const double ulps =
          away / std::ldexp(1.0, std::ilogb(static_cast<double>(std::fabs(wanted))) - 23);
      if (ulps > most) most_at = x[n];
      most = std::max(most, ulps);
    }
    RecordProperty(bound.name, std::to_string(most));
    EXPECT_LE(most, bound.ulps) << bound.name << " at " << most_at;
  }
}

TEST(Bends, give_the_same_bits_from_every_set) {
  std::vector<float> x = floats();
  for (const float special : {Limits::infinity(), Limits::quiet_NaN(), Limits::denorm_min(), 0.0F})
    for (const float sign : {1.0F, -1.0F}) x.push_back(special * sign);
  Random random(3);
  std::vector<float> up(x.size());
  for (float& value : up) value = static_cast<float>(random.normal());
  const std::vector<KernelSet> sets = runnable_sets();
  for (const Bound& bound : kBounds) {
    for (const float* const factor : std::vector<const float*>{nullptr, up.data()}) {
      const std::vector<float> expected = bent(sets.front(), bound.bend, x, factor);
      for (const KernelSet& set : sets) {
        const std::vector<float> y = bent(set, bound.bend, x, factor);
        for (std::size_t n = 0; n < x.size(); ++n)
          ASSERT_EQ(std::memcmp(&y[n], &expected[n], sizeof(float)), 0)
              << bound.name << ", " << set.name << ": " << y[n] << " instead of " << expected[n]
              << " at " << x[n];
      }
    }
  }
}

TEST(Bends, of_zeros_infinities_and_nan) {
  for (const KernelSet& set : runnable_sets()) {
    for (const Bound& bound : kBounds) {
      SCOPED_TRACE(std::string(set.name) + ", " + bound.name);
      const std::vector<float> y =
          bent(set, bound.bend,
               {0.0F, -0.0F, Limits::infinity(), -Limits::infinity(),
                std::bit_cast<float>(0xffc12345U), Limits::max(), Limits::lowest()});
      const bool is_tanh = bound.bend == Bend::tanh;
      EXPECT_EQ(y[0], 0);
      EXPECT_FALSE(std::signbit(y[0]));
      EXPECT_EQ(y[1], 0);
      EXPECT_TRUE(std::signbit(y[1]));
      EXPECT_EQ(y[2], is_tanh ? 1 : Limits::infinity());
      EXPECT_EQ(y[3], is_tanh ? -1 : 0);
      EXPECT_EQ(std::bit_cast<std::uint32_t>(y[4]), 0x7fc00000U);
      EXPECT_EQ(y[5], is_tanh ? 1 : Limits::max());
      EXPECT_EQ(y[6], is_tanh ? -1 : 0);
    }
  }
}

TEST(Bends, multiply_by_a_second_row_and_stay_inside_their_rows) {
  Random random(4);
  for (const KernelSet& set : runnable_sets()) {
    for (const index_t count : {1, 3, 8, 17, 40}) {
      std::vector<float> numbers(static_cast<std::size_t>(count)), factors(numbers.size());
      for (float& x : numbers) x = static_cast<float>(random.normal());
      for (float& x : factors) x = static_cast<float>(random.normal());
      const std::vector<float> single = bent(set, Bend::silu, numbers);
      Guarded<float> x(numbers, Edge::end);
      const Guarded<float> up(factors, Edge::end);
      set.layers.bend({.bend = Bend::silu, .count = count, .x = x.data(), .up = &up[0]});
      for (index_t n = 0; n < count; ++n)
        EXPECT_EQ(x[n], single[static_cast<std::size_t>(n)] * factors[static_cast<std::size_t>(n)]);
    }
  }
}

}  // namespace
}  // namespace glasshead::test
