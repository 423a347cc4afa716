// The fused path in the compute type T, float or double: fused_f32.cc and fused_f64.cc.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <type_traits>

#include "core/context_impl.h"
#include "core/fused.h"
#include "core/kept_pairs.h"
#include "core/narrow.h"
#include "core/panel_work.h"
#include "core/rows.h"
#include "core/scale.h"
#include "core/widen.h"

namespace glasshead {

// Whether the values of a block are all finite, found out once per block by whoever needs it first.
class FiniteBlocks {
 public:
  FiniteBlocks(index_t heads, index_t blocks)
      : blocks_(blocks), known_(static_cast<std::size_t>(heads * blocks)) {}
  template <class T>
  bool ask(index_t head, index_t block, const KvBlock<T>& values, const Kernels<T>& kernels) {
    std::atomic<std::uint8_t>& at = known_[static_cast<std::size_t>(head * blocks_ + block)];
    std::uint8_t known = at.load(std::memory_order_relaxed);
    if (known == 0) {
      known = values.values_are_finite(kernels) ? 1 : 2;
      at.store(known, std::memory_order_relaxed);
    }
    return known == 1;
  }

 private:
  index_t blocks_;
  std::vector<std::atomic<std::uint8_t>> known_;  // 0 unknown, 1 finite, 2 not
};

template <class T>
class Fused {
 public:
  Fused(const FusedCall& call, const Context& context)
      : call_(call),
        context_(context.impl()),
        kernels_(kernels_of<T>(context_)),
        shape_{call.q.shape[0], call.q.shape[1], call.q.shape[2], call.kv_len},
        group_(shape_.heads / call.kv.kv_heads),
        plans_(call.options, call.query_starts, shape_),
        form_(form_of(shape_.q_len * group_, kernels_)),
        lanes_(rows_of(kernels_, form_)),
        cut_(cut_fused(shape_, call.kv.kv_heads, lanes_, context_.pool.workers(), plans_)),
        blocks_((shape_.kv_len + kBlock - 1) / kBlock),
        finite_(shape_.batch * call.kv.kv_heads, blocks_),
        scale_(scale_of(call.options, call.q.shape[3])) {
    levels_ = levels_of(cut_, shape_.kv_len);
    if (cut_.nodes > 1) {
      node_size_ = cut_.panels * (call.kv.d_v + 2) * lanes_;
      nodes_ = AlignedArray<T>(cut_.row_blocks * cut_.nodes * node_size_);
      node_has_keys_.resize(static_cast<std::size_t>(cut_.row_blocks * cut_.nodes));
    }
    if (call.options.empty_row == EmptyRow::error)
      is_empty_.resize(static_cast<std::size_t>(shape_.batch * shape_.heads * shape_.q_len));
    const RowState& state = call.rows;
    wants_rows_ = !is_empty_.empty() || state.max.data != nullptr || state.sum.data != nullptr ||
                  state.lse.data != nullptr;
  }

  EmptyRows run() {
    const auto workers = static_cast<std::size_t>(
        std::min<index_t>(context_.pool.workers(), static_cast<index_t>(cut_.items.size())));
    while (rooms_.size() < workers) rooms_.push_back(std::make_unique<Room>(*this));
    context_.pool.run(static_cast<index_t>(cut_.items.size()), [this](index_t n, int worker) {
      run_item(cut_.items[static_cast<std::size_t>(n)], *rooms_[static_cast<std::size_t>(worker)]);
    });
    if (cut_.nodes > 1) join_nodes();
    return empty_rows();
  }

