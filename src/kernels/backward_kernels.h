// What the gradients need beside the forward kernels (kernel_set.h): the same panels, one query row
// per vector lane. The scores and the gradients of the weights are both `scores` (k against q, v
// against d_out), the gradient of q is `accumulate` (k weighted with ds).
#pragma once

#include "kernels/arithmetic.h"

namespace glasshead {

// From raw scores s' = dot(q, k) and dp' = dot(d_out, v) to weights and gradients of the scores:
//     t = tanh(s' / softcap);  s = softcap * t     if softcap > 0, else s = s'
//     s = s + bias;  s = -inf where bit `lane` of allowed is 0
//     w = s == -inf ? 0 : exp(s - max) * inverse
//     dp = dp' * kept_scale where bit `lane` of kept is 1, else 0       (without kept: dp = dp')
//     ds = w == 0 ? 0 : w * (dp - mean)
//     ds = ds * ((1 - t) * (1 + t))                if softcap > 0 and through_softcap
// A pair whose weight is 0 takes no part, whatever dp holds. Weights are left as the forward sum
// used them: w * kept_scale, and 0 where dropped.
template <class T>
struct DifferentiateArgs {
  T* weights;  // [keys, lanes] s', replaced by w
  T* scores;   // [keys, lanes] dp', replaced by ds
  index_t keys;
  T softcap;
  bool through_softcap;
  const T* bias;                 // [keys, lanes] or null
  const std::uint32_t* allowed;  // [keys] or null
  const std::uint32_t* kept;     // [keys] or null: nothing is dropped
  T kept_scale;
  index_t vectors;
  const T* max;      // [lanes] the rows' maxima
  const T* inverse;  // [lanes] 1 / sum, or 0 for a row without a key
  const T* mean;     // [lanes] dot(d_out, out) = sum_j w_j dp_j
};

// The rows of one panel as `outer` reads them.
template <class T>
struct OuterPanel {
  const T* weights;  // [keys, lanes]
  const T* rows;     // [count, size] row-major, aligned to a vector
  index_t count;
};

// to[n, e] = fma(weights[n, r], rows[r, e], to[n, e]) for the panels in order and r ascending in
// each. With skips_zeros a weight of 0 leaves `to` alone, whatever the row holds.
template <class T>
struct OuterArgs {
  const OuterPanel<T>* panels;
  index_t panel_count;
  index_t keys;
  index_t size;  // a multiple of the vector's width
  bool skips_zeros;
  T* to;  // [keys, size] aligned to a vector
};

template <class T>
struct BackwardKernels {
  void (*differentiate)(const DifferentiateArgs<T>&) noexcept = nullptr;
  void (*outer)(const OuterArgs<T>&) noexcept = nullptr;
};

}  // namespace glasshead
