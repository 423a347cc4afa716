// The worked examples with exact answers (golden/seeds), as this folder's tests need them: the
// inputs of one attention and what each classic mistake makes of them.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "glasshead/trace.h"

namespace glasshead::doctor::test {

// The copy in the source tree, else $GLASSHEAD_GOLDEN, else ../shared/golden beside it.
inline std::filesystem::path seeds_folder() {
  std::vector<std::filesystem::path> places{std::filesystem::path(GLASSHEAD_SOURCE_DIR) /
                                            "tests/data/seeds"};
  if (const char* golden = std::getenv("GLASSHEAD_GOLDEN"))
    places.push_back(std::filesystem::path(golden) / "seeds");
  places.push_back(std::filesystem::path(GLASSHEAD_SOURCE_DIR) / "../shared/golden/seeds");
  for (const auto& place : places)
    if (std::filesystem::exists(place / "index.json")) return place;
  return {};
}

struct Seed {
  std::string name;
  nlohmann::json content;
};

inline void PrintTo(const Seed& seed, std::ostream* out) { *out << seed.name; }

// Every example that lists mistakes, in order of name.
inline std::vector<Seed> seeds_with_mistakes() {
  std::vector<Seed> seeds;
  const std::filesystem::path folder = seeds_folder();
  if (folder.empty()) return seeds;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    std::ifstream in(file);
    nlohmann::json content = nlohmann::json::parse(in);
    if (content.is_object() && content.contains("mistakes"))
      seeds.push_back({file.stem().string(), std::move(content)});
  }
  return seeds;
}

inline double to_number(const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  const std::string text = value.get<std::string>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  return text == "-inf" ? -std::numeric_limits<double>::infinity()
                        : std::numeric_limits<double>::infinity();
}

inline TraceTensor to_matrix(const nlohmann::json& rows) {
  TraceTensor matrix{{static_cast<index_t>(rows.size()), static_cast<index_t>(rows.at(0).size())},
                     {}};
  for (const auto& row : rows)
    for (const auto& value : row) matrix.values.push_back(to_number(value));
  return matrix;
}

}  // namespace glasshead::doctor::test
