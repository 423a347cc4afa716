// The query rows of one kv head as the gradients need them: a few panels at a time, their queries
// and d_out both with one row per vector lane and row by row, and each row's numbers.
//
//   RowNumbers<T> numbers(call, context.pool, scale);          // once: max, 1 / sum, mean
//   BackwardRows<T> group(kernels, sizes);
//   group.load(call, numbers, plan, {b, g, begin, end});
//   for (index_t p = 0; p < group.used(); ++p) group.panel(p).queries ...
#pragma once

#include <memory>
#include <vector>

#include "base/pool.h"
#include "core/backward.h"
#include "core/panel_work.h"

namespace glasshead {

// Packed rows [begin, end) of kv head g: heads of the group inside, query index outside.
struct PackedRows {
  index_t b = 0, g = 0, begin = 0, end = 0;
};

// Of every row, in packed order. Memory: three numbers a row.
template <class T>
class RowNumbers {
 public:
  RowNumbers(const BackwardCall& call, const Pool& pool);

  const T* max(index_t b, index_t g) const { return at(b, g); }  // 0 where there is no key
  const T* inverse(index_t b, index_t g) const { return at(b, g) + rows_; }   // 1 / sum, or 0
  const T* mean(index_t b, index_t g) const { return at(b, g) + 2 * rows_; }  // dot(d_out, out)
  index_t rows() const { return rows_; }                                      // of a kv head

 private:
  const T* at(index_t b, index_t g) const {
    return numbers_.data() + (b * kv_heads_ + g) * 3 * rows_;
  }
  void fill(const BackwardCall& call, const PackedRows& rows);

  index_t kv_heads_, group_, rows_;
  AlignedArray<T> numbers_;  // [batch, kv_heads, 3, rows]
};

// A query row of the tensor, widened: to[d] for d in order.
template <class T>
void fetch_row(const ConstTensor<4>& tensor, index_t b, index_t h, index_t i, T* to);

// One panel, and the tile that it makes with the block of keys at hand.
template <class T>
struct BackwardPanel {
  PanelRows rows;
  KeyRange range;  // nothing outside is allowed
  index_t vectors = 0;
  AlignedArray<T> queries, d_out;          // [d_k, lanes] scaled; [d_v, lanes]
  AlignedArray<T> query_rows, d_out_rows;  // [lanes, d_k], [lanes, d_v] padded to vectors
  AlignedArray<T> max, inverse, mean;      // [lanes]
  bool is_finite = true;                   // its queries and d_out
  KeyRange keys;                           // of the tile; empty: no pair is allowed
  AlignedArray<T> weights, scores;         // [kBlock, lanes] w and ds of the tile
  AlignedArray<T> chunk, total;            // [d_k, lanes] dq / scale: of a chunk, of those before
  bool has_chunk = false;
};

struct RowSizes {
  index_t d_k = 0, d_v = 0;
  index_t panels = 1;
  bool wants_dq = true;
};

template <class T>
class BackwardRows {
 public:
  BackwardRows(const Kernels<T>& kernels, const RowSizes& sizes);

  // At most panels * lanes rows.
  void load(const BackwardCall& call, const RowNumbers<T>& numbers, double scale,
            const PackedRows& rows);

  index_t used() const { return used_; }
  BackwardPanel<T>& panel(index_t p) { return *panels_[static_cast<std::size_t>(p)]; }
  index_t padded_d_k() const { return padded_d_k_; }
  index_t padded_d_v() const { return padded_d_v_; }

 private:
  void load_panel(const BackwardCall& call, const RowNumbers<T>& numbers, double scale,
                  const PackedRows& rows, BackwardPanel<T>& panel);

  const Kernels<T>& kernels_;
  RowSizes sizes_;
  index_t padded_d_k_, padded_d_v_;  // multiples of the vector's width
  std::vector<std::unique_ptr<BackwardPanel<T>>> panels_;
  index_t used_ = 0;
};

}  // namespace glasshead
