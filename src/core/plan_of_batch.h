// The TilePlan of each batch entry: sequences of a cache may stand at different positions, and then
// the rules about positions allow other pairs. One plan for each place where query row 0 stands.
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

class PlanOfBatch {
 public:
  // `starts`: the position of query row 0 of each batch entry; empty: options.query_start for all.
  PlanOfBatch(const AttentionOptions& options, const std::vector<index_t>& starts,
              const PairShape& shape);

  const TilePlan& operator[](index_t b) const {
    return *plans_[plans_.size() == 1 ? 0 : of_batch_[static_cast<std::size_t>(b)]];
  }

 private:
  std::vector<std::unique_ptr<AttentionOptions>> options_;  // a plan needs its own to live
  std::vector<std::unique_ptr<TilePlan>> plans_;
  std::vector<std::size_t> of_batch_;
};

}  // namespace glasshead
