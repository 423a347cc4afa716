// The inputs of a case that says "random": see RandomInputs in case.h.
#pragma once

#include "wire/case.h"

namespace glasshead::wire {

// Makes the inputs q, k, v of c.random, replacing those there are, and labels for their rows.
void fill_random(Case& c);

}  // namespace glasshead::wire
