#include "wire/jacobian.h"

#include <cmath>
#include <cstddef>
#include <vector>

namespace glasshead::wire {

double jacobian_norm(std::span<const double> weights) {
  const std::size_t n = weights.size();
  // Sums, and sums of squares, of the weights after each one.
  std::vector<double> after(n + 1, 0.0), squares_after(n + 1, 0.0);
  for (std::size_t j = n; j-- > 0;) {
    after[j] = after[j + 1] + weights[j];
    squares_after[j] = squares_after[j + 1] + weights[j] * weights[j];
  }
  double before = 0, squares_before = 0, total = 0;
  for (std::size_t j = 0; j < n; ++j) {
    const double w = weights[j], others = before + after[j + 1];
    // The row's diagonal entry w (1 - w), and its others -w w_k.
    total += w * w * (others * others + squares_before + squares_after[j + 1]);
    before += w;
    squares_before += w * w;
  }
  return std::sqrt(total);
}

}  // namespace glasshead::wire
