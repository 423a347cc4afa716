// Attention weights when somebody looks: recomputed from q, k and each row's state (maximum and sum
// of exp), never stored. A row, some heads, the largest few of each row, or a small picture of a
// whole head; no matrix of [q_len, kv_len] is made beside what is asked for.
//
//   attend(q, k, v, out, options, rows);                                 // rows: max and sum
//   attention_weights(q, k, rows, options, {h, h + 1, i, i + 1}, w);     // one row of one head
//   top_weights(q, k, rows, options, {0, heads, 0, q_len}, keys, best);  // the k largest
//   attend_with_maps(q, k, v, out, {64, 64, mean, max}, options);        // heads as pictures
//
// The weight of an allowed pair is exp(s - max) / sum with attend's own score s, exponential, max
// and sum, divided once: to the bit the same from every instruction set and number of threads. It
// is before dropout, and exactly 0 where hidden. A row without a key has weights 0; in a row that
// is NaN every allowed pair is. A row's weights and its sink's sum to 1 within
// 24 + 3 kv_len / 128 roundings of the compute type (docs/weights.md has the errors).
#pragma once

#include "glasshead/attention.h"

namespace glasshead {

// rows: max and sum as attend wrote them for the same q, k and options, in the compute type or f64
// (lse is not read), or {}: then each row's state is computed first, from its scores. weights
// [batch, heads of the range, rows of the range, kv_len], any of f64, f32, bf16, f16. Errors as
// attend's; weights must not overlap an input (found as there).
void attention_weights(const ConstTensor<4>& q, const ConstTensor<4>& k, const RowState& rows,
                       const AttentionOptions& options, const RowRange& range,
                       const MutableTensor<4>& weights, const Context& context = default_context());

// The same by the readable path, one row after another with all its scores at hand: what the fused
// path is compared with.
void attention_weights_transparent(const ConstTensor<4>& q, const ConstTensor<4>& k,
                                   const AttentionOptions& options, const RowRange& range,
                                   const MutableTensor<4>& weights);

// The largest weights of each row, largest first, of equal ones the lower key first (in a row that
// is NaN: its first keys). keys (i64) and weights are both [batch, heads of the range, rows of the
// range, count], count >= 0; allowed pairs only, and where a row has fewer than count the rest is
// key -1, weight 0. Memory beside the results: a few tiles for each thread.
void top_weights(const ConstTensor<4>& q, const ConstTensor<4>& k, const RowState& rows,
                 const AttentionOptions& options, const RowRange& range,
                 const MutableTensor<4>& keys, const MutableTensor<4>& weights,
                 const Context& context = default_context());

// Pictures of whole heads: cells of cell_rows x cell_keys pairs, the last ones cut off where the
// matrix ends. mean and max are [batch, heads, ceil(q_len / cell_rows), ceil(kv_len / cell_keys)];
// leave data null for the one not wanted. Both count every pair of the matrix in the cell, hidden
// ones as the 0 that they are: a row's cells, each times its number of keys, sum to the row's
// total.
struct WeightMaps {
  index_t cell_rows = 64, cell_keys = 64;  // at least 1
  MutableTensor<4> mean, max;
};

// attend, and the maps of its weights. A row's max and sum are known only at its end, so its scores
// are made a second time. The sum of a cell's row is made in the compute type, keys in order, in
// blocks of 128 added in f64, then divided by the row's sum; rows are added in order in f64.
void attend_with_maps(const ConstTensor<4>& q, const ConstTensor<4>& k, const ConstTensor<4>& v,
                      const MutableTensor<4>& out, const WeightMaps& maps,
                      const AttentionOptions& options = {}, const RowState& rows = {},
                      const Context& context = default_context());

// The maps alone, from q, k and the rows' state, which as above may be {}.
void weight_maps(const ConstTensor<4>& q, const ConstTensor<4>& k, const RowState& rows,
                 const AttentionOptions& options, const WeightMaps& maps,
                 const Context& context = default_context());

}  // namespace glasshead
