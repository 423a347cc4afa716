#include "cli/head_case.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "glasshead/error.h"
#include "model/block.h"
#include "model/model_impl.h"

namespace glasshead::cli {
namespace {

// The layers a head is in.
struct Half {
  const char* name;
  const model::Stack* stack;
  const model::StackWeights* weights;
};

Half half_of(const Model& model, const HeadPlace& place) {
  const Model::Impl& impl = model.impl();
  if (model.kind() == ModelKind::encoder || place.is_encoder)
    return {"encoder", &*impl.description.encoder, &impl.weights.encoder};
  return {"decoder", &*impl.description.decoder, &impl.weights.decoder};
}

const model::Layer& layer_of(const Half& half, const HeadPlace& place) {
  return half.stack->layers[static_cast<std::size_t>(place.layer)];
}

const model::Attention& attention_of(const model::Layer& layer, const HeadPlace& place) {
  return place.is_cross ? *layer.cross : layer.self;
}

const model::AttentionWeights& weights_at(const Half& half, const HeadPlace& place) {
  const model::LayerWeights& layer = half.weights->layers[static_cast<std::size_t>(place.layer)];
  return place.is_cross ? layer.cross : layer.self;
}

NamedTensors look(const Model& model, const HeadPlace& place, const HeadTexts& texts,
                  std::vector<Tap> wanted) {
  Taps taps(std::move(wanted));
  Session session(model);
  if (model.kind() == ModelKind::decoder) {
    session.forward({{.sequence = 0, .ids = texts.read.ids}}, LogitRows::none, &taps);
  } else if (model.kind() == ModelKind::encoder) {
    session.encode({{.ids = texts.read.ids}}, &taps);
  } else {
    const index_t sequence = session.read(texts.read.ids, &taps);
    if (!place.is_encoder)
      session.forward({{.sequence = sequence, .ids = texts.written.ids}}, LogitRows::none, &taps);
  }
  return taps.results();
}

const FileTensor& tensor_at(const NamedTensors& all, const std::string& name) {
  for (const auto& [found, tensor] : all)
    if (found == name) return tensor;
  throw OptionError("trace", {{name, "was not computed"}});
}

// Rows [begin, end) of matrix `matrix` of a tensor [matrices, rows, size], or of a matrix.
TraceTensor rows_of(const FileTensor& tensor, index_t matrix, index_t begin, index_t end) {
  const index_t size = tensor.shape.back(), rows = tensor.shape[tensor.shape.size() - 2];
  TraceTensor found{{end - begin, size}, {}};
  for (index_t n = begin * size; n < end * size; ++n)
    found.values.push_back(tensor.load(matrix * rows * size + n));
  return found;
}

// W_O's rows that this head's out is multiplied by: [d_v, d_model].
TraceTensor output_rows(const nn::Linear& out, index_t head, index_t d_v) {
  TraceTensor found{{d_v, out.out()}, {}};
  found.values.resize(static_cast<std::size_t>(d_v * out.out()));
  std::vector<float> column(static_cast<std::size_t>(out.in()));
  for (index_t o = 0; o < out.out(); ++o) {
    out.row(o, column);
    for (index_t d = 0; d < d_v; ++d)
      found.values[static_cast<std::size_t>(d * out.out() + o)] =
          column[static_cast<std::size_t>(head * d_v + d)];
  }
  return found;
}

// What attend is asked for in the layer, for this head alone.
AttentionOptions options_of(const Half& half, const HeadPlace& place) {
  const model::LayerCalls calls =
      model::layer_calls(*half.stack, *half.weights)[static_cast<std::size_t>(place.layer)];
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
  options.empty_row = EmptyRow::error;
  if (!place.is_cross) options.query_start = place.query;
  return options;
}

// The row's q as the matrix makes it: before the norm of heads, and before it is turned.
std::vector<double> before_turning(const Half& half, const HeadPlace& place,
                                   const FileTensor& input) {
  const model::Attention& a = layer_of(half, place).self;
  const nn::Linear& in = weights_at(half, place).in;
  std::vector<float> row, made(static_cast<std::size_t>(in.out()));
  for (const double x : rows_of(input, 0, place.query, place.query + 1).values)
    row.push_back(static_cast<float>(x));
  in.apply({row.data(), {1, in.in()}}, {made.data(), {1, in.out()}}, default_context());
  const auto begin = made.begin() + static_cast<std::ptrdiff_t>(place.head * a.d_k);
  return {begin, begin + static_cast<std::ptrdiff_t>(a.d_k)};
}

std::string stem_of(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.substr(path.rfind('/') + 1);
}

wire::Case case_of(const Model& model, const ModelHead& head, const HeadTexts& texts) {
  const bool is_written =
      model.kind() == ModelKind::encoder_decoder && !head.at.is_encoder;  // by the decoder
  const std::vector<std::string>& asking = is_written ? texts.written.labels : texts.read.labels;
  wire::Case c;
  c.name = stem_of(model.path());
  c.from = fmt::format("{}, head {}, query {}", head.place, head.at.head, head.at.query);
  c.title = fmt::format("head {} of {} of {} at query {}", head.at.head, head.place, c.name,
                        head.at.query);
  c.query_labels = {asking[static_cast<std::size_t>(head.at.query)]};
  c.key_labels = head.at.is_cross || !is_written ? texts.read.labels : texts.written.labels;
  c.network.blocks.resize(1);
  nn::Attention& attention = c.network.blocks[0].attention;
  attention.given_q = "q";
  attention.given_k = "k";
  attention.given_v = "v";
  attention.output.weight = "W_O";
  return c;
}

}  // namespace

HeadLayers layers_for(const Model& model, const HeadPlace& place) {
  HeadLayers found;
  const Half half = half_of(model, place);
  found.count = static_cast<index_t>(half.stack->layers.size());
  for (const model::Layer& layer : half.stack->layers)
    if (!place.is_cross || layer.cross)
      found.most_heads = std::max(found.most_heads, attention_of(layer, place).heads);
  return found;
}

index_t heads_of(const Model& model, const HeadPlace& place) {
  return attention_of(layer_of(half_of(model, place), place), place).heads;
}

ModelHead head_at(const Model& model, const HeadPlace& place, const HeadTexts& texts) {
  const Half half = half_of(model, place);
  const model::Attention& a = attention_of(layer_of(half, place), place);
  const std::string layer = fmt::format("{}.{}.", half.name, place.layer);
  ModelHead head;
  head.place = layer + (place.is_cross ? "cross" : "self");
  head.at = place;
  head.heads = a.heads;
  head.kv_heads = a.kv_heads;
  head.kv_head = place.head / (a.heads / a.kv_heads);
  head.shown = case_of(model, head, texts);
  head.shown.network.blocks[0].attention.options = options_of(half, place);

  const std::string input =
      layer + (half.stack->placement == model::Placement::post ? "in" : "self.norm");
  const bool is_turned = !place.is_cross && (a.qk_norm || a.rotary >= 0);
  std::vector<Tap> wanted{{.name = head.place + ".q"},
                          {.name = head.place + ".k"},
                          {.name = head.place + ".v"},
                          {.name = head.place + ".out"},
                          {.name = head.place + ".weights",
                           .heads = {place.head},
                           .positions = std::pair{place.query, place.query}}};
  if (is_turned) wanted.push_back({.name = input});
  const NamedTensors found = look(model, place, texts, std::move(wanted));
  const auto rows = [&](const char* name, index_t matrix, index_t begin, index_t end) {
    return rows_of(tensor_at(found, head.place + name), matrix, begin, end);
  };
  const auto keys = static_cast<index_t>(head.shown.key_labels.size());
  head.shown.inputs = {{"q", rows(".q", place.head, place.query, place.query + 1)},
                       {"k", rows(".k", head.kv_head, 0, keys)},
                       {"v", rows(".v", head.kv_head, 0, keys)},
                       {"W_O", output_rows(weights_at(half, place).out, place.head, a.d_v)}};
  for (const auto& [tap, value] : head.shown.inputs) head.shown.paths[tap] = "attention." + tap;
  if (is_turned) head.q_before = before_turning(half, place, tensor_at(found, input));
  head.out = rows(".out", place.head, place.query, place.query + 1).values;
  head.weights = rows(".weights", 0, 0, 1).values;
  head.weights.resize(static_cast<std::size_t>(keys), 0.0);  // keys that came after its part
  return head;
}

}  // namespace glasshead::cli
