// Rotary frequencies of models that were stretched to longer texts than they were first trained on.
// Each takes the plain frequencies of rope.h and changes them in place. YaRN, which has an
// amplitude too, is a part of Rope.
#pragma once

#include <span>

#include "glasshead/tensor.h"

namespace glasshead::nn {

// f / factor: as if positions were closer together by it (Chen et al. 2023, "Positional
// interpolation"). factor > 0.
void stretch(std::span<double> frequencies, double factor);

// f[i] / factors[i] (LongRoPE's two sets, and the tensors that GGUF files keep the result of others
// in). factors [frequencies], > 0.
void stretch(std::span<double> frequencies, std::span<const double> factors);

// Llama 3.1: pairs whose wavelength 2·pi/f is below original_length/high are left, those above
// original_length/low are slowed down by factor, and those between are mixed by
// s = (original_length/wavelength - low)/(high - low): (1 - s)·f/factor + s·f.
struct Llama3Scaling {
  double factor = 8;           // > 0
  double low = 1, high = 4;    // 0 < low < high
  double original_length = 0;  // > 0
};
void stretch(std::span<double> frequencies, const Llama3Scaling& scaling);

// What LongRoPE multiplies cos and sin by: sqrt(1 + ln(ratio)/ln(original_length)), 1 for a ratio
// of longest to original length up to 1.
double longrope_amplitude(double ratio, double original_length);

}  // namespace glasshead::nn
