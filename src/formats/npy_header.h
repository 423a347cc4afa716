// The header of a .npy file: a Python dictionary, read by a parser that accepts exactly what the
// format needs: {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), } and white space.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "glasshead/error.h"
#include "glasshead/tensor.h"

namespace glasshead::formats {

struct NpyHeader {
  std::string descr;  // "<f8"
  bool is_fortran_order = false;
  std::vector<index_t> shape;
};

// False, and every problem, if `text` is not such a dictionary. Values that are well formed but
// mean nothing to us (an unknown descr) are the caller's to refuse.
bool parse_npy_header(std::string_view text, NpyHeader& header, std::vector<Problem>& problems);

}  // namespace glasshead::formats
