// GPT-2 (Radford et al. 2019). Its matrices are stored [in, out], q, k and v in one.
#include <cmath>

#include <fmt/format.h>

#include "model/catalog/family.h"
#include "model/catalog/fields.h"

namespace glasshead::model {
namespace {

void describe_layers(Fields& fields, Description& out, Stack& stack, index_t layers) {
  constexpr Key kHeads{"n_head", "attention.head_count"};
  const index_t heads = fields.size(kHeads, kMostHeads);
  if (heads > 0 && out.d_model % heads != 0)
    fields.problem(kHeads,
                   fmt::format("{}: the width {} must be a multiple of it", heads, out.d_model));
  const index_t width =
      fields.size_or({"n_inner", "feed_forward_length"}, 4 * out.d_model, kMostSize * 4);
  const nn::Activation activation = fields.activation({"activation_function"}, "gelu_new");
  const bool is_scaled = fields.flag_or({"scale_attn_weights"}, true);
  const bool is_scaled_by_layer = fields.flag_or({"scale_attn_by_inverse_layer_idx"}, false);
  if (!fields.is_fine()) return;
  stack.layers.resize(static_cast<std::size_t>(layers));
  stack.distinct_layers = layers;
  for (std::size_t i = 0; i < stack.layers.size(); ++i) {
    Attention& self = stack.layers[i].self;
    self.heads = self.kv_heads = heads;
    self.d_k = self.d_v = out.d_model / heads;
    self.scale = is_scaled ? 1 / std::sqrt(static_cast<double>(self.d_k)) : 1;
    if (is_scaled_by_layer) self.scale /= static_cast<double>(i + 1);
    self.is_causal = self.has_qkv_bias = self.has_out_bias = true;
    stack.layers[i].ffn = {.width = width, .activation = activation, .has_bias = true};
  }
}

void describe_gpt2(Fields& fields, Description& out) {
  out.kind = Kind::decoder;
  out.d_model = fields.size({"n_embd", "embedding_length"}, kMostSize);
  out.vocab = fields.is_gguf() ? fields.tensor_extent("token_embd.weight", 0)
                               : fields.size({"vocab_size"}, kMostVocabulary);
  out.context_length = fields.size({"n_positions", "context_length"}, kMostVocabulary);
  out.position_limit = out.context_length;
  out.embedding.width = out.d_model;
  out.embedding.positions = out.context_length;
  out.head.is_tied = fields.is_gguf() ? !fields.has_tensor("output.weight")
                                      : fields.flag_or({"tie_word_embeddings"}, true);
  const index_t layers = fields.layers({"n_layer", "block_count"});
  Stack& stack = out.decoder.emplace();
  stack.norm = {NormKind::layer,
                fields.positive_or({"layer_norm_epsilon", "attention.layer_norm_epsilon"}, 1e-5)};
  describe_layers(fields, out, stack, layers);
}

constexpr NameRule kHfRules[] = {
    {Slot::tokens, "@wte"},
    {Slot::positions, "@wpe"},
    {Slot::attention_norm, "@h.{}.ln_1"},
    {Slot::qkv, "@h.{}.attn.c_attn", Layout::in_out},
    {Slot::attention_out, "@h.{}.attn.c_proj", Layout::in_out},
    {Slot::ffn_norm, "@h.{}.ln_2"},
    {Slot::up, "@h.{}.mlp.c_fc", Layout::in_out},
    {Slot::down, "@h.{}.mlp.c_proj", Layout::in_out},
    {Slot::final_norm, "@ln_f"},
    {Slot::logits, "lm_head"},
};
constexpr const char* kHfPrefixes[] = {"transformer.", ""};
constexpr const char* kHfLeft[] = {"@h.{}.attn.bias", "@h.{}.attn.masked_bias"};

constexpr NameRule kGgufRules[] = {
    {Slot::tokens, "token_embd"},
    {Slot::positions, "position_embd"},
    {Slot::attention_norm, "blk.{}.attn_norm"},
    {Slot::qkv, "blk.{}.attn_qkv"},
    {Slot::attention_out, "blk.{}.attn_output"},
    {Slot::ffn_norm, "blk.{}.ffn_norm"},
    {Slot::up, "blk.{}.ffn_up"},
    {Slot::down, "blk.{}.ffn_down"},
    {Slot::final_norm, "output_norm"},
    {Slot::logits, "output"},
};

constexpr const char* kTypes[] = {"gpt2"};
constexpr const char* kClasses[] = {"GPT2"};

}  // namespace

const Family kGpt2{.name = "gpt2",
                   .model_types = kTypes,
                   .classes = kClasses,
                   .gguf = kTypes,
                   .safetensors_names = {kHfRules, kHfPrefixes, kHfLeft},
                   .gguf_names = {kGgufRules, {}, {}},
                   .describe = describe_gpt2,
                   .examples = "GPT-2, DistilGPT-2",
                   .norm = "LayerNorm before",
                   .positions = "learned",
                   .attention = "as many key as query heads",
                   .feed_forward = "GELU (tanh)"};

}  // namespace glasshead::model
