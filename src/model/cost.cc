#include <algorithm>

#include "base/fail.h"
#include "glasshead/model_facts.h"

namespace glasshead {
namespace {

double real(index_t n) { return static_cast<double>(n); }

// Pairs of n queries and n keys that a layer's mask shows.
double visible_pairs(const AttentionFacts& self, index_t n) {
  if (!self.is_causal) return real(n) * real(n);
  const index_t window = self.window == 0 ? n : std::min(self.window, n);
  // The first `window` queries see 1, 2, ... keys, the rest `window` each.
  return real(window) * (real(window) + 1) / 2 + real(n - window) * real(window);
}

// q·k and weights·v of one pair, all heads.
double pair_flops(const AttentionFacts& attention) {
  return real(attention.heads) * 2 * (real(attention.d_k) + real(attention.d_v));
}

double projection_flops(const AttentionFacts& attention, index_t d, bool of_queries,
                        bool of_memory) {
  const double q = real(attention.heads) * (real(attention.d_k) + real(attention.d_v));
  const double kv = real(attention.kv_heads) * (real(attention.d_k) + real(attention.d_v));
  return 2 * real(d) * ((of_queries ? q : 0) + (of_memory ? kv : 0));
}

double ffn_flops(const LayerFacts& layer, index_t d) {
  return 2 * real(d) * real(layer.d_ff) * (layer.is_gated ? 3 : 2);
}

index_t cached_numbers(const AttentionFacts& attention, index_t heads) {
  return heads * (attention.d_k + attention.d_v);
}

void add_layer(const LayerFacts& layer, index_t d, index_t n, bool is_decoder, ModelCost& cost) {
  const AttentionFacts& self = layer.self;
  cost.attention_flops += visible_pairs(self, n) * pair_flops(self);
  const double per_token = projection_flops(self, d, true, true) + ffn_flops(layer, d);
  cost.matrix_flops += per_token * real(n);
  cost.weights_bytes += 4 * real(self.heads) * real(n) * real(n);
  if (!is_decoder) return;
  const index_t shown = self.window == 0 ? n : std::min(self.window, n);
  cost.cache_bytes += 4 * n * cached_numbers(self, self.kv_heads);
  cost.cache_bytes_windows += 4 * shown * cached_numbers(self, self.kv_heads);
  cost.cache_bytes_per_head += 4 * n * cached_numbers(self, self.heads);
  const index_t seen = self.window == 0 ? n + 1 : std::min(self.window, n + 1);
  cost.attention_flops_next += real(seen) * pair_flops(self);
  cost.matrix_flops_next += per_token;
}

void add_cross(const AttentionFacts& cross, index_t d, index_t n, ModelCost& cost) {
  cost.attention_flops += real(n) * real(n) * pair_flops(cross);
  cost.matrix_flops += projection_flops(cross, d, true, true) * real(n);
  cost.weights_bytes += 4 * real(cross.heads) * real(n) * real(n);
  cost.cache_bytes += 4 * n * cached_numbers(cross, cross.kv_heads);
  cost.cache_bytes_windows += 4 * n * cached_numbers(cross, cross.kv_heads);
  cost.cache_bytes_per_head += 4 * n * cached_numbers(cross, cross.heads);
  cost.attention_flops_next += real(n) * pair_flops(cross);
  cost.matrix_flops_next += projection_flops(cross, d, true, false);
}

}  // namespace

ModelCost model_cost(const ModelFacts& model, index_t tokens) {
  constexpr index_t kMost = index_t{1} << 24;  // no product below overflows
  if (tokens < 1 || tokens > kMost)
    fail(ErrorKind::option, "model_cost", "tokens",
         std::to_string(tokens) + ": must be from 1 to " + std::to_string(kMost));
  ModelCost cost{.tokens = tokens};
  bool has_decoder = false;
  for (const StackFacts& stack : model.stacks) {
    const bool is_decoder = stack.name == "decoder";
    has_decoder = has_decoder || is_decoder;
    for (const LayerFacts& layer : stack.layers) {
      add_layer(layer, model.d_model, tokens, is_decoder, cost);
      if (layer.cross) add_cross(*layer.cross, model.d_model, tokens, cost);
    }
  }
  const double logits = model.has_logits ? 2 * real(model.d_model) * real(model.vocab) : 0;
  cost.matrix_flops += logits;
  if (has_decoder) cost.matrix_flops_next += logits;
  return cost;
}

}  // namespace glasshead
