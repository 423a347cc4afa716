// RoBERTa and XLM-RoBERTa (Liu et al. 2019; Conneau et al. 2020): BERT whose positions start after
// the padding id, and whose padding, wherever it stands, has that id's position.
#include <algorithm>

#include <fmt/format.h>

#include "model/catalog/encoder.h"

namespace glasshead::model {
namespace {

constexpr NameRule kRules[] = {
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
    {Slot::transform, "lm_head.dense"},
    {Slot::transform_norm, "lm_head.layer_norm"},
    {Slot::logits, "lm_head.decoder"},
    {Slot::logits_bias, "lm_head.bias", Layout::bare},
    {Slot::logits_bias_copy, "lm_head.decoder.bias", Layout::bare},
};
constexpr const char* kPrefixes[] = {"roberta.", ""};
constexpr const char* kLeft[] = {"@embeddings.position_ids"};
constexpr Names kNames{kRules, kPrefixes, kLeft};

void describe_roberta(Fields& fields, Description& out) {
  constexpr EncoderKeys kKeys;
  read_encoder(fields, kKeys, out);
  read_heads(fields, kNames, kKeys, out);
  constexpr Key kPad{"pad_token_id"};
  const index_t pad = fields.whole_or(kPad, 1);
  if (pad >= out.embedding.positions - 1) {
    fields.problem(kPad, fmt::format("{}: positions start after it, and there are only {}", pad,
                                     out.embedding.positions));
    return;
  }
  out.embedding.uncounted = pad;
  out.embedding.first_position = pad + 1;
  out.context_length = out.position_limit = out.embedding.positions - out.embedding.first_position;
}

constexpr const char* kTypes[] = {"roberta", "xlm-roberta", "camembert"};
constexpr const char* kClasses[] = {"Roberta", "XLMRoberta", "Camembert"};

}  // namespace

const Family kRoberta{.name = "roberta",
                      .model_types = kTypes,
                      .classes = kClasses,
                      .gguf = {},  // they are of the bert architecture
                      .safetensors_names = kNames,
                      .gguf_names = {},
                      .describe = describe_roberta,
                      .examples = "RoBERTa, XLM-RoBERTa, CamemBERT",
                      .norm = "LayerNorm after",
                      .positions = "learned, counted from after the padding id",
                      .attention = "as many key as query heads",
                      .feed_forward = "GELU"};

}  // namespace glasshead::model
