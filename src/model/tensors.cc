#include "model/tensors.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/shape_text.h"

namespace glasshead::model {
namespace {

using formats::StoredTensor;

index_t count_of(const StoredTensor& tensor) {  // the files' reader has checked the product
  index_t count = 1;
  for (const index_t extent : tensor.shape) count *= extent;
  return count;
}

}  // namespace

Tensors::Tensors(const formats::Checkpoint& files, const Family& family,
                 std::vector<Problem>& problems)
    : files_(files),
      names_(names_of(family, files)),
      prefix_(prefix_of(names_, files)),
      problems_(problems),
      uses_(files.tensors().size(), Use::none) {}

const NameRule* Tensors::rule(Slot slot, Side side) const {
  for (const NameRule& rule : names_.rules)
    if (rule.slot == slot && (rule.side == Side::only || rule.side == side)) return &rule;
  return nullptr;
}

std::string Tensors::name(Slot slot, Side side, index_t layer, std::string_view ending) const {
  const NameRule* found = rule(slot, side);
  if (found == nullptr) return "";
  std::string text = tensor_name(found->pattern, prefix_, layer);
  return found->layout == Layout::bare ? text : text.append(ending);
}

bool Tensors::has(Slot slot, Side side, index_t layer, std::string_view ending) const {
  const std::string text = name(slot, side, layer, ending);
  return !text.empty() && files_.find(text) != nullptr;
}

std::size_t Tensors::number(const StoredTensor* tensor) const {
  return static_cast<std::size_t>(tensor - files_.tensors().data());
}

const StoredTensor* Tensors::need(const std::string& name, const std::vector<index_t>& shape) {
  const StoredTensor* tensor = files_.find(name);
  if (tensor == nullptr) {
    problems_.push_back({name, "is missing; must be there, of shape " + file_shape_text(shape)});
    return nullptr;
  }
  uses_[number(tensor)] = Use::used;
  if (tensor->shape != shape) {
    problems_.push_back({name, fmt::format("is {}; must be {}", file_shape_text(tensor->shape),
                                           file_shape_text(shape))});
    return nullptr;
  }
  if (!is_number(tensor->type)) {
    problems_.push_back({name, fmt::format("holds {}; must hold floating-point or quantised "
                                           "numbers",
                                           glasshead::name(tensor->type))});
    return nullptr;
  }
  return tensor;
}

void Tensors::append(const StoredTensor* tensor, std::vector<float>& out) const {
  if (!builds_ || tensor == nullptr) return;
  const std::size_t before = out.size();
  const index_t count = count_of(*tensor);
  out.resize(before + static_cast<std::size_t>(count));
  dequantise(tensor->type, tensor->bytes.data(), count, out.data() + before);
}

nn::Linear Tensors::linear(const std::vector<Rows>& rows, index_t in, bool has_bias, Side side,
                           index_t layer) {
  std::vector<nn::StoredMatrix> parts;
  std::vector<float> bias;
  for (const auto& [slot, out] : rows) {
    const NameRule* found = rule(slot, side);
    const bool is_transposed = found != nullptr && found->layout == Layout::in_out;
    const std::string matrix = name(slot, side, layer, ".weight");
    const StoredTensor* tensor =
        need(matrix, is_transposed ? std::vector{in, out} : std::vector{out, in});
    if (tensor != nullptr && is_transposed && is_quantised(tensor->type)) {
      problems_.push_back({matrix,
                           "is quantised, and stored with its rows as columns; must be "
                           "f64, f32, f16 or bf16"});
      tensor = nullptr;
    }
    if (tensor != nullptr)
      parts.push_back({tensor->type, out, in, tensor->bytes.data(), is_transposed});
    if (has_bias) append(need(name(slot, side, layer, ".bias"), {out}), bias);
  }
  if (!builds_ || parts.size() != rows.size()) return {};
  nn::Linear made(parts, bias, room_);
  bytes_ += made.bytes();
  return made;
}

NormWeights Tensors::norm(Slot slot, index_t size, const Norm& norm, Side side, index_t layer) {
  // The oldest files have TensorFlow's names.
  const bool is_old = !has(slot, side, layer, ".weight") && has(slot, side, layer, ".gamma");
  NormWeights weights;
  append(need(name(slot, side, layer, is_old ? ".gamma" : ".weight"), {size}), weights.gain);
  if (norm.kind == NormKind::layer)
    append(need(name(slot, side, layer, is_old ? ".beta" : ".bias"), {size}), weights.bias);
  if (norm.gain_offset != 0)
    for (float& gain : weights.gain)
      gain = static_cast<float>(static_cast<double>(gain) + norm.gain_offset);
  if (builds_) bytes_ += static_cast<index_t>(4 * (weights.gain.size() + weights.bias.size()));
  return weights;
}

std::vector<float> Tensors::table(Slot slot, const std::vector<index_t>& shape, Side side) {
  std::vector<float> numbers;
  append(need(name(slot, side, 0, ".weight"), shape), numbers);
  bytes_ += static_cast<index_t>(4 * numbers.size());
  return numbers;
}

std::vector<float> Tensors::bare(Slot slot, index_t size) {
  std::vector<float> numbers;
  append(need(name(slot, Side::only, 0, ""), {size}), numbers);
  bytes_ += static_cast<index_t>(4 * numbers.size());
  return numbers;
}

bool Tensors::is_copy(const std::string& name, const std::string& twin) {
  const StoredTensor* copy = files_.find(name);
  if (copy == nullptr) return true;
  const StoredTensor* original = files_.find(twin);
  const bool is_same = original != nullptr && original->type == copy->type &&
                       original->shape == copy->shape &&
                       std::equal(copy->bytes.begin(), copy->bytes.end(), original->bytes.begin(),
                                  original->bytes.end());
  if (is_same) uses_[number(copy)] = Use::copy;
  return is_same;
}

void Tensors::differs(const std::string& name, const std::string& twin) {
  uses_[number(files_.find(name))] = Use::copy;
  problems_.push_back({name, "is not the same as " + twin +
                                 "; must be: the configuration, or the "
                                 "family, says that they are one"});
}

void Tensors::report_unused() {
  for (std::size_t n = 0; n < uses_.size(); ++n) {
    if (uses_[n] != Use::none) continue;
    const StoredTensor& tensor = files_.tensors()[n];
    bool may_be_left = false;
    for (const char* pattern : names_.left)
      may_be_left = may_be_left || is_left(tensor.name, pattern, prefix_);
    for (const NameRule& one : names_.rules)
      may_be_left = may_be_left || (one.slot == Slot::rotary_factors &&
                                    tensor.name == std::string(one.pattern) + ".weight");
    if (!may_be_left)
      problems_.push_back(
          {tensor.name, fmt::format("is not used: the model that the configuration "
                                    "describes has no place for it ({}, {})",
                                    glasshead::name(tensor.type), file_shape_text(tensor.shape))});
  }
}

Inventory Tensors::inventory() const {
  Inventory found;
  for (std::size_t n = 0; n < uses_.size(); ++n) {
    if (uses_[n] != Use::used) continue;
    const StoredTensor& tensor = files_.tensors()[n];
    found.used.push_back(&tensor);
    found.parameters += count_of(tensor);
    found.bytes += static_cast<index_t>(tensor.bytes.size());
  }
  return found;
}

}  // namespace glasshead::model
