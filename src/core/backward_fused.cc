// The fused gradients. Every tile (a panel of query rows by a block of 128 keys) costs two products
// to recompute its weights and the gradients of its scores, and one for each of dq, dk, dv that the
// item wants:
//
//     S^T = K Q^T,  dP^T = V dO^T  ->  P^T, dS^T         dQ^T += K^T dS^T
//                                                       dV += P^T dO,  dK += dS^T Q
//
// backward_cut.h says what the items are. Each number is a chain over the same rows or keys in the
// same order, however they are cut.
#include <algorithm>
#include <memory>

#include "core/backward_cut.h"
#include "core/backward_rows.h"
#include "core/backward_store.h"
#include "core/bias_gradients.h"
#include "core/context_impl.h"
#include "core/fused.h"
#include "core/kept_pairs.h"
#include "core/rows.h"
#include "core/scale.h"
#include "core/tile_plan.h"

namespace glasshead {
namespace {

constexpr index_t kRowsOfGroup = 96;  // rows whose sums over dk and dv stay in registers

// Where the tiles of a block begin and end: between two neighbours every panel has all keys or
// none.
template <class T>
std::vector<KeyRange> intervals_of(BackwardRows<T>& group) {
  std::vector<index_t> edges;
  for (index_t p = 0; p < group.used(); ++p) {
    const KeyRange keys = group.panel(p).keys;
    if (keys.is_empty()) continue;
    edges.push_back(keys.begin);
    edges.push_back(keys.end);
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  std::vector<KeyRange> list;
  for (std::size_t n = 1; n < edges.size(); ++n) list.push_back({edges[n - 1], edges[n]});
  return list;
}

template <class T>
class BackwardRun {
 public:
  BackwardRun(const BackwardCall& call, const Context& context)
      : call_(call),
        context_(context.impl()),
        kernels_(kernels_of<T>(context_)),
        shape_{call.q.shape[0], call.q.shape[1], call.q.shape[2], call.kv_len},
        plan_(call.options, shape_),
        scale_(scale_of(call.options, call.q.shape[3])),
        lanes_(kernels_.lanes),
        panels_(std::max<index_t>(1, kRowsOfGroup / lanes_)),
        blocks_((call.kv_len + kBlock - 1) / kBlock),
        numbers_(call, context_.pool),
        bias_(call.options, shape_, call.gradients.d_bias) {}

  void run() {
    const BackwardCut cut{plan_, shape_, call_.kv.kv_heads, lanes_, panels_};
    for (const std::vector<BackwardItem>& items : cut.passes(context_.pool.workers()))
      run_items(items);
    if (bias_.is_wanted()) run_items(bias_items());
    bias_.store();
    if (call_.gradients.d_sinks.data != nullptr) differentiate_sinks();
  }

 private:
  // What one worker needs, for the items of one pass.
  struct Room {
    Room(const BackwardRun& run, const BackwardItem& item)
        : group(run.kernels_, {run.call_.kv.d_k, run.call_.kv.d_v, run.panels_, item.wants_dq}),
          block(run.call_.kv, false),
          bias(run.plan_.has_bias() ? kBlock * run.lanes_ : 0),
          unused(run.lanes_),
          ones(run.lanes_),
          finite(static_cast<std::size_t>(run.blocks_)) {
      std::fill_n(ones.data(), run.lanes_, T(1));
      if (item.wants_dq) dq_rows.resize(static_cast<std::size_t>(run.lanes_ * run.call_.kv.d_k));
      if (!item.wants_dk_dv) return;
      const index_t keys = (item.block_end - item.block_begin) * kBlock;
      dk = AlignedArray<T>(keys * group.padded_d_k());
      dv = AlignedArray<T>(keys * group.padded_d_v());
    }
    BackwardRows<T> group;
    KvBlock<T> block;
    AlignedArray<T> bias;  // [kBlock, lanes]
    AlignedArray<T> unused, ones;
    AlignedArray<T> dk, dv;  // [keys of an item, padded d]
    std::vector<T> dq_rows;  // [lanes, d_k]
    std::uint32_t allowed[kBlock], kept[kBlock];
    index_t head = -1;                 // whose blocks `finite` speaks of
    std::vector<std::uint8_t> finite;  // [blocks] of the keys: 0 unknown, 1 finite, 2 not
  };

  // --- items ---

  std::vector<BackwardItem> bias_items() const {
    std::vector<BackwardItem> items;
    for (index_t part = 0; part < bias_.parts(); ++part) {
      BackwardItem item;
      item.block_begin = part * bias_.blocks_of_part();
      item.block_end = std::min(blocks_, item.block_begin + bias_.blocks_of_part());
      item.bias_part = part;
      items.push_back(item);
    }
    return items;
  }

  void run_items(const std::vector<BackwardItem>& items) {
    const auto count = static_cast<index_t>(items.size());
    std::vector<std::unique_ptr<Room>> rooms;
    for (index_t n = 0; n < std::min<index_t>(context_.pool.workers(), count); ++n)
      rooms.push_back(std::make_unique<Room>(*this, largest_of(items)));
    context_.pool.run(count, [&](index_t n, int worker) {
      const BackwardItem& item = items[static_cast<std::size_t>(n)];
      Room& room = *rooms[static_cast<std::size_t>(worker)];
      if (item.bias_part < 0)
        run_item(item, room);
      else
        run_bias_item(item, room);
    });
  }

  // Items of a pass are alike but for the last of a head, which may be shorter.
  static const BackwardItem& largest_of(const std::vector<BackwardItem>& items) {
    return *std::max_element(items.begin(), items.end(),
                             [](const BackwardItem& x, const BackwardItem& y) {
                               return x.block_end - x.block_begin < y.block_end - y.block_begin;
                             });
  }

  void run_item(const BackwardItem& item, Room& room) {
    const KeyRange keys{item.block_begin * kBlock, std::min(call_.kv_len, item.block_end * kBlock)};
    if (item.wants_dk_dv) {
      std::fill_n(room.dk.data(), (keys.end - keys.begin) * room.group.padded_d_k(), T(0));
      std::fill_n(room.dv.data(), (keys.end - keys.begin) * room.group.padded_d_v(), T(0));
    }
    for_groups(item, item.rows, room, [&](KeyRange block) { add_block(item, block, room); });
    if (!item.wants_dk_dv) return;
    store_keys(item, keys, room.dk.data(), room.group.padded_d_k(), call_.gradients.dk);
    store_keys(item, keys, room.dv.data(), room.group.padded_d_v(), call_.gradients.dv);
  }

  void run_bias_item(const BackwardItem& item, Room& room) {
    for (index_t b = 0; b < shape_.batch; ++b) {
      for (index_t g = 0; g < call_.kv.kv_heads; ++g) {
        for_groups(item, {b, g, 0, numbers_.rows()}, room, [&](KeyRange) {
          for (index_t p = 0; p < room.group.used(); ++p) {
            const BackwardPanel<T>& panel = room.group.panel(p);
            bias_.add_tile(panel.rows, panel.keys, lanes_, panel.scores.data(), item.bias_part);
          }
        });
      }
    }
  }

  // For each group of the rows: f(block) for the blocks of keys of which a row sees something, its
  // tiles made.
  template <class F>
  void for_groups(const BackwardItem& item, const PackedRows& rows, Room& room, const F& f) {
    const index_t step = panels_ * lanes_;
    for (index_t begin = rows.begin; begin < rows.end; begin += step) {
      const PackedRows some{rows.b, rows.g, begin, std::min(rows.end, begin + step)};
      const KeyRange seen = range_of(plan_, some, shape_.heads / call_.kv.kv_heads, lanes_);
      const index_t first = std::max(item.block_begin, seen.begin / kBlock);
      const index_t last = std::min(item.block_end, (seen.end + kBlock - 1) / kBlock);
      if (!item.wants_dq && (seen.is_empty() || first >= last)) continue;
      room.group.load(call_, numbers_, scale_, some);
      for (index_t p = 0; p < room.group.used(); ++p)
        room.group.panel(p).range = plan_.key_range(room.group.panel(p).rows);
      if (!seen.is_empty()) {
        for (index_t block = first; block < last; ++block) {
          const KeyRange keys{block * kBlock, std::min(call_.kv_len, (block + 1) * kBlock)};
          if (make_tiles(item, keys, room)) f(keys);
          if (item.wants_dq && (block + 1) % (kChunk / kBlock) == 0) end_chunk(room);
        }
      }
      if (item.wants_dq) store_queries(room);
    }
  }

  // --- tiles ---

  // Whether any panel has one.
  bool make_tiles(const BackwardItem& item, KeyRange block, Room& room) {
    bool is_loaded = false;
    for (index_t p = 0; p < room.group.used(); ++p) {
      BackwardPanel<T>& panel = room.group.panel(p);
      KeyRange keys{std::max(block.begin, panel.range.begin), std::min(block.end, panel.range.end)};
      panel.keys = {};
      if (panel.range.is_empty() || keys.is_empty()) continue;
      const TileKind kind = plan_.tile(panel.rows, keys, room.allowed);
      if (kind == TileKind::none) continue;
      if (!is_loaded) {
        room.block.load(panel.rows.b, room_head(panel), block);
        is_loaded = true;
      }
      const std::uint32_t* allowed = kind == TileKind::some ? room.allowed : nullptr;
      if (allowed != nullptr) {  // from the first key that somebody sees to the last
        const std::uint32_t used = lanes_of(panel.rows);
        while ((allowed[keys.end - keys.begin - 1] & used) == 0) --keys.end;
        while ((*allowed & used) == 0) {
          ++allowed;
          ++keys.begin;
        }
      }
      panel.keys = keys;
      make_tile(item, allowed, panel, room);
    }
    return is_loaded;
  }

  index_t room_head(const BackwardPanel<T>& panel) const {
    return panel.rows.h[0] / (shape_.heads / call_.kv.kv_heads);
  }

  void make_tile(const BackwardItem& item, const std::uint32_t* allowed, BackwardPanel<T>& panel,
                 Room& room) {
    const KeyRange keys = panel.keys;
    room.block.for_keys(keys, [&](const StridedRows<T>& k, index_t first, index_t count) {
      kernels_.scores({panel.queries.data(), call_.kv.d_k, k, count, T(0), nullptr, nullptr,
                       panel.vectors, panel.weights.data() + (first - keys.begin) * lanes_,
                       room.unused.data()});
    });
    room.block.for_values(keys, [&](const StridedRows<T>& v, index_t first, index_t count) {
      kernels_.scores({panel.d_out.data(), call_.kv.d_v, v, count, T(0), nullptr, nullptr,
                       panel.vectors, panel.scores.data() + (first - keys.begin) * lanes_,
                       room.unused.data()});
    });
    const T* bias = nullptr;
    if (plan_.has_bias()) {
      plan_.template bias<T>(kernels_, panel.rows, keys, lanes_, room.bias.data());
      bias = room.bias.data();
    }
    const double p = call_.options.dropout.p;
    if (p > 0) keep_pairs(call_.options.dropout, panel.rows, keys, room.kept);
    kernels_.backward.differentiate({panel.weights.data(), panel.scores.data(),
                                     keys.end - keys.begin, static_cast<T>(call_.options.softcap),
                                     item.bias_part < 0, bias, allowed, p > 0 ? room.kept : nullptr,
                                     static_cast<T>(1.0 / (1.0 - p)), panel.vectors,
                                     panel.max.data(), panel.inverse.data(), panel.mean.data()});
  }

  // --- products of a block ---

  void add_block(const BackwardItem& item, KeyRange block, Room& room) {
    if (item.wants_dq) {
      const bool is_finite = keys_are_finite(item.rows, block, room);
      for (index_t p = 0; p < room.group.used(); ++p)
        if (!room.group.panel(p).keys.is_empty()) add_dq(is_finite, room.group.panel(p), room);
    }
    if (!item.wants_dk_dv) return;
    const index_t d_k = room.group.padded_d_k(), d_v = room.group.padded_d_v();
    std::vector<OuterPanel<T>> weights(static_cast<std::size_t>(panels_)), scores(weights);
    for (const KeyRange& keys : intervals_of(room.group)) {
      index_t count = 0;
      bool skips_zeros = false;
      for (index_t p = 0; p < room.group.used(); ++p) {
        BackwardPanel<T>& panel = room.group.panel(p);
        if (panel.keys.begin > keys.begin || panel.keys.end < keys.end) continue;
        const index_t first = (keys.begin - panel.keys.begin) * lanes_;
        const auto at = static_cast<std::size_t>(count++);
        weights[at] = {panel.weights.data() + first, panel.d_out_rows.data(), panel.rows.count};
        scores[at] = {panel.scores.data() + first, panel.query_rows.data(), panel.rows.count};
        skips_zeros = skips_zeros || !panel.is_finite;
      }
      const index_t row = keys.begin - item.block_begin * kBlock;
      kernels_.backward.outer({weights.data(), count, keys.end - keys.begin, d_v, skips_zeros,
                               room.dv.data() + row * d_v});
      kernels_.backward.outer({scores.data(), count, keys.end - keys.begin, d_k, skips_zeros,
                               room.dk.data() + row * d_k});
    }
  }

  bool keys_are_finite(const PackedRows& rows, KeyRange block, Room& room) const {
    const index_t head = rows.b * call_.kv.kv_heads + rows.g;
    if (room.head != head) {
      std::fill(room.finite.begin(), room.finite.end(), std::uint8_t{0});
      room.head = head;
    }
    std::uint8_t& known = room.finite[static_cast<std::size_t>(block.begin / kBlock)];
    if (known == 0) known = room.block.keys_are_finite(kernels_) ? 1 : 2;
    return known == 1;
  }

  // dq / scale += k ds. Where a key is not finite, pairs without a gradient are left out.
  void add_dq(bool is_finite, BackwardPanel<T>& panel, Room& room) {
    const KeyRange keys = panel.keys;
    const std::uint32_t* selected = nullptr;
    if (!is_finite) {
      for (index_t n = 0; n < keys.end - keys.begin; ++n) {
        std::uint32_t bits = 0;
        for (index_t r = 0; r < panel.rows.count; ++r)
          bits |= std::uint32_t{panel.scores.data()[n * lanes_ + r] != T(0)} << r;
        room.allowed[n] = bits;
      }
      selected = room.allowed;
    }
    room.block.for_keys(keys, [&](const StridedRows<T>& k, index_t first, index_t count) {
      const index_t n = first - keys.begin;
      kernels_.accumulate({panel.scores.data() + n * lanes_, count, k, call_.kv.d_k, nullptr,
                           selected == nullptr ? nullptr : selected + n, panel.vectors,
                           panel.chunk.data()});
    });
    panel.has_chunk = true;
  }

  void end_chunk(Room& room) {
    for (index_t p = 0; p < room.group.used(); ++p) {
      BackwardPanel<T>& panel = room.group.panel(p);
      if (!panel.has_chunk) continue;
      T* const total = panel.total.data();
      T* const chunk = panel.chunk.data();
      for (index_t n = 0; n < call_.kv.d_k * lanes_; ++n) {
        total[n] += chunk[n];
        chunk[n] = 0;
      }
      panel.has_chunk = false;
    }
  }

  // --- results ---

  void store_queries(Room& room) {
    end_chunk(room);
    const MutableTensor<4>& dq = call_.gradients.dq;
    const index_t d_k = call_.kv.d_k;
    T* to[kMostRows];
    for (index_t p = 0; p < room.group.used(); ++p) {
      BackwardPanel<T>& panel = room.group.panel(p);
      for (index_t r = 0; r < panel.rows.count; ++r) to[r] = room.dq_rows.data() + r * d_k;
      kernels_.finish({{room.unused.data(), room.ones.data(), panel.total.data()},
                       panel.rows.count,
                       d_k,
                       T(1),
                       panel.vectors,
                       to,
                       1});
      for (index_t r = 0; r < panel.rows.count; ++r) {
        for (index_t d = 0; d < d_k; ++d)
          to[r][d] = canonical(static_cast<T>(static_cast<double>(to[r][d]) * scale_));
        store_row(to[r], dq, panel.rows.b, panel.rows.h[r], panel.rows.i[r]);
      }
    }
  }

  void store_keys(const BackwardItem& item, KeyRange keys, T* sums, index_t size,
                  const MutableTensor<4>& to) {
    for (index_t j = keys.begin; j < keys.end; ++j) {
      T* const row = sums + (j - keys.begin) * size;
      for (index_t d = 0; d < to.shape[3]; ++d) row[d] = canonical(row[d]);
      store_row(row, to, item.rows.b, item.rows.g, j);
    }
  }

  // d_sink_h = - sum over rows of exp(sink - max) / sum * mean, the batch outside, in f64.
  void differentiate_sinks() {
    const std::vector<double>& sinks = call_.options.sinks;
    std::vector<double> sums(sinks.size());
    const index_t group = call_.kv.kv_heads == 0 ? 0 : shape_.heads / call_.kv.kv_heads;
    for (index_t b = 0; b < shape_.batch; ++b) {
      for (index_t g = 0; g < call_.kv.kv_heads; ++g) {
        for (index_t n = 0; n < numbers_.rows(); ++n) {
          const auto h = static_cast<std::size_t>(g * group + n % group);
          const T shifted = static_cast<T>(sinks[h]) - numbers_.max(b, g)[n];
          T weight = 0;
          kernels_.exp(&shifted, &weight, 1);
          sums[h] -= static_cast<double>(weight * numbers_.inverse(b, g)[n]) *
                     static_cast<double>(numbers_.mean(b, g)[n]);
        }
      }
    }
    store_sinks(sums, call_.gradients.d_sinks);
  }

  const BackwardCall& call_;
  const Context::Impl& context_;
  const Kernels<T>& kernels_;
  PairShape shape_;
  TilePlan plan_;
  double scale_;
  index_t lanes_, panels_, blocks_;
  RowNumbers<T> numbers_;
  BiasGradients bias_;
};

}  // namespace

void run_backward(const BackwardCall& call, const Context& context) {
  if (call.q.shape[0] * call.q.shape[1] * call.q.shape[2] == 0) {  // no query row, no gradient
    const Gradients& gradients = call.gradients;
    store_zeros(gradients.dk);
    store_zeros(gradients.dv);
    for (const MutableTensor<4>& d_bias : gradients.d_bias) store_zeros(d_bias);
    store_zeros(gradients.d_sinks);
    return;
  }
  if (call.q.dtype == DType::f64)
    BackwardRun<double>(call, context).run();
  else
    BackwardRun<float>(call, context).run();
}

}  // namespace glasshead
