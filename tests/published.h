// Published models that tests run, where they lie: in $GLASSHEAD_MODELS, in build/models
// (tools/fetch_models.py), in tests/data/models, whose README says where each comes from, or beside
// the source tree in ../shared/models. Where one is not, its tests are skipped and say how to get
// it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace glasshead {

// "stories260K" or "minilm/model.safetensors" as a path; "" if it is nowhere.
inline std::string real_model(const std::string& name) {
  const std::string source = GLASSHEAD_SOURCE_DIR;
  std::vector<std::string> places;
  if (const char* named = std::getenv("GLASSHEAD_MODELS")) places.emplace_back(named);
  places.push_back(source + "/build/models");
  // Others of its names there are tiny ones.
  if (name.starts_with("rxnmapper-albert")) places.push_back(source + "/tests/data/models");
  places.push_back(source + "/../shared/models");
  for (const std::string& place : places)
    if (std::filesystem::exists(place + "/" + name)) return place + "/" + name;
  return "";
}

inline std::string how_to_get(const std::string& name) {
  if (!name.starts_with("stories260K")) return name + " is not there: make test-models fetches it";
  return name +
         " is not there: its weights have no stated licence, so they are neither kept nor fetched; "
         "put config.json, model.safetensors and tok512.bin (tests/data/models/README.md says "
         "whose) into build/models/stories260K";
}

#define GLASSHEAD_NEED_MODEL(name) \
  if (real_model(name).empty()) GTEST_SKIP() << how_to_get(name)

// The model's file `file` as the variable `path`, or the test is skipped.
#define NEED_PUBLISHED(path, file)           \
  const std::string path = real_model(file); \
  if (path.empty()) GTEST_SKIP() << how_to_get(file)

inline constexpr const char* kSmolLM2 = "smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";

}  // namespace glasshead
