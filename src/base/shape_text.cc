#include "base/shape_text.h"

namespace glasshead {

std::string joined(std::span<const index_t> numbers, std::string_view between) {
  std::string text;
  for (const index_t number : numbers) {
    if (!text.empty()) text += between;
    text += std::to_string(number);
  }
  return text;
}

std::string file_shape_text(std::span<const index_t> shape) {
  return "[" + joined(shape, ", ") + "]";
}

}  // namespace glasshead
