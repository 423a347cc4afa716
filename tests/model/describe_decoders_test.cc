// Configurations as published models have them, and what they must be read as.
#include <cmath>

#include <gtest/gtest.h>

#include "model/made_files.h"

namespace glasshead::model {
namespace {

std::string llama_with(const std::string& more) {
  return R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 3,
    "num_attention_heads": 8, "intermediate_size": 172, "vocab_size": 512)" +
         more + "}";
}

std::vector<index_t> windows(const Description& model) {
  std::vector<index_t> all;
  for (const Layer& layer : model.decoder->layers) all.push_back(layer.self.window);
  return all;
}

TEST(DescribeLlama, defaults_are_the_familys) {
  const Description model = described(llama_with(""));
  EXPECT_EQ(model.kind, Kind::decoder);
  EXPECT_EQ(model.context_length, 2048);
  EXPECT_EQ(model.position_limit, 0);
  EXPECT_FALSE(model.head.is_tied);
  const Stack& stack = *model.decoder;
  ASSERT_EQ(stack.layers.size(), 3U);
  EXPECT_EQ(stack.norm.kind, NormKind::rms);
  EXPECT_EQ(stack.norm.eps, 1e-6);
  EXPECT_EQ(stack.norm.gain_offset, 0);
  EXPECT_EQ(stack.placement, Placement::pre);
  EXPECT_TRUE(stack.has_final_norm);
  const Layer& layer = stack.layers[2];
  EXPECT_EQ(layer.self.heads, 8);
  EXPECT_EQ(layer.self.kv_heads, 8);
  EXPECT_EQ(layer.self.d_k, 8);
  EXPECT_EQ(layer.self.scale, 1 / std::sqrt(8.0));
  EXPECT_TRUE(layer.self.is_causal);
  EXPECT_FALSE(layer.self.has_qkv_bias || layer.self.has_out_bias || layer.ffn.has_bias);
  EXPECT_EQ(layer.ffn.width, 172);
  EXPECT_TRUE(layer.ffn.is_gated);
  EXPECT_EQ(layer.ffn.activation, nn::Activation::silu);
  ASSERT_EQ(stack.rotaries.size(), 1U);
  EXPECT_EQ(layer.self.rotary, 0);
  EXPECT_EQ(stack.rotaries[0].base, 10000);
  EXPECT_EQ(stack.rotaries[0].frequencies.size(), 4U);
  EXPECT_EQ(stack.rotaries[0].pairing, nn::RopePairing::halves);
}

TEST(DescribeLlama, the_head_size_is_a_field_of_its_own) {
  const Description model =
      described(llama_with(R"(, "head_dim": 10, "num_key_value_heads": 2, "rms_norm_eps": 1e-5,
        "tie_word_embeddings": true, "attention_bias": true, "mlp_bias": true,
        "eos_token_id": [2, 5], "bos_token_id": 1, "pad_token_id": null)"));
  const Attention& self = model.decoder->layers[0].self;
  EXPECT_EQ(self.d_k, 10);
  EXPECT_EQ(self.d_v, 10);
  EXPECT_EQ(self.kv_heads, 2);
  EXPECT_EQ(self.scale, 1 / std::sqrt(10.0));
  EXPECT_TRUE(self.has_qkv_bias && self.has_out_bias);
  EXPECT_TRUE(model.decoder->layers[0].ffn.has_bias);
  EXPECT_TRUE(model.head.is_tied);
  EXPECT_EQ(model.decoder->norm.eps, 1e-5);
  EXPECT_EQ(model.eos, (std::vector<index_t>{2, 5}));
  EXPECT_EQ(model.bos, 1);
  EXPECT_FALSE(model.pad);
}

TEST(DescribeLlama, a_configuration_without_a_type_is_known_by_its_class) {
  EXPECT_EQ(described(R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 64,
    "num_hidden_layers": 1, "num_attention_heads": 8, "intermediate_size": 172,
    "vocab_size": 512})")
                .family,
            "llama");
  EXPECT_EQ(described(R"({"architectures": ["GPT2LMHeadModel"], "n_embd": 8, "n_layer": 1,
    "n_head": 2, "n_positions": 16, "vocab_size": 32})")
                .family,
            "gpt2");
}

TEST(DescribeMistral, a_window_left_out_is_the_first_versions_and_null_is_none) {
  const std::string sizes = R"({"model_type": "mistral", "hidden_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 16, "intermediate_size": 172,
    "vocab_size": 512)";
  EXPECT_EQ(windows(described(sizes + "}")), (std::vector<index_t>{4096, 4096}));
  EXPECT_EQ(windows(described(sizes + R"(, "sliding_window": null})")),
            (std::vector<index_t>{0, 0}));
  EXPECT_EQ(windows(described(sizes + R"(, "sliding_window": 3})")), (std::vector<index_t>{3, 3}));
  EXPECT_EQ(described(sizes + "}").decoder->layers[0].self.kv_heads, 8);
}