 private:
  // What one worker needs.
  struct Room {
    explicit Room(const Fused& fused)
        : tile(fused.lanes_, fused.plans_[0].has_bias()),
          block(fused.call_.kv, fused.form_ == Form::rows),
          queries(fused.call_.q.dtype == dtype_of<T>()
                      ? 0
                      : static_cast<std::size_t>(fused.lanes_ * fused.call_.kv.d_k)),
          out(fused.call_.out.dtype == dtype_of<T>()
                  ? 0
                  : static_cast<std::size_t>(fused.lanes_ * fused.call_.kv.d_v)) {
      for (index_t p = 0; p < fused.cut_.panels; ++p)
        panels.push_back(std::make_unique<PanelWork<T>>(
            fused.kernels_, PanelSizes{fused.call_.kv.d_k, fused.call_.kv.d_v, fused.levels_,
                                       fused.form_, fused.call_.watch}));
      ranges.resize(panels.size());
    }
    TileRoom<T> tile;
    KvBlock<T> block;
    std::vector<std::unique_ptr<PanelWork<T>>> panels;
    std::vector<KeyRange> ranges;  // of the panels
    std::vector<T> queries, out;   // [lanes, d] where q or out is stored otherwise
  };

  void run_item(const FusedItem& item, Room& room) {
    const index_t used = start_panels(item, room);
    KeyRange all;
    for (index_t p = 0; p < used; ++p) all = united(all, room.ranges[static_cast<std::size_t>(p)]);
    bool has_keys = false;
    for (index_t chunk = item.chunk_begin; chunk < item.chunk_end; ++chunk) {
      const index_t begin = std::max(all.begin, chunk * kChunk);
      const index_t end = std::min(all.end, (chunk + 1) * kChunk);
      for (index_t j = begin; j < end; j += kBlock - j % kBlock)
        has_keys =
            run_block(item, {j, std::min(end, j - j % kBlock + kBlock)}, used, room) || has_keys;
      for (index_t p = 0; p < used; ++p)
        room.panels[static_cast<std::size_t>(p)]->end_chunk(chunk - item.chunk_begin);
    }
    for (index_t p = 0; p < used; ++p) {
      PanelWork<T>& panel = *room.panels[static_cast<std::size_t>(p)];
      panel.end();
      if (cut_.nodes == 1)
        finish(panel, room);
      else
        keep_node(item, p, panel);
    }
    if (cut_.nodes > 1)
      node_has_keys_[static_cast<std::size_t>(item.row_block * cut_.nodes + item.node)] =
          has_keys ? 1 : 0;
  }

  // How many panels the item's rows fill.
  index_t start_panels(const FusedItem& item, Room& room) {
    index_t p = 0;
    for (index_t begin = item.row_begin; begin < item.row_end; begin += lanes_, ++p) {
      const index_t end = std::min(item.row_end, begin + lanes_);
      // The last row first: under a causal mask it is the first vectors then that see the last
      // keys, and the others need not be computed there.
      PanelWork<T>& panel = *room.panels[static_cast<std::size_t>(p)];
      fill_rows(panel.rows(), item.b, item.g, group_, begin, end, Order::descending);
      const T* queries[kMostRows];
      const index_t step = fetch_queries(item, begin, end, room.queries, queries);
      panel.start(queries, step, scale_);
      room.ranges[static_cast<std::size_t>(p)] = plans_[item.b].key_range(panel.rows());
    }
    return p;
  }

  index_t fetch_queries(const FusedItem& item, index_t begin, index_t end, std::vector<T>& room,
                        const T** queries) const {
    const ConstTensor<4>& q = call_.q;
    const bool is_direct = q.dtype == dtype_of<T>();
    for_packed_rows(
        item.g, group_, begin, end, Order::descending, [&](index_t r, index_t h, index_t i) {
          const index_t at = item.b * q.strides[0] + h * q.strides[1] + i * q.strides[2];
          if (is_direct) {
            queries[r] = static_cast<const T*>(q.data) + at;
            return;
          }
          T* row = room.data() + r * q.shape[3];
          load_run(q.data, q.dtype, at, q.strides[3], q.shape[3], row);
          queries[r] = row;
        });
    return is_direct ? q.strides[3] : 1;
  }

