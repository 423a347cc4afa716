#include "nn/embedding.h"

#include "base/math.h"

namespace glasshead::nn {

void embed(std::span<const double> table, index_t id, std::span<double> out) {
  const auto first = static_cast<std::size_t>(id) * out.size();
  for (std::size_t c = 0; c < out.size(); ++c) out[c] = table[first + c];
}

void sinusoidal(double position, double base, std::span<double> out) {
  const auto d = static_cast<double>(out.size());
  for (std::size_t c = 0; c < out.size(); ++c) {
    const std::size_t pair = c / 2;
    const double angle = position / math::pow(base, 2 * static_cast<double>(pair) / d);
    out[c] = c % 2 == 0 ? math::sin(angle) : math::cos(angle);
  }
}

}  // namespace glasshead::nn
