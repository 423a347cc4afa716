// How the gradients of one call are cut into items that threads take.
//
//   BackwardCut cut{plan, shape, kv_heads, lanes, panels};
//   for (const std::vector<BackwardItem>& items : cut.passes(threads)) ...   // one after the other
//
// Where there are heads enough for the threads, an item is a kv head of one batch entry and makes
// dq, dk and dv (five products a tile). Where there aren't, items are runs of rows that make dq,
// and runs of key blocks that make dk and dv (seven products).
#pragma once

#include <vector>

#include "core/backward_rows.h"
#include "core/tile_plan.h"

namespace glasshead {

struct BackwardItem {
  PackedRows rows;
  index_t block_begin = 0, block_end = 0;  // of 128 keys
  bool wants_dq = false, wants_dk_dv = false;
  index_t bias_part = -1;  // >= 0: wants the gradient of the bias, and nothing else
  double cost = 0;
};

struct BackwardCut {
  const TilePlan& plan;
  PairShape shape;
  index_t kv_heads;
  index_t lanes, panels;  // rows of a panel, panels that share a block of keys

  // Items of a pass may run at the same time, longest first.
  std::vector<std::vector<BackwardItem>> passes(index_t threads) const;

 private:
  void sort_by_cost(std::vector<BackwardItem>& items) const;
};

// The keys that any of the rows may attend.
KeyRange range_of(const TilePlan& plan, const PackedRows& rows, index_t group, index_t lanes);

}  // namespace glasshead
