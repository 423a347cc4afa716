// A case back as text.
#pragma once

#include <string>

#include "wire/case.h"

namespace glasshead::wire {

// A case of one attention over q, k and v themselves, such as one made of arrays, in the format of
// docs/case-format.md: parse_case makes of it a case with the same numbers to the bit. A mask by
// rule is written as the pairs that it allows. Of longer batches only the first entry is there.
std::string given_case_text(const Case& c);

}  // namespace glasshead::wire