  // Whether any panel saw a key of the block.
  bool run_block(const FusedItem& item, KeyRange keys, index_t used, Room& room) {
    bool is_loaded = false;
    for (index_t p = 0; p < used; ++p) {
      PanelWork<T>& panel = *room.panels[static_cast<std::size_t>(p)];
      const KeyRange range = room.ranges[static_cast<std::size_t>(p)];
      const KeyRange mine{std::max(keys.begin, range.begin), std::min(keys.end, range.end)};
      if (mine.is_empty()) continue;
      const TileKind kind = plans_[item.b].tile(panel.rows(), mine, room.tile.allowed);
      if (kind == TileKind::none) continue;
      if (!is_loaded) {
        const index_t first = keys.begin - keys.begin % kBlock;
        room.block.load(item.b, item.g, {first, std::min(first + kBlock, shape_.kv_len)});
        is_loaded = true;
      }
      add_tile(item, mine, kind, panel, room);
    }
    return is_loaded;
  }

  void add_tile(const FusedItem& item, KeyRange keys, TileKind kind, PanelWork<T>& panel,
                Room& room) {
    const std::uint32_t* allowed = kind == TileKind::some ? room.tile.allowed : nullptr;
    if (allowed != nullptr) {  // from the first key that somebody sees to the last
      const std::uint32_t used = lanes_of(panel.rows());
      index_t last = keys.end - keys.begin - 1;
      while ((allowed[last] & used) == 0) --last;
      index_t first = 0;
      while ((allowed[first] & used) == 0) ++first;
      keys = {keys.begin + first, keys.begin + last + 1};
      allowed += first;
    }
    Tile<T> tile{keys, allowed, nullptr, nullptr, static_cast<T>(call_.options.softcap), false};
    const TilePlan& plan = plans_[item.b];
    if (plan.has_bias()) {
      plan.template bias<T>(kernels_, panel.rows(), keys, lanes_, room.tile.bias.data());
      tile.bias = room.tile.bias.data();
    }
    if (call_.options.dropout.p > 0) {
      keep_pairs(call_.options.dropout, panel.rows(), keys, room.tile.kept);
      tile.kept = room.tile.kept;
    }
    tile.selects_values =
        allowed != nullptr && !finite_.ask(item.b * call_.kv.kv_heads + item.g, keys.begin / kBlock,
                                           room.block, kernels_);
    panel.add(tile, room.block, room.tile);
  }

  // --- results ---

  void finish(PanelWork<T>& panel, Room& room) {
    const PanelRows& rows = panel.rows();
    if (!call_.options.sinks.empty()) {
      T sinks[kMostRows];
      for (index_t r = 0; r < rows.count; ++r)
        sinks[r] = static_cast<T>(call_.options.sinks[static_cast<std::size_t>(rows.h[r])]);
      panel.add_sinks(sinks);
    }
    if (wants_rows_)
      for (index_t r = 0; r < rows.count; ++r) store_row(rows, r, panel.max()[r], panel.sum()[r]);
    if (call_.kv.d_v > 0) store_out(panel, room.out);
  }

  void store_row(const PanelRows& rows, index_t r, T max, T sum) {
    const std::array<index_t, 3> at{rows.b, rows.h[r], rows.i[r]};
    const auto store = [&at](const MutableTensor<3>& tensor, T x) {
      if (tensor.data != nullptr) tensor.store_at(at, static_cast<double>(canonical(x)));
    };
    const bool is_empty = sum == 0;
    if (is_empty && !is_empty_.empty())
      is_empty_[static_cast<std::size_t>((at[0] * shape_.heads + at[1]) * shape_.q_len + at[2])] =
          1;
    if (is_empty) {
      max = kNothing<T>;
    } else if (sum != sum && max != std::numeric_limits<T>::infinity()) {
      max = sum;
    }
    store(call_.rows.max, max);
    store(call_.rows.sum, sum);
    if (call_.rows.lse.data != nullptr) store(call_.rows.lse, log_sum_exp(max, sum));
  }

