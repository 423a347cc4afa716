#include "wire/jacobian.h"

#include <cmath>
#include <cstddef>
#include <vector>

namespace glasshead::wire {

double jacobian_norm(std::span<const double> weights) {
  const std::size_t n = weights.size();
  if (n < 2) return 0;
  // J is symmetric and positive semidefinite. A start with every component different is not
  // perpendicular to its first eigenvector but by accident.
  std::vector<double> x(n), y(n);
  for (std::size_t j = 0; j < n; ++j)
    x[j] = weights[j] * (j % 2 == 0 ? 1 : -1) + 1e-3 / static_cast<double>(j + 2);
  double norm = 0;
  constexpr int kRounds = 10000;
  for (int round = 0; round < kRounds; ++round) {
    double length = 0;
    for (const double value : x) length += value * value;
    length = std::sqrt(length);
    if (length == 0) return 0;
    double mean = 0;
    for (std::size_t j = 0; j < n; ++j) mean += weights[j] * (x[j] /= length);
    double next = 0;
    for (std::size_t j = 0; j < n; ++j) {
      y[j] = weights[j] * (x[j] - mean);
      next += x[j] * y[j];  // Rayleigh quotient: its error is the square of the vector's
    }
    x.swap(y);
    if (round > 0 && std::fabs(next - norm) <= 1e-13 * next) return next;
    norm = next;
  }
  return norm;
}

}  // namespace glasshead::wire
