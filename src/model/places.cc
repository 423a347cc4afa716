#include "model/places.h"

#include <algorithm>
#include <array>

namespace glasshead::model {
namespace {

constexpr std::array kPoints{
    "embedding",  "in",           "self.norm",       "self.q",   "self.k",
    "self.v",     "self.weights", "self.lse",        "self.out", "self.projected",
    "cross.norm", "cross.q",      "cross.k",         "cross.v",  "cross.weights",
    "cross.lse",  "cross.out",    "cross.projected", "ffn.norm", "ffn.inner",
    "ffn.out",    "out",          "final_norm",      "logits"};

constexpr Point point_at(std::size_t n) { return static_cast<Point>(n); }

bool is_cross(Point point) { return point >= Point::cross_norm && point <= Point::cross_projected; }
bool is_norm(Point point) {
  return point == Point::self_norm || point == Point::cross_norm || point == Point::ffn_norm;
}

void add_stack(const Stack& stack, const char* prefix, const char* name_of_stack,
               std::vector<std::string>& names) {
  names.push_back(name({.stack = prefix, .point = Point::embedding}));
  for (std::size_t n = 0; n < stack.layers.size(); ++n)
    for (std::size_t p = 0; p < kPoints.size(); ++p) {
      const Point point = point_at(p);
      if (point == Point::embedding || point > Point::layer_out) continue;
      if (is_cross(point) && !stack.layers[n].cross) continue;
      // Where norms come after the sum, what goes into a part is the layer's rows themselves.
      if (is_norm(point) && stack.placement == Placement::post) continue;
      names.push_back(name({name_of_stack, static_cast<index_t>(n), point}));
    }
  if (stack.has_final_norm) names.push_back(name({.stack = prefix, .point = Point::final_norm}));
}

}  // namespace

std::string name(const Place& place) {
  std::string text = place.stack;
  if (!text.empty()) text += '.';
  if (place.layer >= 0) text += std::to_string(place.layer) + ".";
  return text + kPoints[static_cast<std::size_t>(place.point)];
}

std::vector<std::string> place_names(const Description& model) {
  std::vector<std::string> names;
  const bool has_both = model.encoder && model.decoder;
  if (model.encoder) add_stack(*model.encoder, has_both ? "encoder" : "", "encoder", names);
  if (model.decoder) add_stack(*model.decoder, has_both ? "decoder" : "", "decoder", names);
  if (model.head.has_logits) names.push_back(name({.stack = "", .point = Point::logits}));
  return names;
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
