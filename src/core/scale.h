// What a product of a query and a key is multiplied by.
#pragma once

#include <cmath>

#include "glasshead/attention.h"

namespace glasshead {

// The scale that was given, or 1/sqrt(d_k): a root and a quotient, so 0.7071067811865475 for d_k 2.
inline double scale_of(const AttentionOptions& options, index_t d_k) {
  return options.scale ? *options.scale : 1.0 / std::sqrt(static_cast<double>(d_k));
}

}  // namespace glasshead
