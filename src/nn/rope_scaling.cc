#include "nn/rope_scaling.h"

#include <cmath>
#include <numbers>

#include "base/math.h"

namespace glasshead::nn {

void stretch(std::span<double> frequencies, double factor) {
  for (double& f : frequencies) f /= factor;
}

void stretch(std::span<double> frequencies, std::span<const double> factors) {
  for (std::size_t i = 0; i < frequencies.size(); ++i) frequencies[i] /= factors[i];
}

void stretch(std::span<double> frequencies, const Llama3Scaling& scaling) {
  for (double& f : frequencies) {
    const double turns = scaling.original_length * f / (2 * std::numbers::pi);
    if (turns > scaling.high) continue;
    const double slow = f / scaling.factor;
    const double s = (turns - scaling.low) / (scaling.high - scaling.low);
    f = turns < scaling.low ? slow : (1 - s) * slow + s * f;
  }
}

double longrope_amplitude(double ratio, double original_length) {
  return ratio > 1 ? std::sqrt(1 + math::log(ratio) / math::log(original_length)) : 1;
}

}  // namespace glasshead::nn
