// The MODEL form of `glasshead trace`: which head of which model, at which token.
#pragma once

#include <string>
#include <vector>

#include "cli/head_case.h"
#include "cli/trace_options.h"

namespace glasshead::cli {

// A directory, a .safetensors or a .gguf file: a model, where cases are .json files or names.
bool is_model(const std::string& path);

// The flags that a case would not read, as problems.
void refuse_model_flags(const TraceArgs& args, std::vector<Problem>& problems);

// Loads the model, reads the text and takes the head. Throws OptionError with everything that is
// wrong with the flags, and what loading and running throw.
ModelHead read_head(const TraceArgs& args);

}  // namespace glasshead::cli
