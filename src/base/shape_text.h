// Numbers of axes in words.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "glasshead/tensor.h"

namespace glasshead {

// "1, 8, 64"
std::string joined(std::span<const index_t> numbers, std::string_view between);
// "[1, 8, 64]", as NumPy and safetensors show the shape of an array in a file. (That of an argument
// of a call is shorter: core/findings.h.)
std::string file_shape_text(std::span<const index_t> shape);

}  // namespace glasshead
