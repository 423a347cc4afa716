// The inputs of a case that says "random": see RandomInputs in case.h.
#pragma once

#include "wire/case.h"

namespace glasshead::wire {

// Of rows and of d_k, and of their product: a second or so of making numbers.
inline constexpr index_t kMostRandomExtent = 4096;
inline constexpr index_t kMostRandom = index_t{1} << 20;

// Makes the inputs q, k, v of c.random, replacing those there are, and labels for their rows.
void fill_random(Case& c);

// Zeros of the same sizes: enough to see whether a case fits together.
void size_random(Case& c);

}  // namespace glasshead::wire
