#include "port/runner.h"

#include <algorithm>

#include "base/fail.h"

namespace glasshead::port {
namespace {

using model::Description;
using model::NamedPlace;
using model::Point;
using model::Stack;

bool is_weights_or_lse(Point point) {
  return point == Point::self_weights || point == Point::cross_weights ||
         point == Point::self_lse || point == Point::cross_lse;
}

// Programs keep scores before or after the mask, and hide with numbers of their own (-inf, -1e9):
// they are no place here.
bool is_scores(Point point) { return point == Point::self_scores || point == Point::cross_scores; }

void keep_layer(Stack& stack, model::StackWeights& to, const model::StackWeights& from,
                index_t layer) {
  const auto at = static_cast<std::size_t>(layer);
  const model::Layer one = stack.layers[at];
  stack.layers = {one};
  stack.distinct_layers = 1;
  to.layers = {from.layers[at]};
  to.relative = from.relative;
}

void keep_no_layer(Stack& stack) {
  stack.layers.clear();
  stack.distinct_layers = 0;
}

}  // namespace

std::string name(const Piece& piece) {
  const std::string of = piece.is_encoder ? "encoder" : "";
  if (piece.part == Part::layer)
    return (of.empty() ? "" : of + " ") + "layer " + std::to_string(piece.layer);
  const char* what = piece.part == Part::embedding ? "embedding" : "end";
  return "the " + (of.empty() ? "" : of + "'s ") + what;
}

const FileTensor& Numbers::at(const std::string& name) const {
  for (const auto& [key, tensor] : all)
    if (key == name) return tensor;
  fail(ErrorKind::option, "diagnose_port", name, "no such numbers in this part");
}

bool Numbers::has(const std::string& name) const {
  return std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.first == name; });
}

void Numbers::set(const std::string& name, FileTensor tensor) {
  for (auto& [key, there] : all)
    if (key == name) {
      there = std::move(tensor);
      return;
    }
  all.emplace_back(name, std::move(tensor));
}

Runner::Runner(const Model& model, const PortText& text, const Context& context)
    : model_(model),
      text_(text),
      context_(context),
      places_(model::places_of(model.impl().description)) {
  std::erase_if(places_, [](const NamedPlace& one) { return is_scores(one.place.point); });
  const Description& d = model.impl().description;
  const auto add = [&](const Stack& stack, bool is_encoder) {
    pieces_.push_back({Part::embedding, is_encoder, -1});
    for (std::size_t n = 0; n < stack.layers.size(); ++n)
      pieces_.push_back({Part::layer, is_encoder, static_cast<index_t>(n)});
    pieces_.push_back({Part::end, is_encoder, -1});
  };
  if (d.encoder) add(*d.encoder, true);
  if (d.decoder) add(*d.decoder, false);
}

std::size_t Runner::piece_of(const NamedPlace& at) const {
  const Description& d = model_.impl().description;
  const bool is_logits = at.place.point == Point::logits;
  const bool is_encoder = is_logits ? !d.decoder : at.name.starts_with("encoder.") || !d.decoder;
  const Part part = at.place.layer >= 0                  ? Part::layer
                    : at.place.point == Point::embedding ? Part::embedding
                                                         : Part::end;
  for (std::size_t n = 0; n < pieces_.size(); ++n)
    if (pieces_[n].part == part && pieces_[n].is_encoder == is_encoder &&
        pieces_[n].layer == at.place.layer)
      return n;
  return 0;
}

index_t Runner::tokens(bool is_encoder) const {
  const bool has_both = model_.kind() == ModelKind::encoder_decoder;
  return static_cast<index_t>(has_both && !is_encoder ? text_.decoder_ids.size()
                                                      : text_.ids.size());
}

std::string Runner::inner_name(const Piece& piece, const std::string& name) const {
  if (piece.part != Part::layer) return name;
  const std::string stack = piece.is_encoder ? "encoder." : "decoder.";
  const std::string mine = stack + std::to_string(piece.layer) + ".";
  return name.starts_with(mine) ? stack + "0." + name.substr(mine.size()) : name;
}

// The piece as a model of its own. What is not run is left out; rows that enter come in place of
// the embedding's, whose tables are therefore left out too.
void Runner::cut(const Piece& piece, Model::Impl& out) const {
  const Model::Impl& whole = model_.impl();
  out.path = whole.path;
  out.description = whole.description;
  Description& d = out.description;
  out.weights.embedding.tokens = whole.weights.embedding.tokens;
  out.weights.embedding.projection = whole.weights.embedding.projection;
  if (piece.part == Part::embedding) {
    out.weights.embedding = whole.weights.embedding;
  } else {
    d.embedding.positions = d.embedding.token_types = 0;
    d.embedding.norm.reset();
  }
  const bool has_both = d.encoder && d.decoder;
  for (const bool is_encoder : {true, false}) {
    std::optional<Stack>& stack = is_encoder ? d.encoder : d.decoder;
    if (!stack) continue;
    const model::StackWeights& from = is_encoder ? whole.weights.encoder : whole.weights.decoder;
    model::StackWeights& to = is_encoder ? out.weights.encoder : out.weights.decoder;
    const bool is_mine = is_encoder == piece.is_encoder;
    if (is_mine && piece.part == Part::layer)
      keep_layer(*stack, to, from, piece.layer);
    else
      keep_no_layer(*stack);
    to.final_norm = from.final_norm;
    if (!is_mine || piece.part != Part::end) stack->has_final_norm = false;
  }
  const bool makes_logits = piece.part == Part::end && !(has_both && piece.is_encoder);
  if (makes_logits)
    out.weights.head = whole.weights.head;
  else
    d.head.has_logits = false;
}

