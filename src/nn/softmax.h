// Softmax and its logarithm over one axis of a dense tensor, in f64: the plain function, without
// masks or sinks (the steps of attention have their own, core/steps_ops).
//
//   softmax(values, {2, 3, 5}, 1, out);       // over the axis of size 3
//
// The largest entry is subtracted first; sums are made in blocks of 128, then in order. A row that
// holds NaN or +inf, or -inf only, is NaN.
#pragma once

#include <span>

#include "glasshead/tensor.h"

namespace glasshead::nn {

// exp(x_i - max) / sum_j exp(x_j - max). `out` has the size of `x` and may be `x`. axis in
// [0, rank).
void softmax(std::span<const double> x, std::span<const index_t> shape, std::size_t axis,
             std::span<double> out);
// (x_i - max) - ln(sum_j exp(x_j - max)), likewise.
void log_softmax(std::span<const double> x, std::span<const index_t> shape, std::size_t axis,
                 std::span<double> out);

}  // namespace glasshead::nn
