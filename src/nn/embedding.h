// From token ids to vectors, and from positions to vectors, in f64.
#pragma once

#include <span>

#include "glasshead/tensor.h"

namespace glasshead::nn {

// out [d] = row `id` of table [rows, d]. id in [0, rows).
void embed(std::span<const double> table, index_t id, std::span<double> out);

// Sinusoidal positions (Vaswani et al. 2017, section 3.5): out[2i] = sin(p/base^(2i/d)), out[2i+1]
// = cos of the same, out [d]; an odd d ends with a sine.
void sinusoidal(double position, double base, std::span<double> out);

}  // namespace glasshead::nn
