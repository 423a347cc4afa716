// The tiny models of every family in tests/data/models, and how far what we compute is from what
// Hugging Face transformers computes with them in f64 (its README says what is there).
#pragma once

#include <string>
#include <vector>

#include "glasshead/model.h"

namespace glasshead::parity {

struct Fixture {
  std::string name, kind, path, expected;  // absolute paths
  index_t texts = 0, context = 0;
  std::vector<std::string> unread;             // tensors that nothing expected depends on
  double logits = 0, weights = 0, states = 0;  // tolerances: of weights absolute, else relative to
                                               // the largest number of the array
};
std::vector<Fixture> fixtures();

// The largest error, in tolerances: at most 1 is right.
struct Worst {
  double error = 0;
  std::string where;
  int arrays = 0;  // that were compared
};
Worst compare(const Model& model, const Fixture& fixture, const NamedTensors& expected);

// One expected array, which must be there.
const FileTensor& get(const NamedTensors& expected, const std::string& name);
bool has(const NamedTensors& expected, const std::string& name);
std::vector<index_t> ids_of(const FileTensor& tensor);

}  // namespace glasshead::parity
