// The fused path: attention without a matrix of scores, in the order of `arithmetic/1`. Work is cut
// into items (a few panels of query rows of one kv head, and where there are fewer items than
// threads also a run of chunks of keys), which the context's threads take from one queue, head
// by head, of each the longest first. How it is cut changes no bit.
//
//   const EmptyRows empty = run_fused(call, context);
#pragma once

#include <vector>

#include "core/kv_source.h"
#include "core/plan_of_batch.h"
#include "core/tile_watch.h"
#include "core/validate.h"
#include "glasshead/attention.h"

namespace glasshead {

struct FusedCall {
  const ConstTensor<4>& q;
  const KvSource& kv;
  index_t kv_len;  // of the longest sequence; shorter ones have key lengths in their mask
  const AttentionOptions& options;
  const MutableTensor<4>& out;
  const RowState& rows;
  std::vector<index_t> query_starts = {};  // [batch], or empty: options.query_start
  const TileWatch* watch = nullptr;        // in f32 alone; null: nobody looks
};

// Checked before. Returns the rows without a key where options.empty_row asks for them.
EmptyRows run_fused(const FusedCall& call, const Context& context);
// In one compute type each, so that a program that computes in one alone may link its own function
// in the other's place. No size of q is 0.
EmptyRows run_fused_f32(const FusedCall& call, const Context& context);
EmptyRows run_fused_f64(const FusedCall& call, const Context& context);

// How a call is cut: for the driver, and for plan_attend to tell.
struct FusedItem {
  index_t b = 0, g = 0;
  index_t row_begin = 0, row_end = 0;      // packed rows: q_len * group of them, row / group is i
  index_t chunk_begin = 0, chunk_end = 0;  // chunks of 1,024 keys
  index_t node = 0;                        // chunk_begin / chunks per node
  index_t row_block = 0;                   // which (b, g, row_begin) this is
  index_t cost = 0;                        // keys times rows, at most
};
struct FusedCut {
  index_t panels = 1;       // of an item, at most
  index_t node_chunks = 0;  // chunks of a node, a power of two; 0: items cover all their chunks
  index_t row_blocks = 0, nodes = 1;
  std::vector<FusedItem> items;  // in the order in which they are handed out
};
FusedCut cut_fused(const PairShape& shape, index_t kv_heads, index_t lanes, int threads,
                   const PlanOfBatch& plans);

// Of the chunk tree that an item needs, and the joining of nodes with it.
int levels_of(const FusedCut& cut, index_t kv_len);

}  // namespace glasshead
