#include "cli/head_case.h"

#include <fmt/format.h>

#include "glasshead/error.h"

namespace glasshead::cli {
namespace {

model::HeadPlace in_model(const HeadPlace& place) {
  return {place.layer, place.head, place.is_cross, place.is_encoder};
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
TraceTensor output_rows(const Model& model, const HeadPlace& place) {
  const Tensor<float, 2> rows = model::output_rows(model, in_model(place));
  return {{rows.shape()[0], rows.shape()[1]}, {rows.data(), rows.data() + rows.size()}};
}

// The row's q as the matrix makes it: before the norm of heads, and before it is turned.
std::vector<double> before_turning(const Model& model, const HeadPlace& place,
                                   const FileTensor& input) {
  const std::vector<double> row = rows_of(input, 0, place.query, place.query + 1).values;
  const std::vector<float> q = model::query_of(model, in_model(place), {row.begin(), row.end()});
  return {q.begin(), q.end()};
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

model::HeadLayers layers_for(const Model& model, const HeadPlace& place) {
  return model::layers_for(model, in_model(place));
}

index_t heads_of(const Model& model, const HeadPlace& place) {
  return model::heads_of(model, in_model(place));
}

ModelHead head_at(const Model& model, const HeadPlace& place, const HeadTexts& texts) {
  const model::HeadFacts of_model = model::facts_of(model, in_model(place));
  ModelHead head;
  head.place = of_model.attention;
  head.at = place;
  head.heads = of_model.heads;
  head.kv_heads = of_model.kv_heads;
  head.kv_head = of_model.kv_head;
  head.shown = case_of(model, head, texts);
  AttentionOptions& options = head.shown.network.blocks[0].attention.options;
  options = of_model.options;
  options.empty_row = EmptyRow::error;
  if (!place.is_cross) options.query_start = place.query;

  std::vector<Tap> wanted{{.name = head.place + ".q"},
                          {.name = head.place + ".k"},
                          {.name = head.place + ".v"},
                          {.name = head.place + ".out"},
                          {.name = head.place + ".weights",
                           .heads = {place.head},
                           .positions = std::pair{place.query, place.query}}};
  if (of_model.is_turned) wanted.push_back({.name = of_model.input});
  const NamedTensors found = look(model, place, texts, std::move(wanted));
  const auto rows = [&](const char* name, index_t matrix, index_t begin, index_t end) {
    return rows_of(tensor_at(found, head.place + name), matrix, begin, end);
  };
  const auto keys = static_cast<index_t>(head.shown.key_labels.size());
  head.shown.inputs = {{"q", rows(".q", place.head, place.query, place.query + 1)},
                       {"k", rows(".k", head.kv_head, 0, keys)},
                       {"v", rows(".v", head.kv_head, 0, keys)},
                       {"W_O", output_rows(model, place)}};
  for (const auto& [tap, value] : head.shown.inputs) head.shown.paths[tap] = "attention." + tap;
  if (of_model.is_turned)
    head.q_before = before_turning(model, place, tensor_at(found, of_model.input));
  head.out = rows(".out", place.head, place.query, place.query + 1).values;
  head.weights = rows(".weights", 0, 0, 1).values;
  head.weights.resize(static_cast<std::size_t>(keys), 0.0);  // keys that came after its part
  return head;
}

}  // namespace glasshead::cli
