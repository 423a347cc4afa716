// Gradients as they are written: in the tensor's type, through its strides.
#pragma once

#include "core/narrow.h"

namespace glasshead {

// Row (b, h, i): row[d] for every d, as they are.
template <class T>
void store_row(const T* row, const MutableTensor<4>& to, index_t b, index_t h, index_t i) {
  const index_t at = b * to.strides[0] + h * to.strides[1] + i * to.strides[2];
  store_run(row, to.data, to.dtype, at, to.strides[3], to.shape[3]);
}

// Zero everywhere, if the tensor is wanted.
template <int Rank>
void store_zeros(const MutableTensor<Rank>& tensor) {
  if (tensor.data == nullptr) return;
  index_t count = 1;
  for (const index_t extent : tensor.shape) count *= extent;
  for (index_t n = 0; n < count; ++n) {
    auto at = tensor.shape;
    index_t rest = n;
    for (std::size_t axis = at.size(); axis-- > 0; rest /= tensor.shape[axis])
      at[axis] = rest % tensor.shape[axis];
    tensor.store_at(at, 0.0);
  }
}

}  // namespace glasshead
