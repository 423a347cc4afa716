// A Rope as the numbers of a step, and back.
#pragma once

#include <vector>

#include "glasshead/trace.h"
#include "nn/rope.h"

namespace glasshead::nn {

std::vector<StepNumber> rope_numbers(const Rope& rope);
Rope rope_of(const Step& step);

}  // namespace glasshead::nn
