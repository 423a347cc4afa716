#include "nn/activation.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "base/math.h"

namespace glasshead::nn {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

double relu(double x) { return x < 0 ? 0 : x; }

double gelu(double x) {
  if (x == -kInfinity) return -0.0;
  return 0.5 * x * (1 + math::erf(x * (1 / std::numbers::sqrt2)));
}

double gelu_tanh(double x) {
  if (x == -kInfinity) return -0.0;
  const double inner = std::sqrt(2 * std::numbers::inv_pi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + math::tanh(inner));
}

double silu(double x, double alpha) {
  const double z = alpha * x;
  if (z >= 0) return x / (1 + math::exp(-z));
  if (z == -kInfinity) return std::copysign(0.0, x);
  const double e = math::exp(z);  // exp(-z) would overflow where the result is still a number
  return x * (e / (1 + e));
}

double quick_gelu(double x) { return silu(x, 1.702); }

double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::relu:
      return relu(x);
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_tanh:
      return gelu_tanh(x);
    case Activation::silu:
      return silu(x);
    case Activation::quick_gelu:
      return quick_gelu(x);
    case Activation::tanh:
      return math::tanh(x);
    case Activation::none:
      break;
  }
  return x;
}

const char* name(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return "relu";
    case Activation::gelu:
      return "gelu";
    case Activation::gelu_tanh:
      return "gelu_tanh";
    case Activation::silu:
      return "silu";
    case Activation::quick_gelu:
      return "quick_gelu";
    case Activation::tanh:
      return "tanh";
    case Activation::none:
      break;
  }
  return "none";
}

}  // namespace glasshead::nn
