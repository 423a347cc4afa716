// Gradients of the terms of a bias: ds of every pair, added in f64 to the number that the pair
// reads.
//
//   BiasGradients bias(options, shape, gradients.d_bias);
//   if (bias.is_wanted()) bias.add({b, h, i, j}, ds);         // pair by pair, or
//   bias.add_tile(rows, keys, lanes, ds, part);               // a tile at a time
//   bias.store();
//
// Calls for different parts may be made at the same time: a part is a run of kv blocks, and what a
// dense term that tells keys apart sums over a part, no other part touches; a T5 table has sums of
// its own for each part. store() adds the parts in order.
#pragma once

#include <array>
#include <vector>

#include "core/panel_rows.h"
#include "glasshead/attention.h"

namespace glasshead {

class BiasGradients {
 public:
  // `wanted` is Gradients::d_bias, checked. All are borrowed.
  BiasGradients(const AttentionOptions& options, const PairShape& shape,
                const std::vector<MutableTensor<4>>& wanted);

  bool is_wanted() const { return !dense_.empty() || !tables_.empty(); }

  // How the keys are cut into parts: a function of the call alone. 1 where a term is repeated over
  // the keys, so that they meet in one sum.
  index_t parts() const { return parts_; }
  index_t blocks_of_part() const { return blocks_of_part_; }

  void add(const std::array<index_t, 4>& pair, double ds) { add_to_part(0, pair, ds); }
  // ds[(j - keys.begin) * lanes + r]; rows in order, the keys of each in order.
  template <class T>
  void add_tile(const PanelRows& rows, KeyRange keys, index_t lanes, const T* ds, index_t part);
  void store() const;

 private:
  struct Dense {
    PairStrides strides;       // in sums
    std::vector<double> sums;  // row-major, of the gradient's shape
    const MutableTensor<4>* to;
  };
  struct Table {
    index_t entries = 0, heads = 0;
    index_t first = 0;               // the smallest j - p
    std::vector<index_t> bucket_of;  // by j - p - first
    std::vector<double> sums;        // [parts, buckets, heads]
    const MutableTensor<4>* to;
  };
  void add_to_part(index_t part, const std::array<index_t, 4>& pair, double ds);
  void add_dense(const MutableTensor<4>& to);
  void add_table(const Bias::T5& t5, const PairShape& shape, const MutableTensor<4>& to);

  index_t query_start_ = 0;
  index_t parts_ = 1, blocks_of_part_ = 1;
  std::vector<Dense> dense_;
  std::vector<Table> tables_;
};

}  // namespace glasshead
