// The JSON header of a .safetensors file:
//   {"__metadata__": {"format": "pt"}, "q": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0,
//   24]}}
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "glasshead/error.h"
#include "glasshead/tensor.h"

namespace glasshead::formats {

struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  std::vector<index_t> shape;
  std::vector<index_t> offsets;  // begin, end
};

// False, and every problem found until reading had to stop, if `text` is not such a header: JSON,
// UTF-8, no key twice, no unknown field, no field missing, whole non-negative numbers. What the
// numbers mean together is the caller's to check.
bool parse_safetensors_header(std::string_view text, std::vector<SafetensorsEntry>& entries,
                              std::vector<Problem>& problems);

}  // namespace glasshead::formats
