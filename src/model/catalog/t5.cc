// T5, its version 1.1 with Flan-T5, and mT5 (Raffel et al. 2020; Shazeer 2020, "GLU variants";
// Xue et al. 2021). Scores are not scaled, positions are a bias that layer 0 holds for all.
#include <cmath>

#include <fmt/format.h>

#include "model/catalog/family.h"
#include "model/catalog/fields.h"

namespace glasshead::model {
namespace {

// What its GGUF files don't say.
constexpr index_t kMaxDistance = 128;

struct Sizes {
  index_t heads = 0, d_k = 0, d_ff = 0, encoder_layers = 0, decoder_layers = 0;
};

Sizes read_sizes(Fields& fields) {
  Sizes sizes;
  sizes.heads = fields.size({"num_heads", "attention.head_count"}, kMostHeads);
  sizes.d_k = fields.size({"d_kv", "attention.key_length"}, kMostHeadSize);
  sizes.d_ff = fields.size({"d_ff", "feed_forward_length"}, kMostSize);
  sizes.encoder_layers = fields.layers({"num_layers", "block_count"});
  constexpr Key kDecoder{"num_decoder_layers", "decoder_block_count"};
  sizes.decoder_layers = fields.has(kDecoder) ? fields.layers(kDecoder) : sizes.encoder_layers;
  return sizes;
}

// "relu", "gated-gelu", "gated-silu": of gelu the tanh form is meant where it is gated.
FeedForward read_ffn(Fields& fields, index_t width) {
  constexpr Key kKey{"feed_forward_proj"};
  FeedForward ffn{.width = width};
  if (fields.is_gguf()) {
    ffn.is_gated = fields.has_tensor("enc.blk.0.ffn_gate.weight");
    ffn.activation = ffn.is_gated ? nn::Activation::gelu_tanh : nn::Activation::relu;
    return ffn;
  }
  const bool is_mt5 = fields.text_or({"model_type"}, "t5") == "mt5";
  std::string name = fields.text_or(kKey, is_mt5 ? "gated-gelu" : "relu");
  ffn.is_gated = name.starts_with("gated-");
  if (ffn.is_gated) name = name.substr(6);
  if (name == "relu")
    ffn.activation = nn::Activation::relu;
  else if (name == "gelu_new" || (name == "gelu" && ffn.is_gated))
    ffn.activation = nn::Activation::gelu_tanh;
  else if (name == "gelu")
    ffn.activation = nn::Activation::gelu;
  else if (name == "silu" || name == "swish")
    ffn.activation = nn::Activation::silu;
  else
    fields.problem(kKey,
                   "must be relu, gelu, gelu_new or silu, or gated- and one of them: others "
                   "are not built");
  return ffn;
}

Stack stack_of(const Sizes& sizes, const FeedForward& ffn, const Norm& norm,
               const RelativeBuckets& relative, bool is_decoder) {
  Stack stack;
  stack.norm = norm;
  stack.relative = relative;
  stack.relative->is_two_sided = !is_decoder;
  Layer layer;
  layer.self = {.heads = sizes.heads,
                .kv_heads = sizes.heads,
                .d_k = sizes.d_k,
                .d_v = sizes.d_k,
                .scale = 1,
                .is_causal = is_decoder,
                .has_relative = true};
  layer.ffn = ffn;
  if (is_decoder) {
    layer.cross = layer.self;
    layer.cross->is_causal = layer.cross->has_relative = false;
  }
  stack.distinct_layers = is_decoder ? sizes.decoder_layers : sizes.encoder_layers;
  stack.layers.assign(static_cast<std::size_t>(stack.distinct_layers), layer);
  return stack;
}

// Version 1.0 multiplies what goes into its tied head by d_model^-1/2; later files have a head of
// their own and don't. Newer configurations say which; older ones mean it by the tie.
void read_head(Fields& fields, Description& out) {
  Head& head = out.head;
  const bool is_mt5 = fields.text_or({"model_type"}, "t5") == "mt5";
  const bool is_tied = fields.is_gguf() ? !fields.has_tensor("output.weight")
                                        : fields.flag_or({"tie_word_embeddings"}, true);
  const bool is_scaled = fields.flag_or({"scale_decoder_outputs"}, is_tied && !is_mt5);
  // A configuration may say that a head is tied which has been trained apart, or the other way
  // round: where the files have one, comparing it decides (Family::may_untie).
  head.is_tied =
      is_tied || fields.has_tensor("lm_head.weight") || fields.has({"scale_decoder_outputs"});
  if (is_scaled && out.d_model > 0) head.scale = 1 / std::sqrt(static_cast<double>(out.d_model));
}

void describe_t5(Fields& fields, Description& out) {
  out.kind = Kind::encoder_decoder;
  out.d_model = fields.size({"d_model", "embedding_length"}, kMostSize);
  out.vocab = fields.is_gguf() ? fields.tensor_extent("token_embd.weight", 0)
                               : fields.size({"vocab_size"}, kMostVocabulary);
  out.embedding.width = out.d_model;
  const Sizes sizes = read_sizes(fields);
  const Norm norm{
      NormKind::rms,
      fields.positive_or({"layer_norm_epsilon", "attention.layer_norm_rms_epsilon"},
                         fields.positive_or({nullptr, "attention.layer_norm_epsilon"}, 1e-6))};
  RelativeBuckets relative;
  relative.buckets = fields.size_or(
      {"relative_attention_num_buckets", "attention.relative_buckets_count"}, 32, kMostHeads);
  relative.max_distance =
      fields.size_or({"relative_attention_max_distance"}, kMaxDistance, kMostPositions);
  if (relative.buckets % 4 != 0 || relative.max_distance <= relative.buckets / 2)
    fields.problem({"relative_attention_num_buckets", "attention.relative_buckets_count"},
                   fmt::format("{} buckets up to distance {}: must be a multiple of 4, and the "
                               "distance above half of it",
                               relative.buckets, relative.max_distance));
  const FeedForward ffn = read_ffn(fields, sizes.d_ff);
  read_head(fields, out);
  if (!fields.is_fine()) return;
  out.encoder = stack_of(sizes, ffn, norm, relative, false);
  out.decoder = stack_of(sizes, ffn, norm, relative, true);
  if (!out.decoder_start) out.decoder_start = out.pad.value_or(0);
}

constexpr Side kEncoder = Side::encoder, kDecoder = Side::decoder;
constexpr Layout kPlain = Layout::out_in;
constexpr NameRule kHfRules[] = {
    {Slot::tokens, "@shared"},
    {Slot::tokens_copy, "@encoder.embed_tokens"},
    {Slot::tokens_copy, "@decoder.embed_tokens"},
    {Slot::attention_norm, "@encoder.block.{}.layer.0.layer_norm", kPlain, kEncoder},
    {Slot::q, "@encoder.block.{}.layer.0.SelfAttention.q", kPlain, kEncoder},
    {Slot::k, "@encoder.block.{}.layer.0.SelfAttention.k", kPlain, kEncoder},
    {Slot::v, "@encoder.block.{}.layer.0.SelfAttention.v", kPlain, kEncoder},
    {Slot::attention_out, "@encoder.block.{}.layer.0.SelfAttention.o", kPlain, kEncoder},
    {Slot::relative, "@encoder.block.0.layer.0.SelfAttention.relative_attention_bias", kPlain,
     kEncoder},
    {Slot::ffn_norm, "@encoder.block.{}.layer.1.layer_norm", kPlain, kEncoder},
    {Slot::gate, "@encoder.block.{}.layer.1.DenseReluDense.wi_0", kPlain, kEncoder},
    {Slot::up, "@encoder.block.{}.layer.1.DenseReluDense.wi_1", kPlain, kEncoder},
    {Slot::up_alone, "@encoder.block.{}.layer.1.DenseReluDense.wi", kPlain, kEncoder},
    {Slot::down, "@encoder.block.{}.layer.1.DenseReluDense.wo", kPlain, kEncoder},
    {Slot::final_norm, "@encoder.final_layer_norm", kPlain, kEncoder},
    {Slot::attention_norm, "@decoder.block.{}.layer.0.layer_norm", kPlain, kDecoder},
    {Slot::q, "@decoder.block.{}.layer.0.SelfAttention.q", kPlain, kDecoder},
    {Slot::k, "@decoder.block.{}.layer.0.SelfAttention.k", kPlain, kDecoder},
    {Slot::v, "@decoder.block.{}.layer.0.SelfAttention.v", kPlain, kDecoder},
    {Slot::attention_out, "@decoder.block.{}.layer.0.SelfAttention.o", kPlain, kDecoder},
    {Slot::relative, "@decoder.block.0.layer.0.SelfAttention.relative_attention_bias", kPlain,
     kDecoder},
    {Slot::cross_norm, "@decoder.block.{}.layer.1.layer_norm", kPlain, kDecoder},
    {Slot::cross_q, "@decoder.block.{}.layer.1.EncDecAttention.q", kPlain, kDecoder},
    {Slot::cross_k, "@decoder.block.{}.layer.1.EncDecAttention.k", kPlain, kDecoder},
    {Slot::cross_v, "@decoder.block.{}.layer.1.EncDecAttention.v", kPlain, kDecoder},
    {Slot::cross_out, "@decoder.block.{}.layer.1.EncDecAttention.o", kPlain, kDecoder},
    {Slot::ffn_norm, "@decoder.block.{}.layer.2.layer_norm", kPlain, kDecoder},
    {Slot::gate, "@decoder.block.{}.layer.2.DenseReluDense.wi_0", kPlain, kDecoder},
    {Slot::up, "@decoder.block.{}.layer.2.DenseReluDense.wi_1", kPlain, kDecoder},
    {Slot::up_alone, "@decoder.block.{}.layer.2.DenseReluDense.wi", kPlain, kDecoder},
    {Slot::down, "@decoder.block.{}.layer.2.DenseReluDense.wo", kPlain, kDecoder},
    {Slot::final_norm, "@decoder.final_layer_norm", kPlain, kDecoder},
    {Slot::logits, "lm_head"},
};
constexpr const char* kPrefixes[] = {"", "transformer."};
constexpr const char* kLeft[] = {
    "@decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"};

constexpr NameRule kGgufRules[] = {
    {Slot::tokens, "token_embd"},
    {Slot::attention_norm, "enc.blk.{}.attn_norm", kPlain, kEncoder},
    {Slot::q, "enc.blk.{}.attn_q", kPlain, kEncoder},
    {Slot::k, "enc.blk.{}.attn_k", kPlain, kEncoder},
    {Slot::v, "enc.blk.{}.attn_v", kPlain, kEncoder},
    {Slot::attention_out, "enc.blk.{}.attn_o", kPlain, kEncoder},
    {Slot::relative, "enc.blk.0.attn_rel_b", kPlain, kEncoder},
    {Slot::ffn_norm, "enc.blk.{}.ffn_norm", kPlain, kEncoder},
    {Slot::gate, "enc.blk.{}.ffn_gate", kPlain, kEncoder},
    {Slot::up, "enc.blk.{}.ffn_up", kPlain, kEncoder},
    {Slot::down, "enc.blk.{}.ffn_down", kPlain, kEncoder},
    {Slot::final_norm, "enc.output_norm", kPlain, kEncoder},
    {Slot::attention_norm, "dec.blk.{}.attn_norm", kPlain, kDecoder},
    {Slot::q, "dec.blk.{}.attn_q", kPlain, kDecoder},
    {Slot::k, "dec.blk.{}.attn_k", kPlain, kDecoder},
    {Slot::v, "dec.blk.{}.attn_v", kPlain, kDecoder},
    {Slot::attention_out, "dec.blk.{}.attn_o", kPlain, kDecoder},
    {Slot::relative, "dec.blk.0.attn_rel_b", kPlain, kDecoder},
    {Slot::cross_norm, "dec.blk.{}.cross_attn_norm", kPlain, kDecoder},
    {Slot::cross_q, "dec.blk.{}.cross_attn_q", kPlain, kDecoder},
    {Slot::cross_k, "dec.blk.{}.cross_attn_k", kPlain, kDecoder},
    {Slot::cross_v, "dec.blk.{}.cross_attn_v", kPlain, kDecoder},
    {Slot::cross_out, "dec.blk.{}.cross_attn_o", kPlain, kDecoder},
    {Slot::ffn_norm, "dec.blk.{}.ffn_norm", kPlain, kDecoder},
    {Slot::gate, "dec.blk.{}.ffn_gate", kPlain, kDecoder},
    {Slot::up, "dec.blk.{}.ffn_up", kPlain, kDecoder},
    {Slot::down, "dec.blk.{}.ffn_down", kPlain, kDecoder},
    {Slot::final_norm, "dec.output_norm", kPlain, kDecoder},
    {Slot::logits, "output"},
};

constexpr const char* kTypes[] = {"t5", "mt5"};
constexpr const char* kClasses[] = {"T5", "MT5"};
constexpr const char* kGguf[] = {"t5"};

}  // namespace

const Family kT5{.name = "t5",
                 .model_types = kTypes,
                 .classes = kClasses,
                 .gguf = kGguf,
                 .safetensors_names = {kHfRules, kPrefixes, kLeft},
                 .gguf_names = {kGgufRules, {}, {}},
                 .describe = describe_t5,
                 .may_untie = true,
                 .examples = "T5, T5 1.1, Flan-T5, mT5",
                 .norm = "RMSNorm before",
                 .positions = "relative bias, shared by all layers",
                 .attention = "scores not scaled; cross-attention",
                 .feed_forward = "ReLU, or gated GELU (tanh) from 1.1 on"};

}  // namespace glasshead::model
