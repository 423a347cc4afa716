// What an attention call will compute, and by which path: for `--explain`.
#pragma once

#include <string>

#include "cli/attention_args.h"

namespace glasshead::cli {

std::string explain(const AttentionCall& call);

}  // namespace glasshead::cli