TEST(DescribeSmolLm3, one_means_that_a_layer_turns) {
  const std::string sizes = R"({"model_type": "smollm3", "hidden_size": 64,
    "num_hidden_layers": 5, "num_attention_heads": 8, "num_key_value_heads": 4,
    "intermediate_size": 172, "vocab_size": 512)";
  const auto turns = [](const Description& model) {
    std::vector<bool> all;
    for (const Layer& layer : model.decoder->layers) all.push_back(layer.self.rotary >= 0);
    return all;
  };
  const Description model = described(sizes + "}");
  EXPECT_EQ(turns(model), (std::vector<bool>{true, true, true, false, true}));
  EXPECT_EQ(model.decoder->rotaries[0].base, 2e6);
  EXPECT_TRUE(model.head.is_tied);
  EXPECT_EQ(turns(described(sizes + R"(, "no_rope_layers": [1, 0, 0, 1, 1]})")),
            (std::vector<bool>{true, false, false, true, true}));
}

TEST(DescribeQwen2, biases_are_on_q_k_v_and_the_window_begins_at_a_layer) {
  const std::string sizes = R"({"model_type": "qwen2", "hidden_size": 64,
    "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2,
    "intermediate_size": 172, "vocab_size": 512, "sliding_window": 7, "max_window_layers": 2)";
  const Description model = described(sizes + R"(, "use_sliding_window": true})");
  EXPECT_TRUE(model.decoder->layers[0].self.has_qkv_bias);
  EXPECT_FALSE(model.decoder->layers[0].self.has_out_bias);
  EXPECT_EQ(windows(model), (std::vector<index_t>{0, 0, 7, 7}));
  EXPECT_EQ(windows(described(sizes + R"(, "use_sliding_window": false})")),
            (std::vector<index_t>{0, 0, 0, 0}));
  EXPECT_EQ(windows(described(sizes + R"(, "use_sliding_window": true, "layer_types":
      ["sliding_attention", "full_attention", "full_attention", "sliding_attention"]})")),
            (std::vector<index_t>{7, 0, 0, 7}));
}

TEST(DescribeQwen3, heads_are_normalised_and_128_wide) {
  const Description model = described(R"({"model_type": "qwen3", "hidden_size": 64,
    "num_hidden_layers": 1, "num_attention_heads": 8, "num_key_value_heads": 2,
    "intermediate_size": 172, "vocab_size": 512, "rms_norm_eps": 1e-5})");
  const Attention& self = model.decoder->layers[0].self;
  EXPECT_EQ(self.d_k, 128);
  ASSERT_TRUE(self.qk_norm);
  EXPECT_EQ(self.qk_norm->kind, NormKind::rms);
  EXPECT_EQ(self.qk_norm->eps, 1e-5);
  EXPECT_EQ(self.qk_norm->gain_offset, 0);
}

std::string gemma(const std::string& type, const std::string& more) {
  return R"({"model_type": ")" + type + R"(", "hidden_size": 640, "num_hidden_layers": 7,
    "num_attention_heads": 4, "num_key_value_heads": 1, "intermediate_size": 2048,
    "vocab_size": 262144)" +
         more + "}";
}

TEST(DescribeGemma, norms_are_offset_the_embedding_is_scaled_and_gelu_means_tanh) {
  const Description model = described(gemma("gemma", R"(, "hidden_act": "gelu")"));
  EXPECT_EQ(model.decoder->norm.gain_offset, 1);
  EXPECT_EQ(model.embedding.scale, std::sqrt(640.0));
  EXPECT_EQ(model.decoder->layers[0].ffn.activation, nn::Activation::gelu_tanh);
  EXPECT_EQ(model.decoder->layers[0].self.d_k, 256);
  EXPECT_EQ(model.decoder->layers[0].self.scale, 1.0 / 16);
  EXPECT_EQ(model.decoder->placement, Placement::pre);
  EXPECT_TRUE(model.head.is_tied);
}

TEST(DescribeGemma2, has_softcaps_four_norms_and_a_window_on_even_layers) {
  const Description model =
      described(gemma("gemma2", R"(, "query_pre_attn_scalar": 144, "sliding_window": 9)"));
  EXPECT_EQ(model.decoder->placement, Placement::sandwich);
  EXPECT_EQ(windows(model), (std::vector<index_t>{9, 0, 9, 0, 9, 0, 9}));
  EXPECT_EQ(model.decoder->layers[0].self.softcap, 50);
  EXPECT_EQ(model.head.softcap, 30);
  EXPECT_EQ(model.decoder->layers[3].self.scale, 1.0 / 12);
  const Description uncapped = described(
      gemma("gemma2", R"(, "attn_logit_softcapping": null, "final_logit_softcapping": null)"));
  EXPECT_EQ(uncapped.decoder->layers[0].self.softcap, 0);
  EXPECT_EQ(uncapped.head.softcap, 0);
}

