#include "model/head.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "model/block.h"
#include "model/model_impl.h"

namespace glasshead::model {
namespace {

// The layers a head is in.
struct Half {
  const char* name;
  const Stack* stack;
  const StackWeights* weights;
};

Half half_of(const Model& model, const HeadPlace& place) {
  const Model::Impl& impl = model.impl();
  if (model.kind() == ModelKind::encoder || place.is_encoder)
    return {"encoder", &*impl.description.encoder, &impl.weights.encoder};
  return {"decoder", &*impl.description.decoder, &impl.weights.decoder};
}

const Attention& attention_of(const Layer& layer, const HeadPlace& place) {
  return place.is_cross ? *layer.cross : layer.self;
}

const Attention& attention_at(const Half& half, const HeadPlace& place) {
  return attention_of(half.stack->layers[static_cast<std::size_t>(place.layer)], place);
}

const AttentionWeights& weights_at(const Half& half, const HeadPlace& place) {
  const LayerWeights& layer = half.weights->layers[static_cast<std::size_t>(place.layer)];
  return place.is_cross ? layer.cross : layer.self;
}

AttentionOptions options_of(const Half& half, const HeadPlace& place) {
  const LayerCalls calls =
      layer_calls(*half.stack, *half.weights)[static_cast<std::size_t>(place.layer)];
  AttentionOptions options = place.is_cross ? calls.cross : calls.self;
  Bias bias;
  for (const Bias::Term& term : options.bias.terms()) {
    const Bias::T5& all = std::get<Bias::T5>(term);  // the only bias that models have
    Bias::T5 one = all;
    one.heads = 1;
    one.table.clear();
    for (index_t n = 0; n < all.buckets; ++n)
      one.table.push_back(all.table[static_cast<std::size_t>(n * all.heads + place.head)]);
    bias = bias + Bias::t5(std::move(one));
  }
  options.bias = bias;
  return options;
}

}  // namespace

HeadLayers layers_for(const Model& model, const HeadPlace& place) {
  HeadLayers found;
  const Half half = half_of(model, place);
  found.count = static_cast<index_t>(half.stack->layers.size());
  for (const Layer& layer : half.stack->layers)
    if (!place.is_cross || layer.cross)
      found.most_heads = std::max(found.most_heads, attention_of(layer, place).heads);
  return found;
}

index_t heads_of(const Model& model, const HeadPlace& place) {
  return attention_at(half_of(model, place), place).heads;
}

HeadFacts facts_of(const Model& model, const HeadPlace& place) {
  const Half half = half_of(model, place);
  const Attention& a = attention_at(half, place);
  const std::string layer = fmt::format("{}.{}.", half.name, place.layer);
  return {.attention = layer + (place.is_cross ? "cross" : "self"),
          .input = layer + (half.stack->placement == Placement::post ? "in" : "self.norm"),
          .heads = a.heads,
          .kv_heads = a.kv_heads,
          .kv_head = place.head / (a.heads / a.kv_heads),
          .is_turned = !place.is_cross && (a.qk_norm || a.rotary >= 0),
          .options = options_of(half, place)};
}

Tensor<float, 2> output_rows(const Model& model, const HeadPlace& place) {
  const Half half = half_of(model, place);
  const nn::Linear& out = weights_at(half, place).out;
  const index_t d_v = attention_at(half, place).d_v;
  Tensor<float, 2> rows({d_v, out.out()});
  std::vector<float> column(static_cast<std::size_t>(out.in()));
  for (index_t o = 0; o < out.out(); ++o) {
    out.row(o, column);
    for (index_t d = 0; d < d_v; ++d)
      rows(d, o) = column[static_cast<std::size_t>(place.head * d_v + d)];
  }
  return rows;
}

std::vector<float> query_of(const Model& model, const HeadPlace& place, std::vector<float> row) {
  const Half half = half_of(model, place);
  const nn::Linear& in = weights_at(half, place).in;
  std::vector<float> made(static_cast<std::size_t>(in.out()));
  in.apply({row.data(), {1, in.in()}}, {made.data(), {1, in.out()}}, default_context());
  const index_t d_k = attention_at(half, place).d_k;
  const auto begin = made.begin() + static_cast<std::ptrdiff_t>(place.head * d_k);
  return {begin, begin + static_cast<std::ptrdiff_t>(d_k)};
}

}  // namespace glasshead::model
