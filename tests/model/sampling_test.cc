// How the next token is chosen. Expected choices follow from the definitions by hand.
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "glasshead/model.h"

namespace glasshead {
namespace {

// Logits whose probabilities are 1/2, 1/4, 1/8, 1/8 at temperature 1, in the order of ids 2 0 1 3.
const std::vector<float> kLogits{-1.3862944F, -2.0794415F, -0.6931472F, -2.0794415F};

index_t choose(const Sampling& sampling, std::uint64_t draw,
               const std::vector<index_t>& text = {}) {
  return sample({kLogits.data(), {4}}, sampling, text, draw);
}

// How often each id comes in 4,000 draws.
std::map<index_t, int> counts(const Sampling& sampling) {
  std::map<index_t, int> found;
  for (std::uint64_t n = 0; n < 4000; ++n) ++found[choose(sampling, n)];
  return found;
}

// Four standard deviations of a count of 4,000 draws with probability p.
void expect_share(int found, double p) {
  EXPECT_NEAR(found, 4000 * p, 4 * std::sqrt(4000 * p * (1 - p)));
}

TEST(Sampling, greedy_takes_the_largest_and_of_equal_ones_the_lowest) {
  EXPECT_EQ(choose({}, 0), 2);
  const std::vector<float> equal{1, 3, 3, 2};
  EXPECT_EQ(sample({equal.data(), {4}}, {}, {}, 0), 1);
}

TEST(Sampling, an_infinite_logit_is_certain_and_a_nan_is_never_drawn) {
  const std::vector<float> infinite{0, INFINITY, 1, NAN};
  const std::vector<float> none{NAN, -INFINITY, NAN};
  for (std::uint64_t draw = 0; draw < 20; ++draw) {
    EXPECT_EQ(sample({infinite.data(), {4}}, {.temperature = 1}, {}, draw), 1);
    EXPECT_EQ(sample({none.data(), {3}}, {.temperature = 1}, {}, draw), 0);
  }
}

TEST(Sampling, draws_follow_the_probabilities) {
  std::map<index_t, int> found = counts({.temperature = 1});
  expect_share(found[2], 0.5);
  expect_share(found[0], 0.25);
  expect_share(found[1], 0.125);
  expect_share(found[3], 0.125);
}

TEST(Sampling, temperature_divides_logits) {
  // Probabilities to the power 1/2: 1/2, 1/4, 1/8, 1/8 become 0.5, 0.3536, 0.25, 0.25 times a
  // factor; over their sum with sqrt(1/2) = 0.7071 for the first: 0.7071 / 1.9142.
  std::map<index_t, int> found = counts({.temperature = 2});
  expect_share(found[2], std::sqrt(0.5) / (std::sqrt(0.5) + 0.5 + 2 * std::sqrt(0.125)));
}

TEST(Sampling, top_k_top_p_and_min_p_leave_the_best) {
  for (const Sampling& sampling :
       {Sampling{.temperature = 1, .top_k = 2}, Sampling{.temperature = 1, .top_p = 0.6},
        Sampling{.temperature = 1, .min_p = 0.4}}) {
    std::map<index_t, int> found = counts(sampling);
    EXPECT_EQ(found[1] + found[3], 0);
    expect_share(found[2], 2.0 / 3);
  }
  // The first token alone reaches 0.5, and one always stays.
  EXPECT_EQ(counts({.temperature = 1, .top_p = 0.49}).size(), 1U);
  EXPECT_EQ(counts({.temperature = 1, .min_p = 1}).size(), 1U);
}

TEST(Sampling, a_penalty_makes_used_tokens_less_probable) {
  // -0.69 times 3 is below -1.39.
  EXPECT_EQ(choose({.repetition_penalty = 3}, 0, {2}), 0);
  const std::vector<float> positive{4, 5};
  EXPECT_EQ(sample({positive.data(), {2}}, {.repetition_penalty = 2}, {1}, 0), 0);
}

TEST(Sampling, a_draw_is_a_function_of_seed_and_number) {
  int same = 0;
  for (std::uint64_t n = 0; n < 100; ++n) {
    EXPECT_EQ(choose({.temperature = 1, .seed = 7}, n), choose({.temperature = 1, .seed = 7}, n));
    same += choose({.temperature = 1, .seed = 7}, n) == choose({.temperature = 1, .seed = 8}, n);
  }
  EXPECT_LT(same, 70);  // two independent draws agree 34 times of 100
}

TEST(Sampling, everything_out_of_range_is_said) {
  const std::vector<Problem> problems = check(
      Sampling{.temperature = -1, .top_k = -2, .top_p = 0, .min_p = 1.5, .repetition_penalty = 0});
  ASSERT_EQ(problems.size(), 5U);
  EXPECT_EQ(problems[0].where, "temperature");
  EXPECT_EQ(problems[2].what, "0; a probability above 0, at most 1 (all tokens)");
  EXPECT_TRUE(check(Sampling{}).empty());
}

}  // namespace
}  // namespace glasshead
