// Published models with their real weights: in build/models after `make test-models`, in
// tests/data/models, in $GLASSHEAD_MODELS or in ../shared/models. A test of one that is in none of
// them is skipped, and says so.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace glasshead {

// Where `file` ("minilm/model.safetensors") is, or empty. In tests/data/models rxnmapper-albert
// alone is a published model; others of its names are tiny ones.
inline std::string published(const std::string& file) {
  const std::string source = GLASSHEAD_SOURCE_DIR;
  std::vector<std::string> places{source + "/build/models/", source + "/../shared/models/"};
  if (file.starts_with("rxnmapper-albert/")) places.push_back(source + "/tests/data/models/");
  if (const char* named = std::getenv("GLASSHEAD_MODELS"))
    places.insert(places.begin(), std::string(named) + "/");
  for (const std::string& place : places)
    if (std::filesystem::exists(place + file)) return place + file;
  return "";
}

inline constexpr const char* kSmolLM2 = "smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";

#define NEED_PUBLISHED(path, file)          \
  const std::string path = published(file); \
  if (path.empty()) GTEST_SKIP() << file << " is not there: make test-models fetches it"

}  // namespace glasshead
