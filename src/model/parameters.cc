#include "model/parameters.h"

namespace glasshead::model {
namespace {

index_t matrix(index_t out, index_t in, bool has_bias) { return out * in + (has_bias ? out : 0); }

index_t norm(index_t size, const Norm& kind) {
  return kind.kind == NormKind::layer ? 2 * size : size;
}

index_t count_attention(const Attention& attention, index_t d) {
  const index_t q = attention.heads * attention.d_k;
  const index_t kv = attention.kv_heads * (attention.d_k + attention.d_v);
  index_t count = matrix(q + kv, d, attention.has_qkv_bias) +
                  matrix(d, attention.heads * attention.d_v, attention.has_out_bias);
  if (attention.qk_norm) count += 2 * norm(attention.d_k, *attention.qk_norm);
  return count;
}

index_t count_layer(const Layer& layer, const Stack& stack, index_t d) {
  const index_t norms = stack.placement == Placement::sandwich ? 2 : 1;  // of each half
  index_t count = count_attention(layer.self, d) + norms * norm(d, stack.norm);
  if (layer.cross) count += count_attention(*layer.cross, d) + norms * norm(d, stack.norm);
  const FeedForward& ffn = layer.ffn;
  count += matrix(ffn.is_gated ? 2 * ffn.width : ffn.width, d, ffn.has_bias) +
           matrix(d, ffn.width, ffn.has_bias) + norms * norm(d, stack.norm);
  return count;
}

index_t count_stack(const Stack& stack, index_t d) {
  index_t count = stack.has_final_norm ? norm(d, stack.norm) : 0;
  // Layers that share weights are alike.
  for (index_t i = 0; i < stack.distinct_layers; ++i)
    count += count_layer(stack.layers[static_cast<std::size_t>(i)], stack, d);
  if (stack.relative) count += stack.relative->buckets * stack.layers[0].self.heads;
  return count;
}

}  // namespace

index_t count_parameters(const Description& model) {
  const Embedding& embedding = model.embedding;
  const index_t width = embedding.width, d = model.d_model;
  index_t count = (model.vocab + embedding.positions + embedding.token_types) * width;
  if (embedding.norm) count += norm(width, *embedding.norm);
  if (embedding.is_projected) count += matrix(d, width, true);
  if (model.encoder) count += count_stack(*model.encoder, d);
  if (model.decoder) count += count_stack(*model.decoder, d);
  const Head& head = model.head;
  if (head.has_pooler) count += matrix(d, d, true);
  if (!head.has_logits) return count;
  if (head.transform) count += matrix(width, d, true) + norm(width, head.transform->norm);
  if (!head.is_tied) count += model.vocab * (head.transform ? width : d);
  return count + (head.has_bias ? model.vocab : 0);
}

}  // namespace glasshead::model
