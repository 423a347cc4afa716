// BERT (Devlin et al. 2019), and the sentence encoders made of it.
#include "model/catalog/encoder.h"

namespace glasshead::model {
namespace {

constexpr NameRule kHfRules[] = {
    {Slot::tokens, "@embeddings.word_embeddings"},
    {Slot::positions, "@embeddings.position_embeddings"},
    {Slot::token_types, "@embeddings.token_type_embeddings"},
    {Slot::embedding_norm, "@embeddings.LayerNorm"},
    {Slot::q, "@encoder.layer.{}.attention.self.query"},
    {Slot::k, "@encoder.layer.{}.attention.self.key"},
    {Slot::v, "@encoder.layer.{}.attention.self.value"},
    {Slot::attention_out, "@encoder.layer.{}.attention.output.dense"},
    {Slot::attention_norm, "@encoder.layer.{}.attention.output.LayerNorm"},
    {Slot::up, "@encoder.layer.{}.intermediate.dense"},
    {Slot::down, "@encoder.layer.{}.output.dense"},
    {Slot::ffn_norm, "@encoder.layer.{}.output.LayerNorm"},
    {Slot::pooler, "@pooler.dense"},
    {Slot::transform, "cls.predictions.transform.dense"},
    {Slot::transform_norm, "cls.predictions.transform.LayerNorm"},
    {Slot::logits, "cls.predictions.decoder"},
    {Slot::logits_bias, "cls.predictions.bias", Layout::bare},
    {Slot::logits_bias_copy, "cls.predictions.decoder.bias", Layout::bare},
};
constexpr const char* kPrefixes[] = {"bert.", ""};
constexpr const char* kLeft[] = {"@embeddings.position_ids", "cls.seq_relationship.*"};

constexpr NameRule kGgufRules[] = {
    {Slot::tokens, "token_embd"},
    {Slot::positions, "position_embd"},
    {Slot::token_types, "token_types"},
    {Slot::embedding_norm, "token_embd_norm"},
    {Slot::q, "blk.{}.attn_q"},
    {Slot::k, "blk.{}.attn_k"},
    {Slot::v, "blk.{}.attn_v"},
    {Slot::attention_out, "blk.{}.attn_output"},
    {Slot::attention_norm, "blk.{}.attn_output_norm"},
    {Slot::up, "blk.{}.ffn_up"},
    {Slot::down, "blk.{}.ffn_down"},
    {Slot::ffn_norm, "blk.{}.layer_output_norm"},
};
constexpr Names kNames{kHfRules, kPrefixes, kLeft};

// GGUF's pooling_type: 0 none, 1 mean, 2 the first token.
void describe_bert(Fields& fields, Description& out) {
  constexpr EncoderKeys kKeys;
  read_encoder(fields, kKeys, out);
  if (!fields.is_gguf()) return read_heads(fields, kNames, kKeys, out);
  out.head.has_logits = false;
  constexpr Key kPooling{nullptr, "pooling_type"};
  const index_t pooling = fields.whole_or(kPooling, 0);
  if (pooling > 2) fields.problem(kPooling, "must be 0 (none), 1 (mean) or 2 (first token)");
  out.pooling = pooling == 1 ? Pooling::mean : pooling == 2 ? Pooling::first : Pooling::none;
  out.normalises_pooled = pooling != 0;
}

constexpr const char* kTypes[] = {"bert"};
constexpr const char* kClasses[] = {"Bert"};

}  // namespace

const Family kBert{.name = "bert",
                   .model_types = kTypes,
                   .classes = kClasses,
                   .gguf = kTypes,
                   .safetensors_names = kNames,
                   .gguf_names = {kGgufRules, {}, {}},
                   .describe = describe_bert,
                   .examples = "BERT, MiniLM",
                   .norm = "LayerNorm after",
                   .positions = "learned",
                   .attention = "as many key as query heads",
                   .feed_forward = "GELU"};

}  // namespace glasshead::model
