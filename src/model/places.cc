#include "model/places.h"

#include <algorithm>
#include <array>

namespace glasshead::model {
namespace {

constexpr std::array kPoints{"embedding",     "in",        "self.norm",      "self.q",
                             "self.k",        "self.v",    "self.scores",    "self.weights",
                             "self.lse",      "self.out",  "self.projected", "cross.norm",
                             "cross.q",       "cross.k",   "cross.v",        "cross.scores",
                             "cross.weights", "cross.lse", "cross.out",      "cross.projected",
                             "ffn.norm",      "ffn.inner", "ffn.out",        "out",
                             "final_norm",    "logits"};

bool is_cross(Point point) { return point >= Point::cross_norm && point <= Point::cross_projected; }
bool is_norm(Point point) {
  return point == Point::self_norm || point == Point::cross_norm || point == Point::ffn_norm;
}

index_t width_of(Point point, const Attention& a, const Layer& layer, index_t d_model) {
  switch (point) {
    case Point::self_q:
    case Point::cross_q:
      return a.heads * a.d_k;
    case Point::self_k:
    case Point::cross_k:
      return a.kv_heads * a.d_k;
    case Point::self_v:
    case Point::cross_v:
      return a.kv_heads * a.d_v;
    case Point::self_out:
    case Point::cross_out:
      return a.heads * a.d_v;
    case Point::self_lse:
    case Point::cross_lse:
      return a.heads;
    case Point::self_scores:
    case Point::cross_scores:
    case Point::self_weights:
    case Point::cross_weights:
      return 0;
    case Point::ffn_inner:
      return layer.ffn.width;
    default:
      return d_model;
  }
}

void add_stack(const Stack& stack, const char* prefix, const char* name_of_stack, index_t d_model,
               std::vector<NamedPlace>& places) {
  const auto add = [&](const Place& place, index_t heads, index_t width) {
    places.push_back({name(place), place, heads, width});
  };
  add({prefix, -1, Point::embedding}, 0, d_model);
  for (std::size_t n = 0; n < stack.layers.size(); ++n)
    for (std::size_t p = 0; p < kPoints.size(); ++p) {
      const auto point = static_cast<Point>(p);
      const Layer& layer = stack.layers[n];
      if (point == Point::embedding || point > Point::layer_out) continue;
      if (is_cross(point) && !layer.cross) continue;
      // Where norms come after the sum, what goes into a part is the layer's rows themselves.
      if (is_norm(point) && stack.placement == Placement::post) continue;
      const Attention& a = is_cross(point) ? *layer.cross : layer.self;
      add({name_of_stack, static_cast<index_t>(n), point}, a.heads,
          width_of(point, a, layer, d_model));
    }
  if (stack.has_final_norm) add({prefix, -1, Point::final_norm}, 0, d_model);
}

}  // namespace

std::string name(const Place& place) {
  std::string text = place.stack;
  if (!text.empty()) text += '.';
  if (place.layer >= 0) text += std::to_string(place.layer) + ".";
  return text + kPoints[static_cast<std::size_t>(place.point)];
}

std::vector<NamedPlace> places_of(const Description& model) {
  std::vector<NamedPlace> places;
  const bool has_both = model.encoder && model.decoder;
  if (model.encoder)
    add_stack(*model.encoder, has_both ? "encoder" : "", "encoder", model.d_model, places);
  if (model.decoder)
    add_stack(*model.decoder, has_both ? "decoder" : "", "decoder", model.d_model, places);
  const Place logits{"", -1, Point::logits};
  if (model.head.has_logits) places.push_back({name(logits), logits, 0, model.vocab});
  return places;
}

bool matches(const std::string& pattern, const std::string& name) {
  std::size_t p = 0, n = 0;
  while (p < pattern.size()) {
    if (pattern[p] == '*') {
      const std::size_t begin = n;
      while (n < name.size() && name[n] >= '0' && name[n] <= '9') ++n;
      if (n == begin) return false;
      ++p;
    } else if (n < name.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else {
      return false;
    }
  }
  return n == name.size();
}

}  // namespace glasshead::model
