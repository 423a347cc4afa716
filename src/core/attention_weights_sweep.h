// Weights tile by tile: the scores of query rows again, exp(s - max) from each row's final state.
// Rows of one head are taken in groups of a few panels, keys in blocks of 128 in order.
//
//   WeightSweep<T> sweep({q, k, options, rows, range}, context, row_step);
//   sweep.run([&](int worker, const RowGroup& group, auto& tiles) { ... });
//
// run calls visit(worker, group, room) once per group, on the pool's threads; the groups of
// row_step rows (counted from the range's first) are visited by one thread, in order.
// room.for_tiles walks the group's blocks in order. Where a visitor may, and there are fewer groups
// than threads want, a group's keys are cut too, into nodes: runs of 2^n chunks. A row's state, if
// it is not given, is then that of its nodes merged in the tree of its chunks, so that the bits
// stay.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "core/context_impl.h"
#include "core/fused.h"
#include "core/panel_work.h"
#include "core/rows.h"

namespace glasshead {

struct WeightCall {
  const ConstTensor<4>& q;
  const ConstTensor<4>& k;
  const AttentionOptions& options;
  const RowState& rows;  // max and sum, or neither
  RowRange range;
  std::optional<KeyRange> keys = std::nullopt;  // these alone are walked
};

// Rows [begin, end) of query head h against keys [keys.begin, keys.end).
struct RowGroup {
  index_t b = 0, h = 0;
  index_t begin = 0, end = 0;
  KeyRange keys;
  index_t number = 0, node = 0;  // of the rows among those of all groups, and of their keys
  index_t count() const { return end - begin; }
};

// Whether one row's keys may go to several threads.
enum class RowKeys : std::uint8_t { together, apart };

// exp(s - max) of a panel's rows against some keys of one block, at least one of them allowed.
template <class T>
struct WeightTile {
  index_t first = 0, count = 0;  // rows of the group: [first, first + count)
  KeyRange keys;
  index_t lanes = 0;
  const T* p = nullptr;                    // [keys, lanes]; 0 where hidden
  const std::uint32_t* allowed = nullptr;  // [keys] bit per row, or null: every pair
  bool is_allowed(index_t n, index_t r) const {
    return allowed == nullptr || ((allowed[n] >> r) & 1) != 0;
  }
};

template <class T>
class WeightSweep {
 public:
  // What one worker needs, and what a visitor sees of a group.
  class Room {
   public:
    explicit Room(WeightSweep& sweep);

    // sums()[n]: what divides row n of the group; 1 where nothing is in the row.
    const std::vector<T>& sums() const { return sums_; }
    bool is_empty_row(index_t n) const { return is_empty_[static_cast<std::size_t>(n)] != 0; }

    // Calls tile(WeightTile) for each panel's share of a block, then end_block(keys), block by
    // block in order, from the group's first visible key to its last.
    template <class Tile, class EndBlock>
    void for_tiles(const Tile& tile, const EndBlock& end_block) {
      const KeyRange all = range_of_group();
      for (index_t j = all.begin; j < all.end; j += kBlock - j % kBlock) {
        const KeyRange keys{j, std::min(all.end, j - j % kBlock + kBlock)};
        has_block_ = false;
        for (index_t n = 0; n < panels_used_; ++n) {
          WeightTile<T> made;
          if (make_tile(n, keys, made)) tile(made);
        }
        end_block(keys);
      }
    }

   private:
    friend class WeightSweep;
    struct Panel {
      PanelRows rows;
      KeyRange keys;
      index_t vectors = 0;
      bool has_nan = false;  // some row's state is
      AlignedArray<T> queries, max;
    };
    void start(const RowGroup& group);
    // The states of the group's rows over its own keys, and of all its nodes together.
    void keep_node(const RowGroup& group);
    void join_nodes(const RowGroup& group);
    void start_panel(Panel& panel, const RowGroup& group, index_t begin);
    // The panel's rows, and their queries: query r of element d is queries[r][d * step].
    index_t take_rows(Panel& panel, const RowGroup& group, index_t begin, const T** queries);
    void find_state(const Panel& panel, const T* const* queries, index_t step, T* max, T* sum);
    bool add_chunks(const Panel& panel, KeyRange keys);
    void end_state(const Panel& panel, T* max, T* sum);
    void take_state(Panel& panel, const T* max, const T* sum, index_t first);
    KeyRange range_of_group() const;
    // The tile's keys that some row sees, with bits, bias; false: none.
    bool plan_tile(const Panel& panel, KeyRange keys, Tile<T>& tile);
    bool make_tile(index_t n, KeyRange keys, WeightTile<T>& made);
    void load_block(index_t first_key);

    WeightSweep& sweep_;
    RowGroup group_;
    TileRoom<T> tile_;
    KvBlock<T> block_;
    bool has_block_ = false;
    std::vector<T> query_room_;
    std::vector<Panel> panels_;
    index_t panels_used_ = 0;
    AlignedArray<T> new_max_, ignored_;
    std::unique_ptr<PanelWork<T>> work_;  // where states are not given
    std::vector<T> sums_;
    std::vector<std::uint8_t> is_empty_;
  };

  WeightSweep(const WeightCall& call, const Context& context, index_t row_step,
              RowKeys row_keys = RowKeys::together);

  // visit(worker, group, room)
  template <class Visit>
  void run(const Visit& visit) {
    while (rooms_.size() < workers()) rooms_.push_back(std::make_unique<Room>(*this));
    if (has_node_states()) find_states();
    context_.pool.run(static_cast<index_t>(items_.size()), [&](index_t n, int worker) {
      const RowGroup& item = items_[static_cast<std::size_t>(n)];
      Room& room = *rooms_[static_cast<std::size_t>(worker)];
      for (index_t i = item.begin; i < item.end; i += group_rows_) {
        RowGroup group = item;
        group.begin = i;
        group.end = std::min(item.end, i + group_rows_);
        room.start(group);
        visit(worker, group, room);
      }
    });
  }
  std::size_t workers() const {
    return static_cast<std::size_t>(
        std::min<index_t>(context_.pool.workers(), static_cast<index_t>(items_.size())));
  }
  index_t group_rows() const { return group_rows_; }  // of a group, at most

 private:
  bool has_node_states() const { return nodes_ > 1 && call_.rows.max.data == nullptr; }
  void cut_keys();     // items, each one group, into nodes
  void find_states();  // of all rows, node by node
  // max and sum [2, lanes] of a panel of a group over one node; whether it saw a key there.
  T* node_state(const RowGroup& group, index_t node, index_t panel);
  std::uint8_t& node_has_keys(const RowGroup& group, index_t node, index_t panel);
  T* row_state(const RowGroup& group, index_t panel);  // max and sum [2, lanes] over all keys

  const WeightCall& call_;
  const Context::Impl& context_;
  const Kernels<T>& kernels_;
  PairShape shape_;
  index_t head_group_;  // query heads of a kv head
  KvSource kv_;
  TilePlan plan_;
  double scale_;
  int levels_ = 1;
  index_t group_rows_;
  std::vector<RowGroup> items_;
  index_t nodes_ = 1;  // that each item's keys are cut into
  index_t groups_ = 0;
  std::vector<T> node_states_, row_states_;  // [groups, nodes, panels, 2, lanes], without nodes
  std::vector<std::uint8_t> node_has_keys_;  // [groups, nodes, panels]
  std::vector<std::unique_ptr<Room>> rooms_;
};

}  // namespace glasshead
