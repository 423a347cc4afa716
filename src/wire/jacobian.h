// The derivative of softmax at a row of weights, J = diag(w) - w·wᵀ, and how large it is.
#pragma once

#include <span>

namespace glasshead::wire {

// The spectral norm of J, its largest eigenvalue: 0 where softmax is saturated, at most 1/2. By
// power iteration from a fixed start, to 12 digits or 10,000 rounds, whichever comes first.
double jacobian_norm(std::span<const double> weights);

}  // namespace glasshead::wire
