// How attend says it would run a call.
#include "glasshead/attend_plan.h"

#include <cstring>

#include <gtest/gtest.h>

#include "glasshead/error.h"
#include "glasshead/kv_cache.h"

namespace glasshead {
namespace {

const float kNothing = 0;

// Shapes only: every element is the same float.
ConstTensor<4> shaped(index_t batch, index_t heads, index_t length, index_t d) {
  return {&kNothing, DType::f32, {batch, heads, length, d}, {0, 0, 0, 0}};
}

AttendPlan prefill(index_t heads, index_t kv_heads, index_t n, const AttentionOptions& options,
                   int threads = 1) {
  const Context scalar({.isa = "scalar", .threads = threads, .parallel_for = {}});
  return plan_attend(shaped(1, heads, n, 64), shaped(1, kv_heads, n, 64),
                     shaped(1, kv_heads, n, 64), options, scalar);
}

AttentionOptions causal() {
  AttentionOptions options;
  options.mask = Mask::causal();
  return options;
}

TEST(AttendPlan, says_which_kernels_run_and_who_chose_them) {
  const AttendPlan plan = prefill(1, 1, 8, {});
  EXPECT_EQ(plan.isa, "scalar");
  EXPECT_EQ(plan.why_isa, "asked for by the program");
  EXPECT_EQ(plan.compute, DType::f32);
}

TEST(AttendPlan, counts_the_tiles_of_causal_attention) {
  // Two query heads share a key head, so a panel of 2r rows holds positions i to i + r - 1; r
  // divides 128. Blocks of keys before a panel's own are seen whole, its own in part, later ones
  // not at all.
  const AttendPlan plan = prefill(2, 1, 256, causal());
  const index_t panels = 2 * 256 / plan.rows_per_panel;
  EXPECT_EQ(plan.tiles.all, panels / 2);
  EXPECT_EQ(plan.tiles.some, panels);
  EXPECT_EQ(plan.tiles.none, panels / 2);
}

TEST(AttendPlan, attention_without_a_mask_makes_none_and_skips_nothing) {
  const AttendPlan plan = prefill(2, 2, 256, {});
  EXPECT_EQ(plan.tiles.some, 0);
  EXPECT_EQ(plan.tiles.none, 0);
  EXPECT_EQ(plan.tiles.all, 2 * 256 / plan.rows_per_panel * 2);
}

TEST(AttendPlan, a_window_skips_all_but_the_blocks_it_touches) {
  AttentionOptions options;
  options.mask = Mask::window(127, 0);
  const AttendPlan plan = prefill(1, 1, 2048, options);
  // A panel of r rows sees keys of 127 + r positions: two blocks, or the first alone.
  const index_t panels = 2048 / plan.rows_per_panel;
  EXPECT_LE(plan.tiles.all + plan.tiles.some, 2 * panels);
  EXPECT_EQ(plan.tiles.none + plan.tiles.all + plan.tiles.some, 16 * panels);
}

TEST(AttendPlan, one_query_with_many_keys_is_cut_by_keys_for_every_thread) {
  const Context two({.isa = "scalar", .threads = 2, .parallel_for = {}});
  const AttendPlan plan =
      plan_attend(shaped(1, 1, 1, 64), shaped(1, 1, 16384, 64), shaped(1, 1, 16384, 64), {}, two);
  EXPECT_EQ(plan.threads, 2);
  EXPECT_GT(plan.nodes, 1);
  EXPECT_EQ(plan.keys_per_node % 1024, 0);
  EXPECT_GE(plan.nodes * plan.keys_per_node, 16384);
  EXPECT_EQ(plan.items, plan.row_blocks * plan.nodes);
  EXPECT_EQ(plan.tiles.all, 128);
}

TEST(AttendPlan, few_rows_take_the_other_form_on_every_set_with_vectors) {
  for (const KernelSetInfo& set : kernel_sets()) {
    if (!set.is_supported || std::strcmp(set.name, "scalar") == 0) continue;
    const Context context({.isa = set.name, .threads = 1, .parallel_for = {}});
    const auto form = [&](index_t rows) {
      return plan_attend(shaped(1, 1, rows, 64), shaped(1, 1, 64, 64), shaped(1, 1, 64, 64), {},
                         context)
          .form;
    };
    EXPECT_EQ(form(1), AttendForm::rows) << set.name;
    EXPECT_EQ(form(64), AttendForm::panel) << set.name;
  }
}

TEST(AttendPlan, scratch_grows_with_threads_and_rows_never_with_pairs) {
  const index_t one = prefill(1, 1, 4096, causal(), 1).scratch_bytes;
  const index_t two = prefill(1, 1, 4096, causal(), 2).scratch_bytes;
  const index_t longer = prefill(1, 1, 65536, causal(), 1).scratch_bytes;
  EXPECT_GT(one, 128 * 4 * 4);  // a tile of scores
  EXPECT_GT(two, one);
  EXPECT_LT(two, 2 * one);
  EXPECT_LT(longer, 32 * one);  // 16 times the rows, 256 times the pairs
}

TEST(AttendPlan, no_query_rows_need_nothing) {
  const AttendPlan plan =
      plan_attend(shaped(1, 1, 0, 64), shaped(1, 1, 4, 64), shaped(1, 1, 4, 64), {});
  EXPECT_EQ(plan.items, 0);
  EXPECT_EQ(plan.threads, 0);
  EXPECT_EQ(plan.scratch_bytes, 0);
}

TEST(AttendPlan, refuses_what_attend_refuses) {
  EXPECT_THROW(plan_attend(shaped(1, 3, 4, 64), shaped(1, 2, 4, 64), shaped(1, 2, 4, 64)),
               ShapeError);
}

// A cache of two sequences of 300 and 1,200 keys of one head, d = 64.
KvCache two_sequences() {
  KvCacheOptions sizes;
  sizes.batch = 2;
  sizes.kv_heads = 1;
  sizes.d_k = 64;
  sizes.d_v = 64;
  KvCache cache(sizes);
  for (const auto& [sequence, keys] : {std::pair<index_t, index_t>{0, 300}, {1, 1200}}) {
    const ConstTensor<3> rows(&kNothing, DType::f32, {1, keys, 64}, {0, 0, 0});
    cache.append(sequence, rows, rows);
  }
  return cache;
}

TEST(AttendPlan, of_a_cache_counts_what_each_sequence_holds) {
  const Context scalar({.isa = "scalar", .threads = 1, .parallel_for = {}});
  const KvCache cache = two_sequences();
  const AttendPlan plan = plan_attend(shaped(2, 1, 1, 64), cache.input(), causal(), scalar);
  // Blocks of 128 keys: 300 are two whole ones and 44 keys, 1,200 nine and 48; each query stands
  // at its sequence's last key and sees all of it. The longest has ten blocks.
  EXPECT_EQ(plan.tiles.all + plan.tiles.some, 3 + 10);
  EXPECT_EQ(plan.tiles.none, 10 - 3);
  EXPECT_EQ(plan.items, 2);
}

TEST(AttendPlan, of_a_cache_refuses_what_attend_refuses) {
  KvCache cache = two_sequences();
  EXPECT_THROW(plan_attend(shaped(1, 1, 1, 64), cache.input()), ShapeError);
  const KvInput before = cache.input();
  cache.truncate(0, 10);
  EXPECT_THROW(plan_attend(shaped(2, 1, 1, 64), before), OptionError);
}

}  // namespace
}  // namespace glasshead
