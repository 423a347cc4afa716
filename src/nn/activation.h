// The bends of a feed-forward layer, number by number, in f64.
#pragma once

namespace glasshead::nn {

enum class Activation { none, relu, gelu, gelu_tanh, silu, quick_gelu, tanh };

double relu(double x);  // max(x, 0); NaN stays NaN
// x·Phi(x) = x/2·(1 + erf(x/sqrt 2)) (Hendrycks, Gimpel 2016). Far on the negative side 1 + erf
// cancels: the error is a few ulp of x there, not of the result. gelu(-inf) = -0.
double gelu(double x);
// x/2·(1 + tanh(sqrt(2/pi)·(x + 0.044715·x³))), the same source's approximation.
double gelu_tanh(double x);
// x·sigmoid(alpha·x) = x/(1 + exp(-alpha·x)); alpha 1: SiLU, any: Swish (Ramachandran, Zoph, Le
// 2017). Accurate to a few ulp on both sides; silu(-inf) = -0.
double silu(double x, double alpha = 1);
// x·sigmoid(1.702·x), the first source's other approximation: silu(x, 1.702).
double quick_gelu(double x);

double activate(Activation activation, double x);
const char* name(Activation activation);  // "relu", "gelu", ...

}  // namespace glasshead::nn
