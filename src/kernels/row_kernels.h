// The kernels for few query rows, as in decoding: lanes are keys for the scores and elements of the
// value for the weighted sum, so that a single row fills vectors. The order of every row's
// operations is that of the panel kernels (kernel_set.h), to the bit.
//
// Scores of a block stand at their absolute places: key j at scores[row * kBlock + j mod kBlock].
#pragma once

#include "kernels/arithmetic.h"

namespace glasshead {

// Stored vectors of one kv head in position order: element d of vector n is
// data[n * row_stride + d * step].
template <class T>
struct StridedRows {
  const T* data = nullptr;
  index_t row_stride = 0, step = 1;
};

// Elements narrower than the compute type f32, widened in registers. An int8 element is multiplied,
// as a float, by its row's scale, scales[n] for row n.
enum class Narrow : std::uint8_t { none, bf16, f16, int8 };
struct NarrowRows {
  Narrow type = Narrow::none;
  const void* data = nullptr;  // where StridedRows::data would be
  const float* scales = nullptr;
  index_t panel_stride = 0;  // from a panel of 16 keys to the next: keys of several in one call
};

inline constexpr index_t kPanelKeys = 16;  // keys of a panel that is stored transposed, [d][16]

inline constexpr index_t kMostRowsAtOnce = 32;  // of one call

// As ScoreArgs: s by fused multiply-add in order of d, capped, biased, hidden; max[row] raised.
template <class T>
struct RowScoreArgs {
  const T* q;  // [rows, d_k] scaled
  index_t rows, d_k;
  StridedRows<T> k;  // step 1, or a panel of 16 keys: row_stride 1, step 16
  index_t first;     // of the first key, mod kBlock
  index_t keys;      // first + keys <= kBlock
  T softcap;
  const T* bias;  // bias[n * bias_stride + row] or null
  index_t bias_stride;
  const std::uint32_t* allowed;  // [keys] bit `row`, or null
  T* scores;                     // [rows, kBlock]
  T* max;                        // [rows]
  NarrowRows narrow = {};        // instead of k.data, with k's strides; int8 only in panels
};

// As SoftmaxArgs, over the keys [first, first + keys) of the block.
template <class T>
struct RowSoftmaxArgs {
  T* scores;  // [rows, kBlock] s, replaced by p
  index_t rows, first, keys;
  const std::uint32_t* kept;  // [keys] bit `row`, or null
  const T* new_max;           // [rows]
  T* max;                     // [rows]
  T* sum;                     // [rows]
  T* alpha;                   // [rows]
};

// As AccumulateArgs. Row r of a is at a + r * a_stride.
template <class T>
struct RowAccumulateArgs {
  const T* p;  // [rows, kBlock]
  index_t rows, first, keys;
  StridedRows<T> v;  // step 1
  index_t d_v;
  const T* alpha;                // [rows] or null
  const std::uint32_t* allowed;  // [keys] bit `row`, or null: as in AccumulateArgs
  T* a;
  index_t a_stride;
  NarrowRows narrow = {};  // instead of v.data: with v's strides
};

// The state of some rows.
template <class T>
struct RowsState {
  T* max;  // [rows]
  T* sum;  // [rows]
  T* a;    // [rows, a_stride]
};

template <class T>
struct RowMergeArgs {
  RowsState<T> x, y;
  index_t rows, d_v, a_stride;
};

template <class T>
struct RowFinishArgs {
  RowsState<T> state;
  index_t rows, d_v, a_stride;
  T kept_scale;
  T* const* out;  // [rows]
  index_t step;
};

template <class T>
struct RowKernels {
  void (*scores)(const RowScoreArgs<T>&) noexcept = nullptr;
  void (*softmax)(const RowSoftmaxArgs<T>&) noexcept = nullptr;
  void (*accumulate)(const RowAccumulateArgs<T>&) noexcept = nullptr;
  void (*merge)(const RowMergeArgs<T>&) noexcept = nullptr;
  void (*finish)(const RowFinishArgs<T>&) noexcept = nullptr;
};

}  // namespace glasshead
