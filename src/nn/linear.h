// A linear layer over rows of f32, its weights packed for the kernels in the type they are stored
// in: quantised weights stay quantised in memory.
//
//   Linear up({.type = Stored::q4_1, .out = 1536, .in = 576, .data = bytes}, bias);
//   up.apply(x, y, context);                 // x [rows, in] -> y [rows, out]
//
//   y[r, o] = s + bias[o],   s = fma(w[o, e], x[r, e], s) over e ascending, from 0
//   quantised, w = scale·q + offset in runs of 32 elements (Q6_K: 16):
//     t = fma(q[o, e], x[r, e], t) over the run, from 0;  s = fma(scale, t, s);
//     s = fma(offset, sum of x over the run, s)
//
// with a bias that isn't there as +0 and every NaN written as one quiet NaN; a matrix with factors
// that are not finite is dequantised first. A row's bits depend on that row alone: not on how many
// rows the call has, on threads, or on the instruction set (every one with fused multiply-add).
// docs/linear.md shows how the weights stand in memory and what that gains.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/stored.h"
#include "base/stream_memory.h"
#include "glasshead/context.h"
#include "glasshead/tensor.h"

namespace glasshead::nn {

struct StoredMatrix {
  Stored type = Stored::f32;
  index_t out = 0, in = 0;
  const std::byte* data = nullptr;  // [out, in] row-major, or [in, out] if is_transposed
  bool is_transposed = false;       // GPT-2's Conv1D; never with quantised types
};

class Linear {
 public:
  Linear() = default;
  // Copies: `weights` and `bias` ([out], or empty for none) need not outlive it. f64 is rounded to
  // f32; the other types are kept. in must be a multiple of the type's block, is_number(type) hold;
  // the data needs no alignment. Packed by the threads of default_context().
  Linear(const StoredMatrix& weights, std::span<const float> bias);
  // Several matrices with one input as one layer, their rows one after another (q, k and v, or gate
  // and up): fewer and larger calls. Their types may differ. At least one; bias [sum of out].
  Linear(std::span<const StoredMatrix> weights, std::span<const float> bias);
  // The same, the weights behind those that were packed into `room` before.
  Linear(std::span<const StoredMatrix> weights, std::span<const float> bias, StreamRoom& room);

  index_t out() const;
  index_t in() const;
  Stored type() const;    // of the first matrix
  index_t bytes() const;  // of the packed weights and the bias

  // x may not overlap y.
  void apply(const View<const float, 2>& x, const View<float, 2>& y, const Context& context) const;
  // out [in] = row `o` of W dequantised: a tied embedding table is read through the head's weights.
  void row(index_t o, std::span<float> out) const;

 private:
  struct Packed;
  std::shared_ptr<const Packed> packed_;  // copies share the weights
};

}  // namespace glasshead::nn
