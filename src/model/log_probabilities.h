// What the rows of logits say: the logarithm of each token's probability.
#pragma once

#include <vector>

#include "glasshead/tensor.h"

namespace glasshead::model {

// logits[id] - ln(sum of exp(logits)), shifted by the largest, in f64. logits [vocab]
std::vector<double> log_probabilities(const View<const float, 1>& logits);

}  // namespace glasshead::model
