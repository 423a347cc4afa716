#include "conformance/golden.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "glasshead/error.h"

namespace glasshead::conformance {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw FormatError("glasshead-conformance", {{where, what}});
}

json parse_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw IoError("glasshead-conformance", {{path, "cannot be opened"}});
  try {
    return json::parse(file);
  } catch (const json::exception& error) {
    refuse(path, error.what());
  }
}

std::string dtype_name(DType type) {  // as the index writes it
  switch (type) {
    case DType::f64:
      return "float64";
    case DType::f32:
      return "float32";
    case DType::f16:
      return "float16";
    case DType::u8:
      return "bool";
    case DType::i64:
      return "int64";
    default:
      return name(type);
  }
}

void append(const json& value, std::size_t depth, Array& array) {
  if (!value.is_array()) {
    if (depth != array.shape.size())
      refuse("index", "a list of numbers with rows of unequal depth");
    array.values.push_back(number_of(value));
    return;
  }
  if (depth >= array.shape.size() || static_cast<index_t>(value.size()) != array.shape[depth]) {
    refuse("index", "a list of numbers with rows of unequal length");
  }
  for (const json& entry : value) append(entry, depth + 1, array);
}

}  // namespace

Golden::Golden(std::string folder) : folder_(std::move(folder)) {
  index_ = parse_file(folder_ + "/index.json");
  const std::string packed = folder_ + "/arrays.safetensors";
  if (std::filesystem::exists(packed)) {
    for (auto& [name, tensor] : read_safetensors(packed)) packed_.emplace(name, std::move(tensor));
  }
}

std::string Golden::format() const { return index_.value("format", ""); }

FileTensor Golden::load(const json& reference) const {
  const std::string file = reference.at("file");
  FileTensor tensor;
  if (const auto found = packed_.find(std::filesystem::path(file).stem().string());
      found != packed_.end()) {
    tensor = found->second;
  } else {
    tensor = read_npy(folder_ + "/" + file);
  }
  if (dtype_name(tensor.dtype) != reference.at("dtype").get<std::string>() ||
      tensor.shape != reference.at("shape").get<std::vector<index_t>>()) {
    refuse(folder_ + "/" + file, "its dtype or shape is not what index.json says");
  }
  return tensor;
}

json Golden::read_json(const std::string& name) const { return parse_file(folder_ + "/" + name); }

double number_of(const json& value) {
  if (value.is_number()) return value.get<double>();
  const std::string written = value.get<std::string>();
  char* end = nullptr;
  const double x = std::strtod(written.c_str(), &end);
  if (written.empty() || *end != '\0') refuse("index", "\"" + written + "\" is not a number");
  return x;
}

Array array_of(const json& value) {
  Array array;
  const json* level = &value;
  while (level->is_array()) {
    array.shape.push_back(static_cast<index_t>(level->size()));
    if (level->empty()) break;
    level = &level->front();
  }
  append(value, 0, array);
  return array;
}

}  // namespace glasshead::conformance
