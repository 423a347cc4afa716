#include "core/attention_weights_sweep.h"

#include <bit>
#include <cmath>
#include <limits>

#include "base/assert.h"
#include "core/scale.h"
#include "core/widen.h"

namespace glasshead {
namespace {

constexpr index_t kPanelsOfGroup = 4;   // a block of keys is read once for so many panels
constexpr index_t kItemsPerThread = 4;  // enough for threads to end together

// Keys without values.
KvSource keys_of(const ConstTensor<4>& k) {
  return kv_of(
      k, ConstTensor<4>(nullptr, k.dtype, {k.shape[0], k.shape[1], k.shape[2], 0}, {0, 0, 0, 0}));
}

}  // namespace

template <class T>
WeightSweep<T>::WeightSweep(const WeightCall& call, const Context& context, index_t row_step,
                            RowKeys row_keys)
    : call_(call),
      context_(context.impl()),
      kernels_(kernels_of<T>(context_)),
      shape_{call.q.shape[0], call.q.shape[1], call.q.shape[2], call.k.shape[2]},
      head_group_(call.q.shape[1] / call.k.shape[1]),
      kv_(keys_of(call.k)),
      plan_(call.options, shape_),
      scale_(scale_of(call.options, call.q.shape[3])),
      levels_(tree_levels((call.k.shape[2] + kChunk - 1) / kChunk)),
      group_rows_(kPanelsOfGroup * kernels_.lanes) {
  const RowRange& range = call.range;
  const index_t step = (group_rows_ + row_step - 1) / row_step * row_step;
  for (index_t b = 0; b < shape_.batch; ++b)
    for (index_t h = range.head_begin; h < range.head_end; ++h)
      for (index_t i = range.row_begin; i < range.row_end; i += step)
        items_.push_back({b, h, i, std::min(range.row_end, i + step),
                          call.keys.value_or(KeyRange{0, shape_.kv_len})});
  if (row_keys == RowKeys::apart) cut_keys();
}

template <class T>
void WeightSweep<T>::cut_keys() {
  groups_ = static_cast<index_t>(items_.size());
  const index_t wanted = kItemsPerThread * context_.pool.workers();
  const index_t chunks = (shape_.kv_len + kChunk - 1) / kChunk;
  if (context_.pool.workers() == 1 || groups_ == 0 || groups_ >= wanted || chunks < 2) return;
  const index_t most = std::min(chunks, (wanted + groups_ - 1) / groups_);
  const index_t keys =
      kChunk * static_cast<index_t>(std::bit_floor(static_cast<std::uint64_t>(chunks / most)));
  GLASSHEAD_ASSERT(keys > 0);  // most <= chunks
  nodes_ = (shape_.kv_len + keys - 1) / keys;
  std::vector<RowGroup> cut;
  for (index_t n = 0; n < groups_; ++n)
    for (index_t node = 0; node < nodes_; ++node) {
      RowGroup item = items_[static_cast<std::size_t>(n)];
      item.number = n;
      item.node = node;
      item.keys = {node * keys, std::min(shape_.kv_len, (node + 1) * keys)};
      cut.push_back(item);
    }
  items_ = std::move(cut);
  if (!has_node_states()) return;
  const auto panels = static_cast<std::size_t>(groups_ * kPanelsOfGroup);
  const auto of_panel = static_cast<std::size_t>(2 * kernels_.lanes);
  row_states_.resize(panels * of_panel);
  node_states_.resize(panels * of_panel * static_cast<std::size_t>(nodes_));
  node_has_keys_.resize(panels * static_cast<std::size_t>(nodes_));
}

template <class T>
T* WeightSweep<T>::node_state(const RowGroup& group, index_t node, index_t panel) {
  return node_states_.data() +
         ((group.number * nodes_ + node) * kPanelsOfGroup + panel) * 2 * kernels_.lanes;
}

template <class T>
std::uint8_t& WeightSweep<T>::node_has_keys(const RowGroup& group, index_t node, index_t panel) {
  return node_has_keys_[static_cast<std::size_t>((group.number * nodes_ + node) * kPanelsOfGroup +
                                                 panel)];
}

template <class T>
T* WeightSweep<T>::row_state(const RowGroup& group, index_t panel) {
  return row_states_.data() + (group.number * kPanelsOfGroup + panel) * 2 * kernels_.lanes;
}

template <class T>
void WeightSweep<T>::find_states() {
  context_.pool.run(static_cast<index_t>(items_.size()), [&](index_t n, int worker) {
    rooms_[static_cast<std::size_t>(worker)]->keep_node(items_[static_cast<std::size_t>(n)]);
  });
  context_.pool.run(groups_, [&](index_t n, int worker) {
    rooms_[static_cast<std::size_t>(worker)]->join_nodes(
        items_[static_cast<std::size_t>(n * nodes_)]);
  });
}

template <class T>
WeightSweep<T>::Room::Room(WeightSweep& sweep)
    : sweep_(sweep),
      tile_(sweep.kernels_.lanes, sweep.plan_.has_bias()),
      block_(sweep.kv_, false),
      query_room_(sweep.call_.q.dtype == dtype_of<T>()
                      ? 0
                      : static_cast<std::size_t>(sweep.kernels_.lanes * sweep.kv_.d_k)),
      panels_(static_cast<std::size_t>(kPanelsOfGroup)),
      new_max_(sweep.kernels_.lanes),
      ignored_(sweep.kernels_.lanes) {
  for (Panel& panel : panels_) {
    panel.queries = AlignedArray<T>(sweep.kv_.d_k * sweep.kernels_.lanes);
    panel.max = AlignedArray<T>(sweep.kernels_.lanes);
  }
  if (sweep.call_.rows.max.data == nullptr)
    work_ = std::make_unique<PanelWork<T>>(
        sweep.kernels_, PanelSizes{sweep.kv_.d_k, 0, sweep.levels_, Form::panel});
}

template <class T>
void WeightSweep<T>::Room::start(const RowGroup& group) {
  group_ = group;
  sums_.assign(static_cast<std::size_t>(group.count()), T(1));
  is_empty_.assign(static_cast<std::size_t>(group.count()), 0);
  panels_used_ = 0;
  for (index_t i = group.begin; i < group.end; i += sweep_.kernels_.lanes)
    start_panel(panels_[static_cast<std::size_t>(panels_used_++)], group, i);
}

template <class T>
void WeightSweep<T>::Room::keep_node(const RowGroup& group) {
  group_ = group;
  const index_t lanes = sweep_.kernels_.lanes;
  for (index_t i = group.begin, n = 0; i < group.end; i += lanes, ++n) {
    Panel& panel = panels_[static_cast<std::size_t>(n)];
    const T* queries[kMostRows];
    const index_t step = take_rows(panel, group, i, queries);
    work_->rows() = panel.rows;
    work_->start(queries, step, sweep_.scale_);
    const bool has_keys = add_chunks(panel, group.keys);
    work_->end();
    std::copy_n(work_->max(), 2 * lanes, sweep_.node_state(group, group.node, n));
    sweep_.node_has_keys(group, group.node, n) = has_keys ? 1 : 0;
  }
}

template <class T>
void WeightSweep<T>::Room::join_nodes(const RowGroup& group) {
  const index_t lanes = sweep_.kernels_.lanes;
  for (index_t i = group.begin, n = 0; i < group.end; i += lanes, ++n) {
    Panel& panel = panels_[static_cast<std::size_t>(n)];
    const T* queries[kMostRows];
    const index_t step = take_rows(panel, group, i, queries);
    work_->rows() = panel.rows;
    work_->start(queries, step, sweep_.scale_);
    for (index_t node = 0; node < sweep_.nodes_; ++node) {
      if (sweep_.node_has_keys(group, node, n) != 0)
        work_->take(sweep_.node_state(group, node, n), node);
      else
        work_->end_chunk(node);
    }
    T* state = sweep_.row_state(group, n);
    end_state(panel, state, state + lanes);
  }
}

template <class T>
index_t WeightSweep<T>::Room::take_rows(Panel& panel, const RowGroup& group, index_t begin,
                                        const T** queries) {
  const Kernels<T>& kernels = sweep_.kernels_;
  const ConstTensor<4>& q = sweep_.call_.q;
  panel.rows = {};
  panel.rows.b = group.b;
  panel.rows.count = std::min(group.end - begin, kernels.lanes);
  const bool is_direct = q.dtype == dtype_of<T>();
  for (index_t r = 0; r < panel.rows.count; ++r) {
    panel.rows.h[r] = group.h;
    panel.rows.i[r] = begin + r;
    const index_t at = group.b * q.strides[0] + group.h * q.strides[1] + (begin + r) * q.strides[2];
    if (is_direct) {
      queries[r] = static_cast<const T*>(q.data) + at;
      continue;
    }
    T* row = query_room_.data() + r * q.shape[3];
    load_run(q.data, q.dtype, at, q.strides[3], q.shape[3], row);
    queries[r] = row;
  }
  panel.vectors = (panel.rows.count + kernels.width - 1) / kernels.width;
  panel.keys = sweep_.plan_.key_range(panel.rows);
  return is_direct ? q.strides[3] : 1;
}

template <class T>
void WeightSweep<T>::Room::start_panel(Panel& panel, const RowGroup& group, index_t begin) {
  const T* queries[kMostRows];
  const index_t step = take_rows(panel, group, begin, queries);
  sweep_.kernels_.pack({queries, step, panel.rows.count, sweep_.kv_.d_k, sweep_.scale_,
                        panel.vectors, panel.queries.data()});
  T max[kMostRows];
  T sum[kMostRows];
  find_state(panel, queries, step, max, sum);
  take_state(panel, max, sum, begin - group.begin);
}

// As attend's, given or by the same steps.
template <class T>
void WeightSweep<T>::Room::find_state(const Panel& panel, const T* const* queries, index_t step,
                                      T* max, T* sum) {
  const PanelRows& rows = panel.rows;
  const RowState& given = sweep_.call_.rows;
  if (work_ == nullptr) {
    for (index_t r = 0; r < rows.count; ++r) {
      max[r] = static_cast<T>(ConstTensor<3>(given.max).load(rows.b, rows.h[r], rows.i[r]));
      sum[r] = static_cast<T>(ConstTensor<3>(given.sum).load(rows.b, rows.h[r], rows.i[r]));
    }
    return;
  }
  if (sweep_.has_node_states()) {
    const index_t lanes = sweep_.kernels_.lanes;
    const T* state = sweep_.row_state(group_, (rows.i[0] - group_.begin) / lanes);
    std::copy_n(state, rows.count, max);
    std::copy_n(state + lanes, rows.count, sum);
    return;
  }
  work_->rows() = rows;
  work_->start(queries, step, sweep_.scale_);
  add_chunks(panel, {0, sweep_.shape_.kv_len});
  end_state(panel, max, sum);
}

// Those of keys that begin with one. Whether any key was seen.
template <class T>
bool WeightSweep<T>::Room::add_chunks(const Panel& panel, KeyRange keys) {
  bool has_keys = false;
  for (index_t first = keys.begin; first < keys.end; first += kChunk) {
    const index_t end = std::min(panel.keys.end, first + kChunk);
    for (index_t j = std::max(panel.keys.begin, first); j < end; j += kBlock - j % kBlock) {
      Tile<T> tile{};
      if (!plan_tile(panel, {j, std::min(end, j - j % kBlock + kBlock)}, tile)) continue;
      load_block(j - j % kBlock);
      work_->add(tile, block_, tile_);
      has_keys = true;
    }
    work_->end_chunk(first / kChunk);
  }
  return has_keys;
}

template <class T>
void WeightSweep<T>::Room::end_state(const Panel& panel, T* max, T* sum) {
  const PanelRows& rows = panel.rows;
  work_->end();
  const std::vector<double>& sinks = sweep_.call_.options.sinks;
  if (!sinks.empty()) {
    T of_rows[kMostRows];
    std::fill_n(of_rows, rows.count, static_cast<T>(sinks[static_cast<std::size_t>(rows.h[0])]));
    work_->add_sinks(of_rows);
  }
  std::copy_n(work_->max(), rows.count, max);
  std::copy_n(work_->sum(), rows.count, sum);
}

// A row with nothing in it gets a state whose exponentials are 0: all its scores are -inf.
template <class T>
void WeightSweep<T>::Room::take_state(Panel& panel, const T* max, const T* sum, index_t first) {
  panel.has_nan = false;
  std::fill_n(panel.max.data(), sweep_.kernels_.lanes, T(0));
  for (index_t r = 0; r < panel.rows.count; ++r) {
    const auto n = static_cast<std::size_t>(first + r);
    is_empty_[n] = sum[r] == 0 ? 1 : 0;
    if (sum[r] == 0) continue;
    panel.max.data()[r] = max[r];
    sums_[n] = sum[r];
    panel.has_nan = panel.has_nan || !std::isfinite(max[r]) || sum[r] != sum[r];
  }
}

template <class T>
KeyRange WeightSweep<T>::Room::range_of_group() const {
  KeyRange all;
  for (index_t n = 0; n < panels_used_; ++n)
    all = united(all, panels_[static_cast<std::size_t>(n)].keys);
  return {std::max(all.begin, group_.keys.begin), std::min(all.end, group_.keys.end)};
}

template <class T>
bool WeightSweep<T>::Room::plan_tile(const Panel& panel, KeyRange keys, Tile<T>& tile) {
  const TilePlan& plan = sweep_.plan_;
  const TileKind kind = plan.tile(panel.rows, keys, tile_.allowed);
  if (kind == TileKind::none) return false;
  const std::uint32_t* allowed = nullptr;
  if (kind == TileKind::some) {  // from the first key that somebody sees to the last
    const std::uint32_t used = lanes_of(panel.rows);
    index_t last = keys.end - keys.begin - 1;
    while ((tile_.allowed[last] & used) == 0) --last;
    index_t first = 0;
    while ((tile_.allowed[first] & used) == 0) ++first;
    keys = {keys.begin + first, keys.begin + last + 1};
    allowed = tile_.allowed + first;
  }
  tile = {keys, allowed, nullptr, nullptr, static_cast<T>(sweep_.call_.options.softcap), false};
  if (plan.has_bias()) {
    plan.template bias<T>(sweep_.kernels_, panel.rows, keys, sweep_.kernels_.lanes,
                          tile_.bias.data());
    tile.bias = tile_.bias.data();
  }
  return true;
}

template <class T>
void WeightSweep<T>::Room::load_block(index_t first_key) {
  block_.load(group_.b, group_.h / sweep_.head_group_,
              {first_key, std::min(first_key + kBlock, sweep_.shape_.kv_len)});
}

template <class T>
bool WeightSweep<T>::Room::make_tile(index_t n, KeyRange keys, WeightTile<T>& made) {
  Panel& panel = panels_[static_cast<std::size_t>(n)];
  keys = {std::max(keys.begin, panel.keys.begin), std::min(keys.end, panel.keys.end)};
  Tile<T> tile{};
  if (keys.is_empty() || !plan_tile(panel, keys, tile)) return false;
  if (!has_block_) load_block(keys.begin - keys.begin % kBlock);
  has_block_ = true;

  const Kernels<T>& kernels = sweep_.kernels_;
  const index_t lanes = kernels.lanes, begin = tile.keys.begin;
  T* p = tile_.scores.data();
  std::copy_n(panel.max.data(), lanes, new_max_.data());
  block_.for_keys(tile.keys, [&](const StridedRows<T>& k, index_t first, index_t count) {
    const index_t at = first - begin;
    kernels.scores({panel.queries.data(), sweep_.kv_.d_k, k, count, tile.softcap,
                    tile.bias == nullptr ? nullptr : tile.bias + at * lanes,
                    tile.allowed == nullptr ? nullptr : tile.allowed + at, panel.vectors,
                    p + at * lanes, new_max_.data()});
  });
  // The final maximum stands already: p = exp(s - max); the sums have been made.
  std::copy_n(panel.max.data(), lanes, new_max_.data());
  kernels.softmax({p, begin % kPartialSums, tile.keys.end - begin, nullptr, panel.vectors,
                   panel.max.data(), new_max_.data(), ignored_.data(), tile_.alpha.data()});
  if (panel.has_nan && tile.allowed != nullptr) {  // -inf less a NaN
    for (index_t key = 0; key < tile.keys.end - begin; ++key)
      for (index_t r = 0; r < panel.rows.count; ++r)
        if (((tile.allowed[key] >> r) & 1) == 0) p[key * lanes + r] = 0;
  }
  made = {n * lanes, panel.rows.count, tile.keys, lanes, p, tile.allowed};
  return true;
}

template class WeightSweep<float>;
template class WeightSweep<double>;

}  // namespace glasshead
