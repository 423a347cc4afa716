#include "model/catalog/encoder.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace glasshead::model {
namespace {

// Layers that share weights are not bounded by the files; published models have 12 or 24.
constexpr index_t kMostSharedLayers = 256;

bool has_slot(const Fields& fields, const Names& names, Slot slot) {
  const char* prefix = prefix_of(names, fields.files());
  for (const NameRule& rule : names.rules)
    if (rule.slot == slot)
      return fields.has_tensor(tensor_name(rule.pattern, prefix, 0) +
                               (rule.layout == Layout::bare ? "" : ".weight"));
  return false;
}

void read_embedding(Fields& fields, const EncoderKeys& keys, Description& out, const Norm& norm) {
  Embedding& embedding = out.embedding;
  embedding.width = out.d_model;
  embedding.positions = fields.is_gguf()
                            ? fields.tensor_extent("position_embd.weight", 0)
                            : fields.size({"max_position_embeddings"}, kMostVocabulary);
  if (keys.default_token_types > 0)
    embedding.token_types = fields.is_gguf() ? fields.tensor_extent("token_types.weight", 0)
                                             : fields.size_or({"type_vocab_size"},
                                                              keys.default_token_types, kMostHeads);
  // GGUF: sizes are read off the tables, which every model of these has.
  for (const auto& [name, rows] : {std::pair{"position_embd.weight", embedding.positions},
                                   std::pair{"token_types.weight", embedding.token_types}})
    if (fields.is_gguf() && rows == 0) fields.problem_in(name, "is missing");
  embedding.norm = norm;
  out.context_length = out.position_limit = embedding.positions;
}

}  // namespace

Stack& read_encoder(Fields& fields, const EncoderKeys& keys, Description& out) {
  out.kind = Kind::encoder;
  out.d_model = fields.size(keys.d_model, kMostSize);
  out.vocab = fields.is_gguf() ? fields.tensor_extent("token_embd.weight", 0)
                               : fields.size({"vocab_size"}, kMostVocabulary);
  fields.refuse_unless({nullptr, "attention.causal"}, false,
                       "encoders that see earlier tokens alone are not built");
  Stack& stack = out.encoder.emplace();
  stack.norm = {NormKind::layer, fields.positive_or(keys.eps, keys.default_eps)};
  stack.placement = Placement::post;
  stack.has_final_norm = false;
  read_embedding(fields, keys, out, stack.norm);

  const index_t layers =
      keys.shares_layers ? fields.size(keys.layers, kMostSharedLayers) : fields.layers(keys.layers);
  const index_t heads = fields.size(keys.heads, kMostHeads);
  const index_t width = fields.size(keys.d_ff, kMostSize);
  const nn::Activation activation = fields.activation(keys.activation, keys.default_activation);
  if (heads > 0 && out.d_model % heads != 0)
    fields.problem(keys.heads,
                   fmt::format("{}: the width {} must be a multiple of it", heads, out.d_model));
  if (!fields.is_fine()) return stack;
  const index_t d_k = out.d_model / heads;
  Layer layer;
  layer.self = {.heads = heads,
                .kv_heads = heads,
                .d_k = d_k,
                .d_v = d_k,
                .scale = 1 / std::sqrt(static_cast<double>(d_k)),
                .has_qkv_bias = true,
                .has_out_bias = true};
  layer.ffn = {.width = width, .activation = activation, .has_bias = true};
  stack.layers.assign(static_cast<std::size_t>(layers), layer);
  stack.distinct_layers = layers;
  return stack;
}

void read_heads(Fields& fields, const Names& names, const EncoderKeys& keys, Description& out) {
  Head& head = out.head;
  head.is_tied = true;
  head.has_logits = has_slot(fields, names, Slot::transform);
  head.has_pooler = has_slot(fields, names, Slot::pooler);
  if (!head.has_logits) return;
  head.has_bias = true;
  head.transform = {.activation = fields.activation(keys.activation, keys.default_activation),
                    .norm = out.encoder->norm};
  if (fields.has({"tie_word_embeddings"}) && !fields.flag_or({"tie_word_embeddings"}, true))
    head.is_tied = false;
}

}  // namespace glasshead::model
