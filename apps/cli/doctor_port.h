// glasshead doctor MODEL --activations: somebody's intermediate numbers of a whole model.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "glasshead/tensor.h"

namespace glasshead::cli {

struct PortArgs {
  std::string model, activations, names;
  std::optional<std::string> tokens, prompt;
  std::optional<DType> arithmetic;
  bool is_json = false;
};

// The exit code: 0 right, 1 wrong. Throws what reading throws, and OptionError under the flags'
// names.
int run_port(const PortArgs& args);

}  // namespace glasshead::cli
