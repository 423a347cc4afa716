// Normalisation of one vector. Everything is f64, sums in index order: a caller with narrower
// numbers widens them, calls, and rounds once.
//
//   Moments m = layer_norm(x, gain, bias, 1e-5, out);     // out may be x
#pragma once

#include <span>

namespace glasshead::nn {

struct Moments {
  double mean = 0;
  double inverse_std = 0;  // 1/sqrt(var + eps)
};

// out = (x - mean)·inverse_std·gain + bias, with the mean of x [n] and var = mean((x - mean)²), not
// corrected by n/(n-1) (Ba, Kiros, Hinton 2016). An empty gain is 1, an empty bias 0; else [n].
// n >= 1. `out` may be `x`.
Moments layer_norm(std::span<const double> x, std::span<const double> gain,
                   std::span<const double> bias, double eps, std::span<double> out);

// out = x·r·gain, with r = 1/sqrt(mean(x²) + eps) (Zhang, Sennrich 2019). Returns r. n >= 1.
double rms_norm(std::span<const double> x, std::span<const double> gain, double eps,
                std::span<double> out);

}  // namespace glasshead::nn