  void store_out(PanelWork<T>& panel, std::vector<T>& room) {
    const PanelRows& rows = panel.rows();
    const MutableTensor<4>& out = call_.out;
    const bool is_direct = out.dtype == dtype_of<T>();
    const index_t d_v = call_.kv.d_v;
    T* to[kMostRows];
    index_t first[kMostRows];
    for (index_t r = 0; r < rows.count; ++r) {
      first[r] = rows.b * out.strides[0] + rows.h[r] * out.strides[1] + rows.i[r] * out.strides[2];
      to[r] = is_direct ? static_cast<T*>(out.data) + first[r] : room.data() + r * d_v;
    }
    const double p = call_.options.dropout.p;
    const T kept = p > 0 ? static_cast<T>(1.0 / (1.0 - p)) : T(1);
    panel.finish(kept, to, is_direct ? out.strides[3] : 1);
    if (is_direct) return;
    for (index_t r = 0; r < rows.count; ++r)
      store_run(to[r], out.data, out.dtype, first[r], out.strides[3], d_v);
  }

  EmptyRows empty_rows() const {
    EmptyRows empty;
    index_t n = 0;
    for (const std::uint8_t is_empty : is_empty_) {
      if (is_empty != 0)
        empty.add(n / (shape_.heads * shape_.q_len), n / shape_.q_len % shape_.heads,
                  n % shape_.q_len);
      ++n;
    }
    return empty;
  }

  // --- items that hold a part of their rows' chunks ---

  T* node_at(index_t row_block, index_t node, index_t panel) {
    return nodes_.data() + (row_block * cut_.nodes + node) * node_size_ +
           panel * (call_.kv.d_v + 2) * lanes_;
  }

  void keep_node(const FusedItem& item, index_t p, PanelWork<T>& panel) {
    std::copy_n(panel.max(), panel.state_size(), node_at(item.row_block, item.node, p));
  }

  void join_nodes() {
    std::vector<const FusedItem*> firsts(static_cast<std::size_t>(cut_.row_blocks));
    for (const FusedItem& item : cut_.items) {
      if (item.node == 0) firsts[static_cast<std::size_t>(item.row_block)] = &item;
    }
    context_.pool.run(cut_.row_blocks, [&](index_t n, int worker) {
      Room& room = *rooms_[static_cast<std::size_t>(worker)];
      const FusedItem& item = *firsts[static_cast<std::size_t>(n)];
      const index_t used = start_panels(item, room);
      for (index_t p = 0; p < used; ++p) {
        PanelWork<T>& panel = *room.panels[static_cast<std::size_t>(p)];
        for (index_t node = 0; node < cut_.nodes; ++node) {
          if (node_has_keys_[static_cast<std::size_t>(n * cut_.nodes + node)] != 0)
            panel.take(node_at(n, node, p), node);
          else
            panel.end_chunk(node);
        }
        panel.end();
        finish(panel, room);
      }
    });
  }

  const FusedCall& call_;
  const Context::Impl& context_;
  const Kernels<T>& kernels_;
  PairShape shape_;
  index_t group_;
  PlanOfBatch plans_;
  Form form_;
  index_t lanes_;  // rows of a PanelWork
  FusedCut cut_;
  index_t blocks_;
  FiniteBlocks finite_;
  double scale_;
  int levels_ = 1;
  std::vector<std::unique_ptr<Room>> rooms_;
  index_t node_size_ = 0;
  AlignedArray<T> nodes_;                    // [row_blocks, nodes, panels, d_v + 2, lanes]
  std::vector<std::uint8_t> node_has_keys_;  // [row_blocks, nodes]
  std::vector<std::uint8_t> is_empty_;       // [batch, heads, q_len] where asked for
  bool wants_rows_ = false;                  // somebody asked for something of each row
};

// Checked before, and not empty.
template <class T>
EmptyRows run_fused_as(const FusedCall& call, const Context& context) {
  return Fused<T>(call, context).run();
}

}  // namespace glasshead
