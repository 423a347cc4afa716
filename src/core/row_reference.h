// One row of attention, literally: what `arithmetic/1` means. Every kernel of every set gives the
// bits of this function; it is plain loops over one row, slow, and the place to read the order.
//
//   RowReference<float> row = row_reference<float>(inputs);     // row.out, row.max, row.sum,
//   row.lse
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "glasshead/tensor.h"

namespace glasshead {

// The row's inputs in the compute type T (float or double), keys at their absolute positions.
template <class T>
struct RowInputs {
  std::vector<T> q;  // [d_k] as stored, widened
  double scale = 1;
  T softcap = 0;                      // 0: off
  View<const T, 2> k;                 // [kv_len, d_k]
  View<const T, 2> v;                 // [kv_len, d_v]
  std::vector<std::uint8_t> allowed;  // [kv_len] or empty: all
  std::vector<T> bias;                // [kv_len] or empty
  std::optional<T> sink;
  std::vector<std::uint8_t> kept;  // [kv_len] or empty: no dropout
  double dropout_p = 0;
};

template <class T>
struct RowReference {
  std::vector<T> out;  // [d_v]
  T max, sum, lse;
};

template <class T>
RowReference<T> row_reference(const RowInputs<T>& inputs);

}  // namespace glasshead
