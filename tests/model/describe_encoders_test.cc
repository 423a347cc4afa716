#include <cmath>

#include <gtest/gtest.h>

#include "model/made_files.h"

namespace glasshead::model {
namespace {

TEST(DescribeBert, norms_come_after_and_nothing_is_causal) {
  const Description model = described(R"({"model_type": "bert", "hidden_size": 24,
    "num_hidden_layers": 2, "num_attention_heads": 6, "intermediate_size": 37, "vocab_size": 67,
    "max_position_embeddings": 20, "type_vocab_size": 3})");
  EXPECT_EQ(model.kind, Kind::encoder);
  const Stack& stack = *model.encoder;
  EXPECT_EQ(stack.placement, Placement::post);
  EXPECT_FALSE(stack.has_final_norm);
  EXPECT_EQ(stack.norm.kind, NormKind::layer);
  EXPECT_EQ(stack.norm.eps, 1e-12);
  EXPECT_FALSE(stack.layers[0].self.is_causal);
  EXPECT_EQ(stack.layers[0].ffn.activation, nn::Activation::gelu);
  EXPECT_EQ(model.embedding.positions, 20);
  EXPECT_EQ(model.embedding.token_types, 3);
  EXPECT_EQ(model.embedding.first_position, 0);
  ASSERT_TRUE(model.embedding.norm);
  EXPECT_FALSE(model.embedding.is_projected);
  EXPECT_FALSE(model.embedding.uncounted);
  EXPECT_EQ(model.position_limit, 20);
  EXPECT_FALSE(model.head.has_logits);  // the files have none
}

TEST(DescribeRoberta, positions_start_after_the_padding_id) {
  const std::string sizes = R"({"model_type": "roberta", "hidden_size": 24,
    "num_hidden_layers": 2, "num_attention_heads": 6, "intermediate_size": 37, "vocab_size": 67,
    "max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5)";
  const Description model = described(sizes + "}");
  EXPECT_EQ(model.embedding.first_position, 2);
  EXPECT_EQ(model.embedding.uncounted, 1);
  EXPECT_EQ(model.position_limit, 512);
  EXPECT_EQ(model.encoder->norm.eps, 1e-5);
  EXPECT_EQ(described(sizes + R"(, "pad_token_id": 4})").embedding.first_position, 5);
}

TEST(DescribeDistilBert, has_no_segments) {
  const Description model = described(R"({"model_type": "distilbert", "dim": 24, "n_layers": 2,
    "n_heads": 6, "hidden_dim": 37, "vocab_size": 67, "max_position_embeddings": 20})");
  EXPECT_EQ(model.embedding.token_types, 0);
  EXPECT_EQ(model.d_model, 24);
  EXPECT_EQ(model.encoder->layers[0].ffn.width, 37);
}

TEST(DescribeAlbert, layers_share_and_the_embedding_is_narrow) {
  const Description model = described(R"({"model_type": "albert", "hidden_size": 24,
    "embedding_size": 13, "num_hidden_layers": 12, "num_attention_heads": 6,
    "intermediate_size": 37, "vocab_size": 67, "max_position_embeddings": 20})");
  EXPECT_EQ(model.embedding.width, 13);
  EXPECT_TRUE(model.embedding.is_projected);
  EXPECT_EQ(model.encoder->distinct_layers, 1);
  EXPECT_EQ(model.encoder->layers.size(), 12U);
  EXPECT_EQ(model.encoder->layers[0].ffn.activation, nn::Activation::gelu_tanh);
}

std::string t5(const std::string& more) {
  return R"({"model_type": "t5", "d_model": 25, "d_kv": 5, "d_ff": 37, "num_layers": 2,
    "num_heads": 4, "vocab_size": 67)" +
         more + "}";
}

TEST(DescribeT5, scores_are_not_scaled_and_positions_are_relative) {
  const Description model = described(t5(""));
  EXPECT_EQ(model.kind, Kind::encoder_decoder);
  ASSERT_TRUE(model.encoder && model.decoder);
  EXPECT_EQ(model.encoder->layers.size(), 2U);
  EXPECT_EQ(model.decoder->layers.size(), 2U);
  const Layer& layer = model.decoder->layers[1];
  EXPECT_EQ(layer.self.scale, 1);
  EXPECT_EQ(layer.self.d_k, 5);
  EXPECT_TRUE(layer.self.is_causal);
  EXPECT_TRUE(layer.self.has_relative);
  ASSERT_TRUE(layer.cross);
  EXPECT_FALSE(layer.cross->has_relative);
  EXPECT_FALSE(layer.cross->is_causal);
  EXPECT_FALSE(model.encoder->layers[0].cross);
  EXPECT_TRUE(model.encoder->relative->is_two_sided);
  EXPECT_FALSE(model.decoder->relative->is_two_sided);
  EXPECT_EQ(model.decoder->relative->buckets, 32);
  EXPECT_EQ(model.decoder->relative->max_distance, 128);
  EXPECT_EQ(layer.ffn.activation, nn::Activation::relu);
  EXPECT_FALSE(layer.ffn.is_gated);
  EXPECT_EQ(model.decoder_start, 0);
}

TEST(DescribeT5, the_tied_head_is_scaled_and_a_head_of_its_own_is_not) {
  EXPECT_EQ(described(t5("")).head.scale, 0.2);
  const Description later =
      described(t5(R"(, "tie_word_embeddings": false, "feed_forward_proj": "gated-gelu")"));
  EXPECT_EQ(later.head.scale, 1);
  EXPECT_FALSE(later.head.is_tied);
  EXPECT_TRUE(later.encoder->layers[0].ffn.is_gated);
  EXPECT_EQ(later.encoder->layers[0].ffn.activation, nn::Activation::gelu_tanh);
  // Newer configurations say that the head is tied whatever the files hold, and name the scale.
  EXPECT_EQ(
      described(t5(R"(, "scale_decoder_outputs": false, "tie_word_embeddings": true)")).head.scale,
      1);
}

}  // namespace
}  // namespace glasshead::model