TEST(DescribeGemma3, every_sixth_layer_is_full_and_turns_by_its_own_base) {
  const Description model = described(
      gemma("gemma3_text",
            R"(, "sliding_window": 512, "rope_scaling": {"rope_type": "linear", "factor": 8.0})"));
  EXPECT_EQ(windows(model), (std::vector<index_t>{512, 512, 512, 512, 512, 0, 512}));
  const Stack& stack = *model.decoder;
  ASSERT_EQ(stack.rotaries.size(), 2U);
  const Rotary& local = stack.rotaries[static_cast<std::size_t>(stack.layers[0].self.rotary)];
  const Rotary& full = stack.rotaries[static_cast<std::size_t>(stack.layers[5].self.rotary)];
  EXPECT_EQ(local.base, 1e4);
  EXPECT_EQ(local.frequencies[0], 1);  // not scaled
  EXPECT_EQ(full.base, 1e6);
  EXPECT_EQ(full.frequencies[0], 1.0 / 8);
  ASSERT_TRUE(stack.layers[0].self.qk_norm);
  EXPECT_EQ(stack.layers[0].self.qk_norm->gain_offset, 1);
  EXPECT_EQ(stack.layers[0].self.softcap, 0);
}

TEST(DescribeGemma3, newer_configurations_say_the_same_by_layer_type) {
  const Description old_form = described(
      gemma("gemma3_text",
            R"(, "rope_theta": 5000, "rope_local_base_freq": 70, "sliding_window_pattern": 3,
         "rope_scaling": {"rope_type": "linear", "factor": 4.0})"));
  const Description new_form = described(
      gemma("gemma3_text",
            R"(, "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 4.0,
             "rope_theta": 5000}, "sliding_attention": {"rope_type": "default",
             "rope_theta": 70}}, "layer_types": ["sliding_attention", "sliding_attention",
             "full_attention", "sliding_attention", "sliding_attention", "full_attention",
             "sliding_attention"])"));
  EXPECT_EQ(windows(old_form), windows(new_form));
  ASSERT_EQ(old_form.decoder->rotaries.size(), 2U);
  ASSERT_EQ(new_form.decoder->rotaries.size(), 2U);
  for (std::size_t n = 0; n < 2; ++n)
    EXPECT_EQ(old_form.decoder->rotaries[n].frequencies, new_form.decoder->rotaries[n].frequencies);
  EXPECT_EQ(old_form.decoder->rotaries[0].base, 70);
}

TEST(DescribeGemma3, a_model_with_pictures_has_its_text_half_inside) {
  const Description model = described(R"({"model_type": "gemma3", "vision_config": {"x": 1},
    "text_config": {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240,
    "num_hidden_layers": 34, "sliding_window": 1024,
    "rope_scaling": {"rope_type": "linear", "factor": 8.0}}})");
  EXPECT_EQ(model.vocab, 262208);  // left out there: the family's
  EXPECT_EQ(model.decoder->layers[0].self.heads, 8);
  EXPECT_EQ(model.decoder->layers[0].self.kv_heads, 4);
  EXPECT_EQ(windows(model)[33], 1024);
  EXPECT_EQ(windows(model)[29], 0);
}

TEST(DescribeGpt2, layers_have_biases_and_learned_positions) {
  const std::string sizes = R"({"model_type": "gpt2", "n_embd": 24, "n_layer": 3, "n_head": 6,
    "n_positions": 40, "vocab_size": 67)";
  const Description model = described(sizes + "}");
  EXPECT_EQ(model.embedding.positions, 40);
  EXPECT_EQ(model.position_limit, 40);
  EXPECT_TRUE(model.head.is_tied);
  const Layer& layer = model.decoder->layers[1];
  EXPECT_EQ(layer.ffn.width, 96);
  EXPECT_EQ(layer.ffn.activation, nn::Activation::gelu_tanh);
  EXPECT_FALSE(layer.ffn.is_gated);
  EXPECT_TRUE(layer.self.has_qkv_bias && layer.self.has_out_bias && layer.ffn.has_bias);
  EXPECT_EQ(layer.self.rotary, -1);
  EXPECT_EQ(layer.self.scale, 0.5);
  EXPECT_EQ(model.decoder->norm.kind, NormKind::layer);
  EXPECT_EQ(model.decoder->norm.eps, 1e-5);
  EXPECT_EQ(described(sizes + R"(, "scale_attn_by_inverse_layer_idx": true})")
                .decoder->layers[1]
                .self.scale,
            0.25);
  EXPECT_EQ(described(sizes + R"(, "scale_attn_weights": false})").decoder->layers[1].self.scale,
            1);
  EXPECT_EQ(described(sizes + R"(, "n_inner": 37})").decoder->layers[1].ffn.width, 37);
}

TEST(DescribePhi3, a_part_of_the_head_turns) {
  const Description model = described(R"({"model_type": "phi3", "hidden_size": 48,
    "num_hidden_layers": 1, "num_attention_heads": 6, "intermediate_size": 35, "vocab_size": 67,
    "sliding_window": 5, "partial_rotary_factor": 0.75})");
  EXPECT_EQ(model.decoder->rotaries[0].frequencies.size(), 3U);
  EXPECT_EQ(windows(model), (std::vector<index_t>{5}));
  EXPECT_EQ(model.decoder->norm.eps, 1e-5);
}

}  // namespace
}  // namespace glasshead::model
