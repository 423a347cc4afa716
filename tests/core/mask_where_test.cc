// Masks by rule: any function of (b, h, query position, key position), asked once per pair.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "core/plan_of_batch.h"
#include "core/tile_plan.h"
#include "testing.h"

namespace glasshead::test {
namespace {

AttentionOptions with(Mask mask, QueryStart start = {}) {
  AttentionOptions options;
  options.mask = std::move(mask);
  options.query_start = start;
  return options;
}

// Counts its questions: every third key before the query.
struct Asked {
  std::shared_ptr<std::atomic<index_t>> count = std::make_shared<std::atomic<index_t>>(0);
  bool operator()(index_t, index_t, index_t p, index_t j) const {
    ++*count;
    return j <= p && (p - j) % 3 == 0;
  }
};

TEST(Where, sees_batch_head_and_positions) {
  std::vector<std::array<index_t, 4>> seen;
  const auto rule = [&seen](index_t b, index_t h, index_t p, index_t j) {
    seen.push_back({b, h, p, j});
    return true;
  };
  const MaskPlan plan(with(Mask::where(rule), index_t{10}), {2, 1, 1, 2});
  EXPECT_EQ(seen, (std::vector<std::array<index_t, 4>>{
                      {0, 0, 10, 0}, {0, 0, 10, 1}, {1, 0, 10, 0}, {1, 0, 10, 1}}));
}

TEST(Where, hides_what_the_rule_says_and_says_so) {
  const auto even = [](index_t, index_t h, index_t p, index_t j) { return (h + p + j) % 2 == 0; };
  const MaskPlan plan(with(Mask::causal() & Mask::where(even)), {1, 2, 4, 4});
  EXPECT_EQ(plan.reasons(0, 0, 2, 1).names(), (std::vector<std::string>{"rule"}));
  EXPECT_EQ(plan.reasons(0, 0, 2, 3).names(), (std::vector<std::string>{"causal", "rule"}));
  EXPECT_TRUE(plan.allowed(0, 1, 2, 1));
  EXPECT_EQ(plan.count_allowed(0, 0, 3), 2);
  EXPECT_EQ(plan.key_range(0, 0, 3).end, 4);
}

// The worked example of a causal mask, by rule: the same bits as the causal mask, on every path.
TEST(Where, causal_by_rule_gives_the_bits_of_the_causal_mask) {
  Attention call = three_g({2, 3, 70, 4});
  call.options.mask = Mask::causal();
  Attention by_rule = call;
  by_rule.options.mask = Mask::where([](index_t, index_t, index_t p, index_t j) { return j <= p; });
  for (const DType type : {DType::f64, DType::f32})
    expect_same_bits(run(by_rule, type), run(call, type));
}

TEST(Where, each_pair_is_asked_once_and_calls_of_the_same_sizes_share_the_answers) {
  const Asked asked;
  const PairRule rule(asked);
  const AttentionOptions options = with(Mask::where(rule));
  const PairShape shape{2, 3, 40, 200};
  AttentionOptions start = options;
  start.query_start = index_t{160};
  const TilePlan first(start, shape);
  EXPECT_EQ(*asked.count, 2 * 3 * 40 * 200);
  const TilePlan second(start, shape);
  const TilePlan third(with(Mask::causal() & Mask::where(rule), index_t{160}), shape);
  const MaskPlan fourth(start, shape);
  EXPECT_EQ(*asked.count, 2 * 3 * 40 * 200);
  EXPECT_TRUE(fourth.allowed(1, 2, 39, 199));
  EXPECT_FALSE(fourth.allowed(1, 2, 39, 198));
}

TEST(Where, other_sizes_another_place_or_another_version_ask_again) {
  const Asked asked;
  const PairRule rule(asked);
  const auto plan = [&](const PairShape& shape, index_t start, std::uint64_t version) {
    const index_t before = *asked.count;
    const MaskPlan made(with(Mask::where(rule, version), start), shape);
    return *asked.count - before;
  };
  EXPECT_EQ(plan({1, 1, 3, 5}, 0, 0), 15);
  EXPECT_EQ(plan({1, 1, 3, 5}, 0, 0), 0);
  EXPECT_EQ(plan({1, 1, 3, 5}, 1, 0), 15);
  EXPECT_EQ(plan({1, 1, 3, 6}, 0, 0), 18);
  EXPECT_EQ(plan({1, 1, 3, 5}, 0, 7), 15);
  EXPECT_EQ(plan({1, 1, 3, 5}, 0, 0), 0);  // still there
  for (index_t n = 10; n < 20; ++n) plan({1, 1, 1, n}, 0, 0);
  EXPECT_EQ(plan({1, 1, 3, 5}, 0, 0), 15);  // not kept for ever
}

TEST(Where, a_rule_that_changed_is_read_anew_under_a_new_version) {
  bool allows = true;
  const PairRule rule([&allows](index_t, index_t, index_t, index_t) { return allows; });
  EXPECT_TRUE(MaskPlan(with(Mask::where(rule, 1)), {1, 1, 2, 2}).allowed(0, 0, 0, 0));
  allows = false;
  EXPECT_TRUE(MaskPlan(with(Mask::where(rule, 1)), {1, 1, 2, 2}).allowed(0, 0, 0, 0));
  EXPECT_FALSE(MaskPlan(with(Mask::where(rule, 2)), {1, 1, 2, 2}).allowed(0, 0, 0, 0));
}

TEST(Where, a_rule_without_batch_or_heads_is_asked_for_one_of_them) {
  const auto asked_of = [](PairRuleOptions options) {
    const Asked asked;
    const PairRule rule(asked, options);
    const MaskPlan plan(with(Mask::where(rule)), {3, 4, 5, 5});
    for (index_t b = 0; b < 3; ++b)
      for (index_t h = 0; h < 4; ++h) EXPECT_TRUE(plan.allowed(b, h, 4, 1));
    return asked.count->load();
  };
  EXPECT_EQ(asked_of({}), 3 * 4 * 25);
  EXPECT_EQ(asked_of({.per_batch = false}), 4 * 25);
  EXPECT_EQ(asked_of({.per_head = false}), 3 * 25);
  EXPECT_EQ(asked_of({.per_batch = false, .per_head = false}), 25);
}

TEST(Where, sequences_at_different_places_are_each_asked_for_themselves_alone) {
  const Asked asked;
  const AttentionOptions options = with(Mask::where(PairRule(asked)));
  const PlanOfBatch plans(options, {5, 9, 9, 7}, {4, 2, 3, 10});
  EXPECT_EQ(*asked.count, 4 * 2 * 3 * 10);
  EXPECT_TRUE(plans[0].mask().allowed(0, 1, 1, 3));
  EXPECT_FALSE(plans[1].mask().allowed(1, 1, 1, 3));
  EXPECT_TRUE(plans[2].mask().allowed(2, 1, 1, 4));
}

// A batch of none shares its key with any other where the rule looks at no batch.
TEST(Where, a_batch_of_none_leaves_nothing_behind_for_others) {
  const PairRule rule(Asked(), {.per_batch = false, .per_head = false});
  const MaskPlan empty(with(Mask::where(rule)), {0, 2, 3, 3});
  EXPECT_TRUE(MaskPlan(with(Mask::where(rule)), {2, 2, 3, 3}).allowed(1, 1, 2, 2));
}

TEST(Where, threads_that_need_the_same_answers_ask_once) {
  const Asked asked;
  const AttentionOptions options = with(Mask::where(PairRule(asked)));
  std::vector<std::thread> threads;
  for (int n = 0; n < 4; ++n)
    threads.emplace_back([&] { const TilePlan plan(options, {1, 2, 100, 100}); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(*asked.count, 2 * 100 * 100);
}

TEST(Where, a_null_predicate_is_refused) {
  Attention call = small();
  call.options.query_start = index_t{0};
  call.options.mask = Mask::where(PairPredicate());
  EXPECT_TRUE(says(problems_of(call), "mask.where", "null"));
  call.options.mask = Mask::where([](index_t, index_t, index_t, index_t) { return true; });
  EXPECT_TRUE(problems_of(call).empty());
}

TEST(Where, speaks_of_positions_so_the_corner_must_be_stated) {
  Attention call = small();
  call.options.mask = Mask::where([](index_t, index_t, index_t, index_t) { return true; });
  EXPECT_TRUE(says(problems_of(call), "query_start", "where"));
}

// Rows that a rule leaves without a key are found where empty rows are an error.
TEST(Where, rows_without_a_key_are_named) {
  Attention call = small();
  call.options.query_start = index_t{0};
  call.options.empty_row = EmptyRow::error;
  call.options.mask = Mask::where([](index_t, index_t, index_t p, index_t) { return p != 1; });
  EXPECT_FALSE(problems_of(call).empty());
}

}  // namespace
}  // namespace glasshead::test
