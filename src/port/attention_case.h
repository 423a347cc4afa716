// Where q, k and v are theirs and right, and what attention makes of them is not: the doctor's own
// catalogue, which knows more mistakes of attention alone.
#pragma once

#include "port/dump.h"
#include "port/subject.h"
#include "port/trail.h"

namespace glasshead::port {

// Adds to the finding's causes; `wrong` is the first wrong place of the dump.
void attention_causes(const Dump& dump, const std::vector<PortPlace>& places, std::size_t wrong,
                      const Subject& subject, PortFinding& finding, index_t& tried);

// Their out (weights, lse) of that layer taken as it is, once a mistake is known that gives it:
// what follows can then be right or wrong by itself. None: their out is not in the dump.
std::optional<Applied> attention_taken(const Runner& runner, const Dump& dump,
                                       const std::vector<PortPlace>& places, std::size_t wrong);

}  // namespace glasshead::port