void Runner::look(const Piece& piece, const std::function<void(const Subject&)>& use) const {
  Model::Impl small;
  cut(piece, small);
  const Description& d = model_.impl().description;
  use({piece, small.description, small.weights, piece.is_encoder ? *d.encoder : *d.decoder});
}

// All numbers of the part, under its own names. Weights and lse are made where they are wanted.
Numbers Runner::numbers_of(const Call& call, const Model& model,
                           const std::vector<Change>& changes) const {
  const Description& d = model.impl().description;
  std::vector<Tap> taps;
  for (const NamedPlace& place : model::places_of(d)) {
    if (is_scores(place.place.point)) continue;
    const bool is_wanted =
        call.wanted != nullptr &&
        std::any_of(call.wanted->begin(), call.wanted->end(), [&](const std::string& name) {
          return inner_name(call.piece, name) == place.name;
        });
    if (!is_weights_or_lse(place.place.point) || is_wanted) taps.push_back({.name = place.name});
  }
  Taps seen(taps);
  Session session(model, {}, context_);
  const bool has_both = d.encoder && d.decoder;
  const std::string mine = !has_both ? "" : call.piece.is_encoder ? "encoder." : "decoder.";
  std::vector<Change> all;
  if (call.rows != nullptr) all.push_back(Patch{mine + "embedding", *call.rows});
  if (call.memory != nullptr && has_both && !call.piece.is_encoder)
    all.push_back(Patch{"encoder.embedding", *call.memory});
  all.insert(all.end(), changes.begin(), changes.end());
  // An edit may have taken a place away (norms elsewhere).
  const std::vector<NamedPlace> places = model::places_of(d);
  std::erase_if(all, [&](const Change& change) {
    const Patch* const patch = std::get_if<Patch>(&change);
    return patch != nullptr && std::none_of(places.begin(), places.end(), [&](const auto& place) {
             return place.name == patch->name;
           });
  });
  session.change(all);
  const LogitRows rows = d.head.has_logits ? LogitRows::all : LogitRows::none;
  if (!d.decoder) {
    // Other parts have no table of token types.
    const bool reads_ids = call.piece.part == Part::embedding;
    session.encode(
        {{.ids = text_.ids, .segments = reads_ids ? text_.segments : std::vector<index_t>{}}},
        &seen);
  } else if (!d.encoder) {
    session.forward({{.ids = text_.ids}}, rows, &seen);
  } else {
    const index_t sequence = session.read(text_.ids, &seen);
    if (!call.piece.is_encoder) session.forward({{sequence, text_.decoder_ids}}, rows, &seen);
  }
  return {seen.results()};
}

PieceRun Runner::run(const Call& call) const {
  auto small = std::make_shared<Model::Impl>();
  cut(call.piece, *small);
  const Description& whole = model_.impl().description;
  const Subject subject{call.piece, small->description, small->weights,
                        call.piece.is_encoder ? *whole.encoder : *whole.decoder, call.known};
  for (const Edit* edit : call.edits)
    if (edit->change) edit->change(subject);
  const Model model(small);
  std::vector<Change> changes = call.changes;
  PieceRun made{numbers_of(call, model, changes), {}, {}, {}};
  for (const Edit* edit : call.edits) {
    if (!edit->place) continue;
    Placed placed = edit->place(subject, made.numbers);
    if (placed.changes.empty() && placed.seen.empty()) continue;
    changes.insert(changes.end(), placed.changes.begin(), placed.changes.end());
    made.numbers = numbers_of(call, model, changes);
    for (auto& [name, tensor] : placed.seen) made.numbers.set(name, std::move(tensor));
    for (auto& one : placed.before) made.before.push_back(std::move(one));
    made.not_compared.insert(made.not_compared.end(), placed.not_compared.begin(),
                             placed.not_compared.end());
  }
  const bool has_both = whole.encoder && whole.decoder;
  const std::string prefix = !has_both ? "" : call.piece.is_encoder ? "encoder." : "decoder.";
  const std::string stack = call.piece.is_encoder ? "encoder.0.out" : "decoder.0.out";
  // A norm that an edit leaves out gives what goes into it.
  if (call.piece.part == Part::end && subject.whole.has_final_norm &&
      !made.numbers.has(prefix + "final_norm"))
    made.numbers.set(prefix + "final_norm", *call.rows);
  if (call.piece.part == Part::embedding)
    made.rows = made.numbers.at(prefix + "embedding");
  else if (call.piece.part == Part::layer)
    made.rows = made.numbers.at(stack);
  else if (made.numbers.has(prefix + "final_norm"))
    made.rows = made.numbers.at(prefix + "final_norm");
  else
    made.rows = *call.rows;
  return made;
}

}  // namespace glasshead::port
