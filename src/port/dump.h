// The tensors of a dump at the places of a model, and how far numbers are from them.
#pragma once

#include <string>
#include <vector>

#include "glasshead/port.h"
#include "port/runner.h"
#include "port/theirs.h"

namespace glasshead::port {

struct Dumped {
  model::NamedPlace place;
  std::size_t piece = 0;
  std::string theirs;  // their tensor's name
  const FileTensor* tensor = nullptr;
  Shape shape;
  std::vector<Layout> layouts;
};

class Dump {
 public:
  // Everything that fits no place, or no place's shape, is among the problems.
  Dump(const Runner& runner, const Model& model, const NamedTensors& activations,
       const PortOptions& options, std::vector<Problem>& problems);

  const std::vector<Dumped>& all() const { return all_; }  // in the order of computation
  const std::vector<std::string>& notes() const { return notes_; }
  DType arithmetic() const { return arithmetic_; }

  // Of `ours` at a place, `parts` parts of the model after the last number that was theirs.
  PortPlace compare(const Dumped& dumped, const FileTensor& ours, index_t parts) const;
  // Their numbers in our order and shape, by the layout of these words (PortPlace::layout); none if
  // some are missing there.
  static std::optional<FileTensor> numbers(const Dumped& dumped, const std::string& layout);

 private:
  void add(const Runner& runner, const Model& model, const model::NamedPlace& place,
           const std::string& theirs, const FileTensor& tensor, std::vector<Problem>& problems);

  std::vector<Dumped> all_;
  std::vector<std::string> notes_;
  DType arithmetic_ = DType::f32;
};

}  // namespace glasshead::port
