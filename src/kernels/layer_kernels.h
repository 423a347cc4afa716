// The bends of feed-forward layers in f32, number by number (nn/activation.h has them in f64).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/arithmetic.h"

namespace glasshead {

//   relu         max(x, 0)                    exact
//   gelu         x/2 erfc(-x/sqrt 2)          at most 6 ulp
//   gelu_tanh    x s(u)                       at most 4 ulp; u = 2 sqrt(2/pi) (x + 0.044715 x^3)
//   silu         x s(x)                       at most 4 ulp
//   quick_gelu   x s(1.702 x)                 at most 4 ulp
//   tanh                                      at most 2.8 ulp
//
// with s(u) = 1/(1 + exp(-u)). The error is that of the exact value where it is a normal number,
// on the far negative side, too: no 1 + tanh or 1 + erf cancels. Of a value below 1.2e-38 it is at
// most 1e-43. -inf gives -0 (tanh: -1), -0 gives -0, NaN one quiet NaN.
enum class Bend : std::uint8_t { relu, gelu, gelu_tanh, silu, quick_gelu, tanh };
constexpr int kBends = 6;

// x[n] = bend(x[n]), or bend(x[n]) * up[n] if up; every NaN as one quiet NaN.
struct BendArgs {
  Bend bend;
  index_t count;
  float* x;
  const float* up;  // or null; not x
};

struct LayerKernels {
  void (*bend)(const BendArgs&) noexcept = nullptr;
};

}  // namespace glasshead
