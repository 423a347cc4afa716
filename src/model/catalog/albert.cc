// ALBERT (Lan et al. 2020): BERT whose layers share their weights, in groups, and whose embedding
// is narrower than the layers.
#include <fmt/format.h>

#include "model/catalog/encoder.h"

namespace glasshead::model {
namespace {

constexpr NameRule kRules[] = {
    {Slot::tokens, "@embeddings.word_embeddings"},
    {Slot::positions, "@embeddings.position_embeddings"},
    {Slot::token_types, "@embeddings.token_type_embeddings"},
    {Slot::embedding_norm, "@embeddings.LayerNorm"},
    {Slot::embedding_projection, "@encoder.embedding_hidden_mapping_in"},
    {Slot::q, "@encoder.albert_layer_groups.{}.albert_layers.0.attention.query"},
    {Slot::k, "@encoder.albert_layer_groups.{}.albert_layers.0.attention.key"},
    {Slot::v, "@encoder.albert_layer_groups.{}.albert_layers.0.attention.value"},
    {Slot::attention_out, "@encoder.albert_layer_groups.{}.albert_layers.0.attention.dense"},
    {Slot::attention_norm, "@encoder.albert_layer_groups.{}.albert_layers.0.attention.LayerNorm"},
    {Slot::up, "@encoder.albert_layer_groups.{}.albert_layers.0.ffn"},
    {Slot::down, "@encoder.albert_layer_groups.{}.albert_layers.0.ffn_output"},
    {Slot::ffn_norm, "@encoder.albert_layer_groups.{}.albert_layers.0.full_layer_layer_norm"},
    {Slot::pooler, "@pooler"},
    {Slot::transform, "predictions.dense"},
    {Slot::transform_norm, "predictions.LayerNorm"},
    {Slot::logits, "predictions.decoder"},
    {Slot::logits_bias, "predictions.bias", Layout::bare},
    {Slot::logits_bias_copy, "predictions.decoder.bias", Layout::bare},
};
constexpr const char* kPrefixes[] = {"albert.", ""};
constexpr const char* kLeft[] = {"@embeddings.position_ids", "sop_classifier.classifier.*"};
constexpr Names kNames{kRules, kPrefixes, kLeft};

void describe_albert(Fields& fields, Description& out) {
  constexpr EncoderKeys kKeys{.default_activation = "gelu_new", .shares_layers = true};
  Stack& stack = read_encoder(fields, kKeys, out);
  read_heads(fields, kNames, kKeys, out);
  out.embedding.is_projected = true;  // also where the width is d_model
  out.embedding.width = fields.size_or({"embedding_size"}, 128, kMostSize);
  const auto layers = static_cast<index_t>(stack.layers.size());
  constexpr Key kGroups{"num_hidden_groups"}, kInner{"inner_group_num"};
  stack.distinct_layers = fields.size_or(kGroups, 1, kMostLayers);
  if (layers > 0 && stack.distinct_layers > layers)
    fields.problem(kGroups, fmt::format("{} groups for {} layers", stack.distinct_layers, layers));
  const index_t inner = fields.size_or(kInner, 1, kMostLayers);
  if (inner > 1)
    fields.problem(kInner, fmt::format("{}: several layers within a group are not built", inner));
}

constexpr const char* kTypes[] = {"albert"};
constexpr const char* kClasses[] = {"Albert"};

}  // namespace

const Family kAlbert{.name = "albert",
                     .model_types = kTypes,
                     .classes = kClasses,
                     .gguf = {},
                     .safetensors_names = kNames,
                     .gguf_names = {},
                     .describe = describe_albert,
                     .examples = "ALBERT, RXNMapper",
                     .norm = "LayerNorm after",
                     .positions = "learned",
                     .attention = "as many key as query heads; layers share weights",
                     .feed_forward = "GELU, or its tanh form"};

}  // namespace glasshead::model
