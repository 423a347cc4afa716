// The instruction behind the kernel sets that round to bf16: one pair at a time through their
// scores, against numbers worked out by hand from its manual.
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "guarded.h"
#include "sets.h"

namespace glasshead::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// sum_d k[d] * q[d], as one lane of one key.
float score(const Kernels<float>& kernels, const std::vector<float>& q,
            const std::vector<float>& k) {
  const auto d_k = static_cast<index_t>(q.size());
  Guarded<float> panel(d_k * kernels.lanes, Edge::end, 64), scores(kernels.lanes, Edge::end, 64);
  Guarded<float> max(kernels.lanes, Edge::end, 64);
  for (index_t lane = 0; lane < kernels.lanes; ++lane) max[lane] = Arithmetic<float>::kStart;
  const float* const row = q.data();
  kernels.pack({&row, 1, 1, d_k, 1.0, 1, panel.data()});
  kernels.scores({panel.data(),
                  d_k,
                  {k.data(), d_k, 1},
                  1,
                  0,
                  nullptr,
                  nullptr,
                  1,
                  scores.data(),
                  max.data()});
  return scores[0];
}

struct Product {
  const char* what;
  std::vector<float> q, k;
  float sum;
};

TEST(RoundingSets, sum_pairs_as_the_manual_says) {
  const Product products[] = {
      {"a tie goes to the even neighbour: 1 + 2^-8", {0x1.01p0F}, {1}, 1},
      {"and here up: 1 + 3 * 2^-8", {0x1.03p0F}, {1}, 0x1.04p0F},
      {"above the tie", {0x1.010002p0F}, {1}, 0x1.02p0F},
      {"what is bf16 stays", {0x1.FEp0F, -0x1.02p-3F}, {3, 1}, 0x1.7E8p2F - 0x1.02p-3F},
      // 2^24 + 1 is a tie, to the even 2^24, so two of them one after the other are lost; a pair
      // summed first would have given 2^24 + 2.
      {"each product is rounded into the sum by itself",
       {0x1p12F, 0, 1, 1},
       {0x1p12F, 0, 1, 1},
       0x1p24F},
      // Two of its factors' eight bits make sixteen, so only the exponent can tell.
      {"a product that is too small by itself counts",
       {1, 0x1p-65F},
       {0x1p-126F, 0x1p-65F},
       0x1.1p-126F},
      {"as does one that is too large", {-0x1p64F, 0x1p64F}, {0x1p63F, 0x1p64F}, 0x1p127F},
      {"the earlier of a pair comes first", {0x1p24F, 0, 1, -0x1p24F}, {1, 0, 1, 1}, 0},
      {"and the later one last", {0x1p24F, 0, -0x1p24F, 1}, {1, 0, 1, 1}, 1},
      {"a subnormal factor is 0", {0x1p-127F}, {0x1p126F}, 0},
      {"the smallest normal is not", {0x1p-126F}, {0x1p126F}, 1},
      {"a subnormal sum is 0", {0x1p-100F, 0x1p-100F}, {0x1p-27F, 0x1p-27F}, 0},
      {"and stays so", {0x1.8p-126F, -0x1p-126F, 0x1p-126F, 0}, {1, 1, 1, 0}, 0x1p-126F},
      {"the largest floats are infinite in bf16", {std::numeric_limits<float>::max()}, {1}, kInf},
      {"the largest bf16 is not", {0x1.FEp127F}, {1}, 0x1.FEp127F},
      {"infinity less infinity", {kInf, kInf}, {1, -1}, kNan},
      {"infinity times 0", {kInf, 1}, {0, 1}, kNan},
      {"NaN", {1, kNan}, {1, 1}, kNan},
  };
  for (const KernelSet& set : rounding_sets()) {
    for (const Product& p : products) {
      const float found = score(set.f32, p.q, p.k);
      EXPECT_TRUE(found == p.sum || (found != found && p.sum != p.sum))
          << set.name << ": " << p.what << ": " << found;
    }
  }
}

TEST(RoundingSets, finite_means_finite_in_bf16) {
  std::vector<float> x(70, 0x1.FEp127F);
  for (const KernelSet& set : rounding_sets()) {
    const auto ask = [&] { return set.f32.are_finite({x.data(), 10, 1}, 7, 10); };
    EXPECT_TRUE(ask()) << set.name;
    for (const float bad : {0x1.FFp127F, -0x1.FFp127F, kInf, kNan}) {
      x[37] = bad;
      EXPECT_FALSE(ask()) << set.name << ": " << bad;
      x[37] = 1;
    }
  }
}

// Each adds 1 to a lane, and the first lanes are summed.
TEST(RoundingSets, every_multiply_add_that_is_counted_is_made) {
  for (const KernelSet& set : rounding_sets()) {
    for (const index_t rounds : {0, 1, 3}) {
      float sum = -1;
      const index_t count = set.f32.multiply_adds(rounds, &sum);
      EXPECT_EQ(static_cast<float>(count), sum * static_cast<float>(set.f32.width)) << set.name;
    }
    float sum = 0;
    EXPECT_GE(set.f32.multiply_adds(1, &sum), 8 * 2 * set.f32.width) << set.name;
  }
}

// Whoever does not name one gets the same bits as everybody.
TEST(RoundingSets, are_not_on_the_list_that_is_chosen_from) {
  for (const KernelSet* set : kernel_set_list()) EXPECT_FALSE(set->rounds) << set->name;
  for (const KernelSet* set : rounding_set_list()) {
    EXPECT_TRUE(set->rounds) << set->name;
    EXPECT_EQ(find_kernel_set(set->name), set);
    EXPECT_EQ(filled(*set).f32.rows_below, 0) << set->name << ": its rows would be others' bits";
  }
}

}  // namespace
}  // namespace glasshead::test
