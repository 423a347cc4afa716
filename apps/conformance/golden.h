// A folder of golden data: index.json, and its arrays either as arrays/<hash>.npy or all in one
// arrays.safetensors under their hashes (tools/pack_golden.py).
#pragma once

#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "conformance/array.h"

namespace glasshead::conformance {

class Golden {
 public:
  explicit Golden(std::string folder);  // throws Error when there is no readable index.json

  const std::string& folder() const { return folder_; }
  const nlohmann::json& index() const { return index_; }
  std::string format() const;  // "golden/adversarial v1"

  // The array that {"name", "dtype", "shape", "file"} refers to; throws if its dtype or shape is
  // not as said.
  FileTensor load(const nlohmann::json& reference) const;
  // Another JSON file of the folder.
  nlohmann::json read_json(const std::string& name) const;

 private:
  std::string folder_;
  nlohmann::json index_;
  std::map<std::string, FileTensor> packed_;
};

// A number, or one of the strings JSON needs for it: "inf", "-inf", "nan", "0.5".
double number_of(const nlohmann::json& value);

// A number or nested lists of numbers, all rows equally long.
Array array_of(const nlohmann::json& value);

}  // namespace glasshead::conformance
