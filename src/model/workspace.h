// Room for the rows of a run, kept between runs: it grows to the largest of them and no further.
#pragma once

#include <vector>

#include "glasshead/tensor.h"

namespace glasshead::model {

class Buffer {
 public:
  // [rows, width], dense; what it holds is whatever was left there.
  View<float, 2> rows(index_t rows, index_t width) {
    if (rows * width > room_.size()) room_ = Tensor<float, 1>({rows * width});
    return {room_.data(), {rows, width}};
  }

 private:
  Tensor<float, 1> room_;
};

struct Workspace {
  Buffer x;         // [rows, d_model] the residual stream
  Buffer embedded;  // [rows, width] where the token table is narrower than the model
  Buffer normed;    // [rows, d_model] what goes into a part of a layer
  Buffer in;        // [rows, q | k | v]
  Buffer attended;  // [rows, heads·d_v]
  Buffer inner;     // [rows, gate | up]
  Buffer added;     // [rows, d_model] what comes out of a part
  Buffer chosen;    // [rows, d_model] those whose logits are wanted
  Buffer head;      // [rows, width] on the way to the logits
  Buffer logits;    // [rows, vocab]
  Buffer row_max, row_sum;
  std::vector<Buffer> cos, sin;  // [rows, rotary/2] of each of the stack's rotaries
};

// Columns [first, first + count) of all rows.
template <class T>
View<T, 2> columns(const View<T, 2>& rows, index_t first, index_t count) {
  return {rows.data + first, {rows.shape[0], count}, rows.strides};
}
template <class T>
View<T, 2> some_rows(const View<T, 2>& rows, index_t first, index_t count) {
  return {rows.data + first * rows.strides[0], {count, rows.shape[1]}, rows.strides};
}

}  // namespace glasshead::model
