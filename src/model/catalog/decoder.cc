#include "model/catalog/decoder.h"

#include <cmath>

#include <fmt/format.h>

namespace glasshead::model {
namespace {

constexpr NameRule kHfRules[] = {
    {Slot::tokens, "@embed_tokens"},
    {Slot::attention_norm, "@layers.{}.input_layernorm"},
    {Slot::q, "@layers.{}.self_attn.q_proj"},
    {Slot::k, "@layers.{}.self_attn.k_proj"},
    {Slot::v, "@layers.{}.self_attn.v_proj"},
    {Slot::attention_out, "@layers.{}.self_attn.o_proj"},
    {Slot::q_norm, "@layers.{}.self_attn.q_norm"},
    {Slot::k_norm, "@layers.{}.self_attn.k_norm"},
    {Slot::ffn_norm, "@layers.{}.post_attention_layernorm"},
    {Slot::gate, "@layers.{}.mlp.gate_proj"},
    {Slot::up, "@layers.{}.mlp.up_proj"},
    {Slot::down, "@layers.{}.mlp.down_proj"},
    {Slot::final_norm, "@norm"},
    {Slot::logits, "lm_head"},
};
constexpr const char* kHfPrefixes[] = {"model.", ""};
constexpr const char* kHfLeft[] = {"*.rotary_emb.inv_freq"};

constexpr NameRule kGgufRules[] = {
    {Slot::tokens, "token_embd"},         {Slot::attention_norm, "blk.{}.attn_norm"},
    {Slot::q, "blk.{}.attn_q"},           {Slot::k, "blk.{}.attn_k"},
    {Slot::v, "blk.{}.attn_v"},           {Slot::attention_out, "blk.{}.attn_output"},
    {Slot::q_norm, "blk.{}.attn_q_norm"}, {Slot::k_norm, "blk.{}.attn_k_norm"},
    {Slot::ffn_norm, "blk.{}.ffn_norm"},  {Slot::gate, "blk.{}.ffn_gate"},
    {Slot::up, "blk.{}.ffn_up"},          {Slot::down, "blk.{}.ffn_down"},
    {Slot::final_norm, "output_norm"},    {Slot::logits, "output"},
    {Slot::rotary_factors, "rope_freqs"},
};

struct Sizes {
  std::vector<index_t> heads, kv_heads, d_ff;  // for each layer
  index_t layers = 0, d_k = 0, d_v = 0;
};

index_t one_or(Fields& fields, Key key, index_t otherwise, index_t most) {
  return otherwise > 0 ? fields.size_or(key, otherwise, most) : fields.size(key, most);
}

std::vector<index_t> for_layers(Fields& fields, Key key, index_t otherwise, index_t layers,
                                index_t most) {
  return fields.sizes(key, layers, most,
                      otherwise > 0 ? std::optional<index_t>(otherwise) : std::nullopt);
}

index_t head_size(Fields& fields, const DecoderDefaults& defaults, index_t d_model, index_t heads) {
  constexpr Key kKey{"head_dim", "attention.key_length"};
  if (fields.has(kKey)) return fields.size(kKey, kMostHeadSize);
  if (defaults.head_size > 0) return defaults.head_size;
  if (heads == 0 || d_model == 0) return 0;
  if (d_model % heads != 0) {
    fields.problem(kKey, fmt::format("not given, and the width {} is not a multiple of the {} "
                                     "heads",
                                     d_model, heads));
    return 0;
  }
  return d_model / heads;
}

Sizes read_sizes(Fields& fields, const DecoderDefaults& defaults, index_t d_model) {
  Sizes sizes;
  sizes.layers = fields.layers({"num_hidden_layers", "block_count"});
  constexpr Key kHeads{"num_attention_heads", "attention.head_count"};
  constexpr Key kKvHeads{"num_key_value_heads", "attention.head_count_kv"};
  sizes.heads = for_layers(fields, kHeads, defaults.heads, sizes.layers, kMostHeads);
  sizes.kv_heads = fields.has(kKvHeads) || defaults.kv_heads > 0
                       ? for_layers(fields, kKvHeads, defaults.kv_heads, sizes.layers, kMostHeads)
                       : sizes.heads;
  sizes.d_ff =
      for_layers(fields, {"intermediate_size", "feed_forward_length"}, 0, sizes.layers, kMostSize);
  for (std::size_t i = 0; i < sizes.heads.size(); ++i)
    if (sizes.kv_heads[i] > 0 && sizes.heads[i] % sizes.kv_heads[i] != 0) {
      fields.problem(kKvHeads, fmt::format("{} heads for keys and values, {} for queries (layer "
                                           "{}); query heads must be a multiple",
                                           sizes.kv_heads[i], sizes.heads[i], i));
      break;
    }
  sizes.d_k = head_size(fields, defaults, d_model, sizes.heads.empty() ? 0 : sizes.heads[0]);
  sizes.d_v = fields.size_or({nullptr, "attention.value_length"}, sizes.d_k, kMostHeadSize);
  return sizes;
}

}  // namespace

const Names kDecoderNames{kHfRules, kHfPrefixes, kHfLeft};
const Names kDecoderGgufNames{kGgufRules, {}, {}};

Stack& read_decoder(Fields& fields, const DecoderDefaults& defaults, Description& out) {
  out.kind = Kind::decoder;
  out.d_model = fields.size({"hidden_size", "embedding_length"}, kMostSize);
  out.vocab = fields.is_gguf() ? fields.tensor_extent("token_embd.weight", 0)
                               : one_or(fields, {"vocab_size"}, defaults.vocab, kMostVocabulary);
  out.context_length = fields.size_or({"max_position_embeddings", "context_length"},
                                      defaults.context_length, kMostPositions);
  out.embedding.width = out.d_model;
  out.head.is_tied = fields.is_gguf() ? !fields.has_tensor("output.weight")
                                      : fields.flag_or({"tie_word_embeddings"}, defaults.is_tied);
  fields.refuse_unless({nullptr, "attention.causal"}, true,
                       "decoders that see later tokens are not built");

  Stack& stack = out.decoder.emplace();
  stack.norm = {
      NormKind::rms,
      fields.positive_or({"rms_norm_eps", "attention.layer_norm_rms_epsilon"}, defaults.eps)};
  const Sizes sizes = read_sizes(fields, defaults, out.d_model);
  const nn::Activation activation = fields.activation(defaults.activation_key, defaults.activation);
  stack.layers.resize(static_cast<std::size_t>(sizes.layers));
  stack.distinct_layers = sizes.layers;
  for (std::size_t i = 0; i < stack.layers.size(); ++i) {
    Layer& layer = stack.layers[i];
    layer.self.heads = sizes.heads[i];
    layer.self.kv_heads = sizes.kv_heads[i];
    layer.self.d_k = sizes.d_k;
    layer.self.d_v = sizes.d_v;
    layer.self.scale = sizes.d_k > 0 ? 1 / std::sqrt(static_cast<double>(sizes.d_k)) : 1;
    layer.self.is_causal = true;
    layer.ffn = {.width = sizes.d_ff[i], .activation = activation, .is_gated = true};
  }
  return stack;
}

void turn_all(Fields& fields, RotaryDefaults defaults, Description& out) {
  Stack& stack = *out.decoder;
  if (stack.layers.empty()) return;
  defaults.head_size = stack.layers[0].self.d_k;
  const index_t rotary = place(read_rotary(fields, defaults, out), stack);
  for (Layer& layer : stack.layers) layer.self.rotary = rotary;
}

std::vector<bool> sliding_layers(Fields& fields, std::vector<bool> otherwise) {
  constexpr Key kKey{"layer_types"};
  const std::vector<std::string> words = fields.texts(kKey);
  if (words.empty()) return otherwise;
  if (words.size() != otherwise.size()) {
    fields.problem(kKey, fmt::format("a list of {}; must have one word for each of the {} layers",
                                     words.size(), otherwise.size()));
    return otherwise;
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    otherwise[i] = words[i] == "sliding_attention";
    if (otherwise[i] || words[i] == "full_attention") continue;
    fields.problem(kKey, fmt::format("layer {} is of a kind that is not built; must be "
                                     "full_attention or sliding_attention",
                                     i));
    break;
  }
  return otherwise;
}

void set_windows(Stack& stack, const std::vector<bool>& slides, index_t window) {
  for (std::size_t i = 0; i < stack.layers.size(); ++i)
    if (slides[i]) stack.layers[i].self.window = window;
}

void read_biases(Fields& fields, Stack& stack) {
  const bool is_gguf = fields.is_gguf();
  const bool has_attention = fields.flag_or({"attention_bias"}, false);
  const bool has_ffn = fields.flag_or({"mlp_bias"}, false);
  for (Layer& layer : stack.layers) {
    layer.self.has_qkv_bias = is_gguf ? fields.has_tensor("blk.0.attn_q.bias") : has_attention;
    layer.self.has_out_bias = is_gguf ? fields.has_tensor("blk.0.attn_output.bias") : has_attention;
    layer.ffn.has_bias = is_gguf ? fields.has_tensor("blk.0.ffn_up.bias") : has_ffn;
  }
}

void set_scale(Stack& stack, double scale) {
  for (Layer& layer : stack.layers) layer.self.scale = scale;
}

}  // namespace glasshead::model
