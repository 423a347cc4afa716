// What the fused path asks of masks and biases: a tile at a time. A tile is a panel of up to 32
// query rows, each with its own head and position, against a run of keys inside one block of 128.
//
//   TilePlan plan(options, shape);
//   PanelRows rows{b, count, heads, positions...};
//   const KeyRange keys = plan.key_range(rows);                     // nothing outside is allowed
//   switch (plan.tile(rows, block, bits)) { none: skip; all: no mask; some: use bits }
//
// Agrees with MaskPlan and BiasPlan pair by pair (property tests tie them). The options must have
// passed `check`; they and their data must outlive the plan.
#pragma once

#include <cstdint>

#include "core/bias_plan.h"
#include "core/mask_plan.h"
#include "core/relative_runs.h"
#include "core/tile_mask.h"
#include "kernels/kernel_set.h"

namespace glasshead {

enum class TileKind : std::uint8_t { none, all, some };

class TilePlan {
 public:
  TilePlan(const AttentionOptions& options, const PairShape& shape);

  // Outside it no row may attend to any key: the union of the rows' key ranges
  // (MaskPlan::key_range), where keys are told apart by documents from the first key of the rows'
  // own to the last.
  KeyRange key_range(const PanelRows& rows) const;

  // none: no row may attend to any of `keys`; all: every row to every key; some: bit r of
  // bits[j - keys.begin] says whether row r may attend to key j (bits at and above count are 1).
  // `keys` lies in one block of 128. `bits` is written only for `some`. Cheap where intervals
  // decide (causal, window, lengths, prefix): no pair is asked one by one.
  TileKind tile(const PanelRows& rows, KeyRange keys, std::uint32_t* bits) const;

  bool has_bias() const;
  // bias[(j - keys.begin) * lanes + r] = BiasPlan::at<T>(b, h[r], i[r], j), for rows below count;
  // where a dense bias is -inf (a hidden pair) that or any finite number may stand. The other lanes
  // get finite numbers or are left alone. lanes: a multiple of the kernels' width, not below count.
  template <class T>
  void bias(const Kernels<T>& kernels, const PanelRows& rows, KeyRange keys, index_t lanes,
            T* bias) const;

  const MaskPlan& mask() const { return mask_; }

 private:
  KeyRange interval_range(const PanelRows& rows) const;

  MaskPlan mask_;
  BiasPlan bias_;
  std::vector<HidingElements> elements_;  // explicit masks, then dense biases
  std::vector<SegmentRuns> segments_;
  std::vector<RelativeRuns> relative_;  // of T5 terms, in their order
};

}  // namespace glasshead
