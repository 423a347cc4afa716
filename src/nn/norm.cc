#include "nn/norm.h"

#include <cmath>

namespace glasshead::nn {

Moments layer_norm(std::span<const double> x, std::span<const double> gain,
                   std::span<const double> bias, double eps, std::span<double> out) {
  const auto n = static_cast<double>(x.size());
  double sum = 0;
  for (const double value : x) sum += value;
  Moments moments;
  moments.mean = sum / n;
  double squares = 0;
  for (const double value : x) {
    const double away = value - moments.mean;
    squares += away * away;
  }
  moments.inverse_std = 1 / std::sqrt(squares / n + eps);
  for (std::size_t i = 0; i < x.size(); ++i) {
    double y = (x[i] - moments.mean) * moments.inverse_std;
    if (!gain.empty()) y *= gain[i];
    if (!bias.empty()) y += bias[i];
    out[i] = y;
  }
  return moments;
}

double rms_norm(std::span<const double> x, std::span<const double> gain, double eps,
                std::span<double> out) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  const double r = 1 / std::sqrt(squares / static_cast<double>(x.size()) + eps);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double y = x[i] * r;
    out[i] = gain.empty() ? y : y * gain[i];
  }
  return r;
}

}  // namespace glasshead::nn
