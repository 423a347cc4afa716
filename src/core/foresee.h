// Asking for memory before it is needed.
#pragma once

#include "glasshead/tensor.h"

namespace glasshead {

// A panel reads a short piece of many rows, which no hardware foresees: asks for the next block's
// piece while this tile's products are made.
inline void foresee(const void* next, index_t bytes) {
  const auto* const at = static_cast<const char*>(next);
  for (index_t n = 0; n < bytes; n += 64) __builtin_prefetch(at + n, 0, 2);
}

}  // namespace glasshead
