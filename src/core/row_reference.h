// One row of attention, literally: what `arithmetic/1` means. Every kernel of every set gives the
// bits of this function; it is plain loops over one row, slow, and the place to read the order.
//
//   RowInputs<float> inputs;
//   inputs.q = {q.data(), {d_k}};
//   inputs.k = k_head;                                   // [kv_len, d_k], any strides
//   inputs.v = v_head;                                   // [kv_len, d_v]
//   inputs.scale = 0.125;
//   RowReference<float> row = row_reference(inputs);     // row.out, row.max, row.sum, row.lse
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "glasshead/tensor.h"

namespace glasshead {

// The row's inputs in the compute type T (float or double), keys at their absolute positions: key n
// is row n of k, so chunks and blocks of keys begin at whole multiples of their size. A view
// without data is an option that is off. Whatever a hidden key's k, v, bias and kept hold is never
// read.
template <class T>
struct RowInputs {
  View<const T, 1> q;                     // [d_k]
  double scale = 1;                       // q * scale is made in f64 and rounded once
  View<const T, 2> k;                     // [kv_len, d_k]
  View<const T, 2> v;                     // [kv_len, d_v]
  T softcap = 0;                          // 0: off
  View<const T, 1> bias{};                // [kv_len] or off
  View<const std::uint8_t, 1> allowed{};  // [kv_len] 1 or 0, or off: every key is visible
  std::optional<T> sink{};                // a score without a value, in the sum only
  View<const std::uint8_t, 1> kept{};     // [kv_len] 1 or 0, or off: no dropout
  double dropout_p = 0;                   // with kept: what is kept is scaled by 1 / (1 - p)
  bool in_bf16 = false;                   // as the kernel set avx512_bf16 does it; T is float
};

// NaN is always the one quiet NaN (0x7fc00000, 0x7ff8000000000000), zero in `out` always +0.
template <class T>
struct RowReference {
  std::vector<T> out;  // [d_v]; 0 for a row with nothing in it
  T max = 0;           // largest score or sink; -inf for an empty row
  T sum = 0;           // of exp(score - max), sink included; 0 for an empty row
  T lse = 0;           // max + ln(sum); -inf for an empty row
};

// T is float or double.
template <class T>
RowReference<T> row_reference(const RowInputs<T>& inputs);

// The exponential (x <= 0, or NaN) and the hyperbolic tangent of the arithmetic
// (kernels/arithmetic.h has the formulas and the errors).
template <class T>
T row_exp(T x);
template <class T>
T row_tanh(T x);

}  // namespace glasshead
