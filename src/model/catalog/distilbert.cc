// DistilBERT (Sanh et al. 2019): BERT without segments and without a pooler.
#include "model/catalog/encoder.h"

namespace glasshead::model {
namespace {

constexpr NameRule kRules[] = {
    {Slot::tokens, "@embeddings.word_embeddings"},
    {Slot::positions, "@embeddings.position_embeddings"},
    {Slot::embedding_norm, "@embeddings.LayerNorm"},
    {Slot::q, "@transformer.layer.{}.attention.q_lin"},
    {Slot::k, "@transformer.layer.{}.attention.k_lin"},
    {Slot::v, "@transformer.layer.{}.attention.v_lin"},
    {Slot::attention_out, "@transformer.layer.{}.attention.out_lin"},
    {Slot::attention_norm, "@transformer.layer.{}.sa_layer_norm"},
    {Slot::up, "@transformer.layer.{}.ffn.lin1"},
    {Slot::down, "@transformer.layer.{}.ffn.lin2"},
    {Slot::ffn_norm, "@transformer.layer.{}.output_layer_norm"},
    {Slot::transform, "vocab_transform"},
    {Slot::transform_norm, "vocab_layer_norm"},
    {Slot::logits, "vocab_projector"},
    {Slot::logits_bias, "vocab_projector.bias", Layout::bare},
};
constexpr const char* kPrefixes[] = {"distilbert.", ""};
constexpr Names kNames{kRules, kPrefixes, {}};

void describe_distilbert(Fields& fields, Description& out) {
  // Sinusoidal positions are stored as well, as a table like the learned ones.
  constexpr EncoderKeys kKeys{.d_model = {"dim"},
                              .layers = {"n_layers"},
                              .heads = {"n_heads"},
                              .d_ff = {"hidden_dim"},
                              .activation = {"activation"},
                              .default_token_types = 0};
  read_encoder(fields, kKeys, out);
  read_heads(fields, kNames, kKeys, out);
}

constexpr const char* kTypes[] = {"distilbert"};
constexpr const char* kClasses[] = {"DistilBert"};

}  // namespace

const Family kDistilBert{.name = "distilbert",
                         .model_types = kTypes,
                         .classes = kClasses,
                         .gguf = {},
                         .safetensors_names = kNames,
                         .gguf_names = {},
                         .describe = describe_distilbert,
                         .examples = "DistilBERT",
                         .norm = "LayerNorm after",
                         .positions = "learned",
                         .attention = "as many key as query heads",
                         .feed_forward = "GELU"};

}  // namespace glasshead::model
