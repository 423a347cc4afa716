// glasshead inspect MODEL --places: what --tap may name.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/inspect_model.h"
#include "glasshead/model_facts.h"

namespace glasshead::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string shape_words(const PlaceFacts& place) {
  std::string words;
  for (const std::string& extent : place.shape) words += (words.empty() ? "" : ", ") + extent;
  return "[" + words + "]";
}

}  // namespace

std::string places_report(const std::string& path_or_name, bool is_json) {
  const std::vector<PlaceFacts> places = model_places(path_or_name);
  if (is_json) {
    Json json = Json::array();
    for (const PlaceFacts& place : places)
      json.push_back({{"name", place.name}, {"shape", place.shape}, {"layers", place.layers}});
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  std::size_t names = 0, shapes = 0;
  for (const PlaceFacts& place : places) {
    names = std::max(names, place.name.size());
    shapes = std::max(shapes, shape_words(place).size());
  }
  std::string text;
  for (const PlaceFacts& place : places) {
    std::string line = fmt::format("{:<{}}  {:<{}}", place.name, names, shape_words(place), shapes);
    if (!place.layers.empty()) line += "  layers " + ranges(place.layers);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace glasshead::cli
