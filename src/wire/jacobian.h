// The derivative of softmax at a row of weights, J = diag(w) - w·wᵀ, and how large it is.
#pragma once

#include <span>

namespace glasshead::wire {

// The Frobenius norm of J, the root of the sum of its squared entries: 0 where softmax is
// saturated, at most 1/2 (two equal weights). 1 - w is taken as the sum of the other weights, so
// that the norm keeps its digits next to saturation. O(n) time and memory.
double jacobian_norm(std::span<const double> weights);

}  // namespace glasshead::wire
