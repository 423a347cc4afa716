// Which of the numbers of an axis are wrong, in words: "query rows from 64 on, the last, partial
// block of 64".
#pragma once

#include <string>
#include <vector>

#include "glasshead/tensor.h"

namespace glasshead::doctor {

struct AxisNames {
  const char* one;                  // "head"
  const char* many;                 // "heads"
  std::vector<std::string> labels;  // of its numbers; empty: the numbers themselves
};

// `wrong` and `checked` are sorted and without repeats, `wrong` within `checked`. Empty where all
// of them are wrong, or none.
std::string describe_axis(const AxisNames& names, const std::vector<index_t>& wrong,
                          const std::vector<index_t>& checked, index_t extent);

}  // namespace glasshead::doctor
