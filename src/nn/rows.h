// What a layer does to rows of f32 between its matrices. A row's bits depend on that row alone: not
// on how many rows the call has, on threads or on the instruction set. Rows may have any strides;
// inner stride 1 is fast.
#pragma once

#include <span>

#include "glasshead/context.h"
#include "glasshead/tensor.h"
#include "nn/activation.h"
#include "nn/rope.h"

namespace glasshead::nn {

// y[r] = layer_norm or rms_norm (norm.h) of x[r], with gain [n] and bias [n] (empty: 1 and 0). y
// may be x. In f64, rounded once to f32; the sums of a mean and of squares are made in sixteen
// parts, number i in part i mod 16, then part k += part k + 8, k + 4, k + 2 and k + 1: sixteen
// chains that wait for nothing where one in index order would wait for each addition.
void layer_norm_rows(const View<const float, 2>& x, std::span<const float> gain,
                     std::span<const float> bias, double eps, const View<float, 2>& y,
                     const Context& context);
void rms_norm_rows(const View<const float, 2>& x, std::span<const float> gain, double eps,
                   const View<float, 2>& y, const Context& context);

// x[r, h] turned by the position of row r (rope.h): x [rows, heads, d], in place; cos and sin
// [rows, rotary/2], inner stride 1, rounded to f32 from rope_table's f64. Products and sums in f64,
// rounded once to f32.
void rotate_rows(const View<float, 3>& x, const View<const float, 2>& cos,
                 const View<const float, 2>& sin, const Rope& rope, const Context& context);

// x = activate(x), elementwise; and gate = activate(gate)·up for gated layers, each rounded to f32.
// In place. activate is computed in f32 with the errors that kernels/layer_kernels.h states: at
// most 6 ulp for gelu, 4 for the others.
void activate_rows(const View<float, 2>& x, Activation activation, const Context& context);
void gate_rows(const View<float, 2>& gate, const View<const float, 2>& up, Activation activation,
               const Context& context);

// x += y.
void add_rows(const View<float, 2>& x, const View<const float, 2>& y, const Context& context);

}  // namespace glasshead::nn
