// Published configurations: their sizes as published, and what a context costs, by hand.
#include <gtest/gtest.h>

#include "glasshead/model_facts.h"

namespace glasshead {
namespace {

TEST(KnownModels, have_as_many_parameters_as_was_published) {
  // The numbers that the files hold, as their pages give them.
  const std::vector<std::pair<const char*, index_t>> exact{
      {"gpt2", 124439808},          {"gpt2-medium", 354823168},  {"gpt2-large", 774030080},
      {"gpt2-xl", 1557611200},      {"llama-2-7b", 6738415616},  {"llama-2-13b", 13015864320},
      {"llama-2-70b", 68976648192}, {"llama-3-8b", 8030261248},  {"llama-3-70b", 70553706496},
      {"mistral-7b", 7241732096},   {"smollm2-135m", 134515008}, {"qwen3-0.6b", 596049920},
      {"gemma-2-2b", 2614341888},   {"gemma-3-270m", 268098176}, {"t5-small", 60506624}};
  for (const auto& [name, parameters] : exact)
    EXPECT_EQ(model_facts(name).parameters, parameters) << name;
  // Brown et al. 2020, table 2.1: 175.0 billion.
  EXPECT_NEAR(static_cast<double>(model_facts("gpt-3").parameters), 175.0e9, 0.5e9);
  EXPECT_EQ(known_models().size(), exact.size() + 1);
}

TEST(KnownModels, share_keys_as_published) {
  const ModelFacts model = model_facts("llama-2-70b");
  EXPECT_EQ(model.family, "llama");
  EXPECT_EQ(model.kind, "decoder");
  EXPECT_EQ(model.format, "");
  ASSERT_EQ(model.stacks.size(), 1U);
  ASSERT_EQ(model.stacks[0].layers.size(), 80U);
  const AttentionFacts& self = model.stacks[0].layers[79].self;
  EXPECT_EQ(self.heads, 64);
  EXPECT_EQ(self.kv_heads, 8);
  EXPECT_EQ(self.d_k, 128);
  EXPECT_EQ(self.positions, "rotary, base 10000");
  EXPECT_EQ(model.bytes, 2 * model.parameters);
}

TEST(ModelCost, a_cache_holds_keys_and_values_of_every_layer) {
  // 80 layers, 8 heads, 128 + 128 numbers of 4 bytes, 4,096 tokens.
  const ModelCost cost = model_cost(model_facts("llama-2-70b"), 4096);
  EXPECT_EQ(cost.cache_bytes, index_t{4} * 80 * 8 * 256 * 4096);
  EXPECT_EQ(cost.cache_bytes_windows, cost.cache_bytes);
  EXPECT_EQ(cost.cache_bytes_per_head, 8 * cost.cache_bytes);
  EXPECT_EQ(cost.weights_bytes, 4.0 * 80 * 64 * 4096 * 4096);
}

TEST(ModelCost, attention_counts_the_pairs_that_are_seen) {
  // 12 layers of 12 heads, 2·(64 + 64) operations a pair, n(n + 1)/2 pairs.
  const ModelCost cost = model_cost(model_facts("gpt2"), 1000);
  EXPECT_EQ(cost.attention_flops, 12.0 * 12 * 256 * 500500);
  EXPECT_EQ(cost.attention_flops_next, 12.0 * 12 * 256 * 1001);
  // 12 layers of 12·768² numbers in matrices, and the table once.
  EXPECT_EQ(cost.matrix_flops, 2.0 * 12 * 12 * 768 * 768 * 1000 + 2.0 * 50257 * 768);
  EXPECT_EQ(cost.matrix_flops_next, 2.0 * 12 * 12 * 768 * 768 + 2.0 * 50257 * 768);
}

TEST(ModelCost, windows_bound_pairs_and_what_has_to_be_kept) {
  const ModelFacts model = model_facts("mistral-7b");
  const ModelCost cost = model_cost(model, 10000);
  // The first 4,096 queries see 1, 2, ..., 4096 keys, the others 4,096 each.
  EXPECT_EQ(cost.attention_flops, 32.0 * 32 * 512 * (4096.0 * 4097 / 2 + (10000.0 - 4096) * 4096));
  EXPECT_EQ(cost.cache_bytes, index_t{4} * 32 * 8 * 256 * 10000);
  EXPECT_EQ(cost.cache_bytes_windows, index_t{4} * 32 * 8 * 256 * 4096);
  EXPECT_EQ(model_cost(model, 4096).cache_bytes_windows, model_cost(model, 4096).cache_bytes);
}

TEST(ModelCost, a_text_has_a_length) {
  const ModelFacts model = model_facts("gpt2");
  EXPECT_THROW(model_cost(model, 0), OptionError);
  EXPECT_THROW(model_cost(model, index_t{1} << 40), OptionError);
}

TEST(ModelFamilies, all_have_names_and_words_for_the_table) {
  EXPECT_EQ(model_families().size(), 15U);
  for (const FamilyFacts& family : model_families()) {
    EXPECT_FALSE(family.model_types.empty()) << family.name;
    for (const std::string& text :
         {family.examples, family.norm, family.positions, family.attention, family.feed_forward})
      EXPECT_FALSE(text.empty()) << family.name;
  }
}

}  // namespace
}  // namespace glasshead
