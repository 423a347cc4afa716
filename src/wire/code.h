// The attention of a case as a program to run elsewhere: its q, k and v as numbers, then the
// formula.
//
//   attention_code(c, trace, "numpy", problems)     // "import numpy as np\n\nq = np.array(...)..."
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "glasshead/error.h"
#include "wire/case.h"

namespace glasshead::wire {

// `language`: numpy, pytorch or cpp. Of the first attention of the case's trace. The program prints
// out, a row a line, heads one below the other. nullopt, and a problem, for another language and
// where the attention has more than scale and mask, or a row without a key.
std::optional<std::string> attention_code(const Case& c, const Trace& trace,
                                          std::string_view language,
                                          std::vector<Problem>& problems);

}  // namespace glasshead::wire
