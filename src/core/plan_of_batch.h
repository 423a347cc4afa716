// The TilePlan of each batch entry: sequences of a cache may stand at different positions, and then
// the rules about positions allow other pairs. Then each has a plan of its own, which holds its
// share of what the masks and biases say of the batch: what the plans take is as much as one of
// all.
//
//   const PlanOfBatch plans(options, starts, shape);   // starts: [batch], or empty
//   plans[b].tile(rows, keys, bits);
//
// The options and their data must outlive it.
#pragma once

#include <memory>
#include <vector>

#include "core/tile_plan.h"

namespace glasshead {

// What masks, biases and plans need of batch entry b, whose query row 0 stands at `start`: options
// of a batch of one that answer for b (MaskPlan(entry.options, entry.shape).allowed(b, h, i, j)).
struct BatchEntry {
  AttentionOptions options;
  PairShape shape;
};
BatchEntry entry_of(const AttentionOptions& options, const PairShape& shape, index_t b,
                    index_t start);

class PlanOfBatch {
 public:
  // `starts`: the position of query row 0 of each batch entry; empty: options.query_start for all.
  PlanOfBatch(const AttentionOptions& options, const std::vector<index_t>& starts,
              const PairShape& shape);

  const TilePlan& operator[](index_t b) const {
    return *plans_[plans_.size() == 1 ? 0 : static_cast<std::size_t>(b)];
  }

 private:
  std::vector<std::unique_ptr<BatchEntry>> entries_;  // a plan needs its own to live
  std::vector<std::unique_ptr<TilePlan>> plans_;      // one of all, or [batch]
};

}  // namespace glasshead
