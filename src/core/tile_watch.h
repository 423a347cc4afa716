// Looking at attend's own tiles while they are made: the scores and the exponentials of some rows
// against some keys of one block of kBlock. Nothing is computed for it, and no bit of the result
// changes.
//
//   const TileWatch watch = [&](const SeenTile& tile) { ... };      // on the pool's threads
//   attend_watched(q, k, v, out, options, rows, watch, context);    // in f32
//
// Every pair that is allowed is seen once, in one tile; tiles of a row come in the order of their
// keys, unless its keys are cut for threads, and tiles of several rows from several threads at
// once.
#pragma once

#include <functional>

#include "core/panel_rows.h"
#include "glasshead/kv_cache.h"
#include "kernels/arithmetic.h"  // kBlock, kStart

namespace glasshead {

struct SeenTile {
  const PanelRows& rows;
  KeyRange keys;
  // Key j and row r stand at (j - keys.begin) * key_step + r * row_step.
  index_t key_step, row_step;
  const float* scores;  // scaled, capped, biased; -inf where hidden
  const float* p;       // exp(score - max[r]), 0 where hidden; after dropout
  // [rows] the largest score of the row so far, from the first key of the chunk of 1,024 on
  // (kStart: none). A row's number for a block, whoever computes it.
  const float* max;
};
using TileWatch = std::function<void(const SeenTile&)>;

// As attend (attention.h, kv_cache.h), of f32 inputs. An empty watch sees nothing.
void attend_watched(const ConstTensor<4>& q, const ConstTensor<4>& k, const ConstTensor<4>& v,
                    const MutableTensor<4>& out, const AttentionOptions& options,
                    const RowState& rows, const TileWatch& watch, const Context& context);
void attend_watched(const ConstTensor<4>& q, const KvInput& kv, const MutableTensor<4>& out,
                    const AttentionOptions& options, const RowState& rows, const TileWatch& watch,
                    const Context& context);

}  // namespace glasshead
