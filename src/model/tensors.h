// A checkpoint's tensors, found by what they are for. Whatever is missing, of another shape or left
// over becomes a problem; nothing fails on the way.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/stream_memory.h"
#include "formats/checkpoint.h"
#include "glasshead/error.h"
#include "model/catalog/family.h"
#include "model/weights.h"
#include "nn/linear.h"

namespace glasshead::model {

struct Rows {
  Slot slot;
  index_t out = 0;
};

class Tensors {
 public:
  Tensors(const formats::Checkpoint& files, const Family& family, std::vector<Problem>& problems);

  // From here on matrices are packed and vectors filled; before, they are only looked for.
  void build() { builds_ = true; }
  index_t bytes() const { return bytes_; }  // of what has been built

  const NameRule* rule(Slot slot, Side side) const;  // null: the format has none
  std::string name(Slot slot, Side side, index_t layer, std::string_view ending) const;
  bool has(Slot slot, Side side, index_t layer, std::string_view ending) const;

  // Matrices [out, in] with one input, their rows one after another, and their biases.
  nn::Linear linear(const std::vector<Rows>& rows, index_t in, bool has_bias, Side side,
                    index_t layer);
  NormWeights norm(Slot slot, index_t size, const Norm& norm, Side side, index_t layer);
  std::vector<float> table(Slot slot, const std::vector<index_t>& shape, Side side);
  std::vector<float> bare(Slot slot, index_t size);

  // A stored copy of `twin`: true if there is none, or if it is the same. It counts as used.
  bool is_copy(const std::string& name, const std::string& twin);
  void differs(const std::string& name, const std::string& twin);

  // The tensors that nothing has asked for and that may not be left, as problems.
  void report_unused();
  Inventory inventory() const;

 private:
  const formats::StoredTensor* need(const std::string& name, const std::vector<index_t>& shape);
  std::size_t number(const formats::StoredTensor* tensor) const;
  void append(const formats::StoredTensor* tensor, std::vector<float>& out) const;

  const formats::Checkpoint& files_;
  const Names& names_;
  std::string prefix_;
  std::vector<Problem>& problems_;
  bool builds_ = false;
  index_t bytes_ = 0;
  StreamRoom room_;  // for the matrices, in the order in which they are built
  enum class Use : unsigned char { none, used, copy };
  std::vector<Use> uses_;  // [tensors]
};

}  // namespace glasshead::model
