// The fused path over some query rows of one kv head, against blocks of 128 keys as they come:
// their queries, the running state of the chunk at hand, and the tree of the chunks before it. Two
// forms of the same arithmetic, to the bit: a panel, with one row per vector lane, and for fewer
// rows than fill vectors the form of kernels/row_kernels.h, with keys in the lanes.
//
//   PanelWork<T> work(kernels, {d_k, d_v, levels, form});
//   work.rows() = rows;
//   work.start(queries, step, scale);
//   for (each chunk) { for (each block) work.add(tile, block, room);  work.end_chunk(c); }
//   work.end();
//   work.finish(kept, out, step);
#pragma once

#include <cstdint>
#include <vector>

#include "core/chunk_tree.h"
#include "core/kv_source.h"
#include "core/scratch.h"
#include "core/tile_plan.h"
#include "core/tile_watch.h"
#include "kernels/kernel_set.h"

namespace glasshead {

enum class Form : std::uint8_t {
  panel,  // lanes are query rows
  rows    // lanes are keys, then value elements
};

// How many rows of a form one PanelWork holds.
template <class T>
index_t rows_of(const Kernels<T>& kernels, Form form) {
  return form == Form::panel ? kernels.lanes : kPanelKeys;
}

// The form for so many packed rows of a kv head: few leave most lanes of a panel empty.
template <class T>
Form form_of(index_t rows, const Kernels<T>& kernels) {
  return rows < kernels.rows_below ? Form::rows : Form::panel;
}

// Room that one worker reuses for every tile.
template <class T>
struct TileRoom {
  Scratch<T> scores;          // [kBlock, lanes] or [rows, kBlock]
  AlignedArray<T> bias;       // [kBlock, lanes]; lanes not in use hold numbers
  Scratch<T> new_max, alpha;  // [lanes]
  std::uint32_t allowed[kBlock];
  std::uint32_t kept[kBlock];
  std::vector<T> seen;  // [kBlock, lanes] or [rows, kBlock]: scores, where somebody looks

  TileRoom(index_t lanes, bool has_bias)
      : scores(kBlock * lanes), bias(has_bias ? kBlock * lanes : 0), new_max(lanes), alpha(lanes) {}
};

struct PanelSizes {
  index_t d_k = 0, d_v = 0;
  int levels = 1;  // of the chunk tree
  Form form = Form::panel;
  const TileWatch* watch = nullptr;  // in f32 alone
};

// A run of keys of one block, for the rows of a PanelWork.
template <class T>
struct Tile {
  KeyRange keys;                 // at least one pair is allowed
  const std::uint32_t* allowed;  // [keys] or null: every pair
  const std::uint32_t* kept;     // [keys] or null: nothing is dropped
  const T* bias;                 // [keys, lanes] or null
  T softcap;
  bool selects_values;  // some value of the block is not finite, and `allowed` is given
};

template <class T>
class PanelWork {
 public:
  PanelWork(const Kernels<T>& kernels, const PanelSizes& sizes);

  // Takes the queries of the rows, queries[r][d * step].
  void start(const T* const* queries, index_t step, double scale);

  void add(const Tile<T>& tile, const KvBlock<T>& block, TileRoom<T>& room);
  void end_chunk(index_t chunk);            // chunks in ascending order, none left out
  void take(const T* state, index_t node);  // a node computed elsewhere, in place of a chunk
  void end();                               // the state is now that of all chunks
  void add_sinks(const T* sinks);           // [rows]; after end
  void finish(T kept, T* const* out, index_t step);  // out[r][d * step]

  PanelRows& rows() { return rows_; }  // to be filled before `start`
  const PanelRows& rows() const { return rows_; }
  // The state: max [lanes], sum [lanes], then the weighted sums; state_size() numbers.
  const T* max() { return slot(current_); }
  const T* sum() { return slot(current_) + lanes_; }
  index_t state_size() const { return (sizes_.d_v + 2) * lanes_; }

 private:
  T* slot(int n) { return states_.data() + n * state_size(); }
  PanelState<T> panel(int n) { return {slot(n), slot(n) + lanes_, slot(n) + 2 * lanes_}; }
  RowsState<T> few(int n) { return {slot(n), slot(n) + lanes_, slot(n) + 2 * lanes_}; }
  void reset(int n);
  void reset_rows(int n);  // the maxima and sums alone
  void merge(int x, int y);
  void add_panel(const Tile<T>& tile, const KvBlock<T>& block, TileRoom<T>& room);
  void add_rows(const Tile<T>& tile, const KvBlock<T>& block, TileRoom<T>& room);
  bool is_watched() const { return sizes_.watch != nullptr && sizeof(T) == sizeof(float); }
  void keep_scores(KeyRange keys, TileRoom<T>& room) const;
  void show(KeyRange keys, const TileRoom<T>& room) const;

  const Kernels<T>& kernels_;
  PanelSizes sizes_;
  index_t lanes_;  // rows there is room for
  PanelRows rows_;
  index_t vectors_ = 0;
  Scratch<T> queries_;  // [d_k, lanes] or [rows, d_k]
  Scratch<T> states_;   // [levels + 2, state_size]
  std::vector<int> free_;
  int current_ = 0;
  bool has_keys_ = false;  // in the chunk at hand, whose state is set only then
  ChunkTree tree_;
};

}  // namespace glasshead
