// Where q, k and v are theirs and right, and what attention makes of them is not: the doctor's own
// catalogue, which knows more mistakes of attention alone.
#pragma once

#include "port/dump.h"
#include "port/subject.h"

namespace glasshead::port {

// Adds to the finding's causes; `wrong` is the first wrong place of the dump.
void attention_causes(const Dump& dump, const std::vector<PortPlace>& places, std::size_t wrong,
                      const Subject& subject, PortFinding& finding, index_t& tried);

}  // namespace glasshead::port
