// The places of a run where its numbers can be looked at, and their names.
//
//   Place{.stack = "decoder", .layer = 5, .point = Point::self_q}      "decoder.5.self.q"
//   Place{.stack = "", .point = Point::logits}                         "logits"
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/description.h"

namespace glasshead::model {

// In the order of computation within a layer; what each is stands in docs/run.md.
enum class Point : std::uint8_t {
  embedding,
  layer_in,
  self_norm,
  self_q,
  self_k,
  self_v,
  self_scores,
  self_weights,
  self_lse,
  self_out,
  self_projected,
  cross_norm,
  cross_q,
  cross_k,
  cross_v,
  cross_scores,
  cross_weights,
  cross_lse,
  cross_out,
  cross_projected,
  ffn_norm,
  ffn_inner,
  ffn_out,
  layer_out,
  final_norm,
  logits
};

struct Place {
  // "encoder", "decoder"; what stands outside layers has it only in an encoder-decoder ("encoder.
  // embedding"), and else "".
  const char* stack = "";
  index_t layer = -1;  // -1: outside layers
  Point point = Point::embedding;
};

std::string name(const Place& place);

struct NamedPlace {
  std::string name;
  Place place;
  index_t heads = 0;  // query heads of the attention it belongs to
  index_t width = 0;  // numbers of a row; 0 where that is not the model's to say (scores,
                      // weights)
};
// Every place of a model, in the order of computation.
std::vector<NamedPlace> places_of(const Description& model);

// `pattern` is a name in which `*` stands for any layer.
bool matches(const std::string& pattern, const std::string& name);

}  // namespace glasshead::model
