// What a Model holds.
#pragma once

#include <string>

#include "formats/checkpoint.h"
#include "glasshead/model.h"
#include "model/weights.h"

namespace glasshead {

struct Model::Impl {
  std::string path;
  model::Description description;
  model::Weights weights;
  index_t parameters = 0;

  // The stack that writes (decoder), or of an encoder the one there is.
  const model::Stack& last_stack() const {
    return description.decoder ? *description.decoder : *description.encoder;
  }
};

// Loads from files that are open. Throws FormatError with everything that is wrong.
Model model_of(const formats::Checkpoint& files, const ModelOptions& options = {});

}  // namespace glasshead
