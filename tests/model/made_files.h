// Checkpoints made in memory, and what is said about them.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "formats/checkpoint.h"
#include "model/weights.h"

namespace glasshead::model {

// A safetensors file and its config.json. Tensors hold 1, 2, 3, ... 251, 1, ...
class MadeFiles {
 public:
  explicit MadeFiles(std::string config) : config_(std::move(config)) {}

  MadeFiles& add(const std::string& name, const std::vector<index_t>& shape, float first = 1) {
    index_t count = 1;
    for (const index_t extent : shape) count *= extent;
    std::vector<float> values;
    for (index_t n = 0; n < count; ++n) values.push_back(first + static_cast<float>(n % 251));
    return add(name, shape, values);
  }
  MadeFiles& add(const std::string& name, const std::vector<index_t>& shape,
                 const std::vector<float>& values) {
    std::string text;
    for (const index_t extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
    const std::size_t begin = data_.size();
    data_.resize(begin + 4 * values.size());
    std::memcpy(data_.data() + begin, values.data(), 4 * values.size());
    header_ += (header_.empty() ? "" : ", ") +
               ("\"" + name + "\": {\"dtype\": \"F32\", \"shape\": [") + text +
               "], \"data_offsets\": [" + std::to_string(begin) + ", " +
               std::to_string(data_.size()) + "]}";
    return *this;
  }

  // The result reads from this object's memory.
  formats::Checkpoint open() {
    const std::string header = "{" + header_ + "}";
    file_.resize(8 + header.size() + data_.size());
    const std::uint64_t length = header.size();
    std::memcpy(file_.data(), &length, 8);
    std::memcpy(file_.data() + 8, header.data(), header.size());
    if (!data_.empty()) std::memcpy(file_.data() + 8 + header.size(), data_.data(), data_.size());
    formats::Checkpoint files;
    std::vector<Problem> problems;
    EXPECT_TRUE(formats::Checkpoint::parse_safetensors(file_, config_, files, problems));
    for (const Problem& problem : problems) ADD_FAILURE() << problem.where << ": " << problem.what;
    return files;
  }

 private:
  std::string config_, header_;
  std::vector<std::byte> data_, file_;
};

inline std::string text_of(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) text += problem.where + ": " + problem.what + "\n";
  return text;
}

// The description of a configuration alone, which must be a good one.
inline Description described(const std::string& config, index_t context = 0) {
  MadeFiles made(config);
  const formats::Checkpoint files = made.open();
  Description model;
  std::vector<Problem> problems;
  EXPECT_TRUE(describe(files, {.context = context, .has_tensors = false}, model, problems))
      << text_of(problems);
  return model;
}

// What is wrong with a configuration alone.
inline std::string refusal(const std::string& config) {
  MadeFiles made(config);
  const formats::Checkpoint files = made.open();
  Description model;
  std::vector<Problem> problems;
  EXPECT_FALSE(describe(files, {.has_tensors = false}, model, problems)) << config;
  EXPECT_FALSE(problems.empty());
  return text_of(problems);
}

}  // namespace glasshead::model
