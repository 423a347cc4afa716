// Mean and maximum of the weights in cells of a head. Everything is summed in an order that the
// cells alone decide: a row's share of a cell in T, key by key within a block of 128, blocks added
// in f64; then divided by the row's sum; rows of a cell added in f64. So neither the instruction
// set's number of lanes nor the threads change a bit.
#include <algorithm>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "core/attention_weights_call.h"

namespace glasshead {
namespace {

index_t cells(index_t length, index_t size) { return (length + size - 1) / size; }

// What becomes the maps, all cells of all heads.
template <class T>
struct Totals {
  index_t rows, columns;  // cells of a head
  std::vector<double> sum;
  std::vector<T> max;

  Totals(const WeightMaps& maps, const PairShape& shape)
      : rows(cells(shape.q_len, maps.cell_rows)), columns(cells(shape.kv_len, maps.cell_keys)) {
    sum.resize(static_cast<std::size_t>(shape.batch * shape.heads * rows * columns));
    max.resize(sum.size());
  }
};

// One worker's groups of rows, on their way into the totals.
template <class T>
class MapRows {
 public:
  MapRows(const WeightMaps& maps, index_t heads, Totals<T>& totals, index_t group_rows)
      : maps_(maps), heads_(heads), totals_(totals) {
    const auto rows = static_cast<std::size_t>(group_rows);
    open_sum_.resize(rows);
    open_max_.resize(rows);
    parts_.resize(static_cast<std::size_t>(most_parts()) * rows);
  }

  // A group of rows: each row's sums() and tiles, block by block.
  void add(const RowGroup& group, typename WeightSweep<T>::Room& room) {
    group_ = group;
    sums_ = room.sums().data();
    room.for_tiles([this](const WeightTile<T>& tile) { add_tile(tile); },
                   [this](KeyRange keys) { end_block(keys); });
    flush();
  }

 private:
  struct Part {
    T sum = 0, max = 0;
  };

  // Cells that a block of keys may touch.
  index_t most_parts() const { return std::min(kBlock, cells(kBlock, maps_.cell_keys) + 1); }
  index_t cell_of(index_t key) const { return key / maps_.cell_keys; }
  Part* part(index_t n) { return parts_.data() + n * static_cast<index_t>(open_sum_.size()); }

  void add_tile(const WeightTile<T>& tile) {
    const index_t first_cell = cell_of(tile.keys.begin - tile.keys.begin % kBlock);
    for (index_t j = tile.keys.begin; j < tile.keys.end;) {
      const index_t cell = cell_of(j), end = std::min(tile.keys.end, (cell + 1) * maps_.cell_keys);
      add_part(tile, j - tile.keys.begin, end - tile.keys.begin,
               part(cell - first_cell) + tile.first);
      j = end;
    }
  }

  // Keys [begin, end) of the tile, all of one cell.
  void add_part(const WeightTile<T>& tile, index_t begin, index_t end, Part* part) {
    index_t r = 0;
    constexpr int kRows = 64 / static_cast<int>(sizeof(T));
    for (; r + kRows <= tile.count; r += kRows) add_rows<kRows>(tile, begin, end, r, part + r);
    for (; r + kRows / 2 <= tile.count; r += kRows / 2)
      add_rows<kRows / 2>(tile, begin, end, r, part + r);
    for (; r < tile.count; ++r) add_rows<1>(tile, begin, end, r, part + r);
    for (r = 0; r < tile.count; ++r)
      if (sums_[tile.first + r] != sums_[tile.first + r]) spoil(tile, begin, end, r, part[r]);
  }

  // R rows side by side, in vectors: compilers leave these loops as scalars.
  template <int R>
  static void add_rows(const WeightTile<T>& tile, index_t begin, index_t end, index_t row,
                       Part* part) {
    constexpr int W = R == 1 ? 1 : 16 / static_cast<int>(sizeof(T));
    typedef T V __attribute__((vector_size(W * sizeof(T))));
    V sum[R / W] = {};
    V max[R / W] = {};
    const T* p = tile.p + begin * tile.lanes + row;
    for (index_t n = begin; n < end; ++n, p += tile.lanes) {
      for (int c = 0; c < R / W; ++c) {
        V x;
        std::memcpy(&x, p + c * W, sizeof x);
        sum[c] += x;
        max[c] = x > max[c] ? x : max[c];
      }
    }
    for (int r = 0; r < R; ++r) part[r] = {sum[r / W][r % W], max[r / W][r % W]};
  }

  // A row that is NaN: every allowed pair is, and no other.
  static void spoil(const WeightTile<T>& tile, index_t begin, index_t end, index_t r, Part& part) {
    part = {};
    for (index_t n = begin; n < end; ++n)
      if (tile.is_allowed(n, r))
        part = {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::quiet_NaN()};
  }

  void end_block(KeyRange keys) {
    const index_t first = cell_of(keys.begin - keys.begin % kBlock);
    for (index_t cell = cell_of(keys.begin); cell <= cell_of(keys.end - 1); ++cell) {
      if (cell != open_cell_) flush();
      open_cell_ = cell;
      Part* of_cell = part(cell - first);
      for (index_t r = 0; r < group_.count(); ++r) {
        const auto n = static_cast<std::size_t>(r);
        open_sum_[n] += static_cast<double>(of_cell[r].sum);
        open_max_[n] = larger(of_cell[r].max, open_max_[n]);
        of_cell[r] = {};
      }
    }
  }

  // A NaN is the largest.
  template <class R>
  static R larger(R x, R y) {
    return x > y || x != x ? x : y;
  }

  // The cell's rows go into the maps.
  void flush() {
    if (open_cell_ < 0) return;
    const index_t head = group_.b * heads_ + group_.h;
    for (index_t r = 0; r < group_.count(); ++r) {
      const auto n = static_cast<std::size_t>(r);
      // A row that is NaN has made its parts so already.
      const T divisor = sums_[r] != sums_[r] ? T(1) : sums_[r];
      const index_t row = head * totals_.rows + (group_.begin + r) / maps_.cell_rows;
      const auto at = static_cast<std::size_t>(row * totals_.columns + open_cell_);
      totals_.sum[at] += open_sum_[n] / static_cast<double>(divisor);
      totals_.max[at] = larger(static_cast<T>(open_max_[n] / divisor), totals_.max[at]);
      open_sum_[n] = 0;
      open_max_[n] = 0;
    }
    open_cell_ = -1;
  }

  const WeightMaps& maps_;
  index_t heads_;
  Totals<T>& totals_;
  RowGroup group_;
  const T* sums_ = nullptr;
  index_t open_cell_ = -1;  // whose rows' shares stand in open_*
  std::vector<double> open_sum_;
  std::vector<T> open_max_;
  std::vector<Part> parts_;  // [cells of a block, rows of a group]
};

template <class T>
void store_maps(const WeightMaps& maps, const PairShape& shape, const Totals<T>& totals) {
  std::size_t n = 0;
  for (index_t b = 0; b < shape.batch; ++b)
    for (index_t h = 0; h < shape.heads; ++h)
      for (index_t row = 0; row < totals.rows; ++row)
        for (index_t column = 0; column < totals.columns; ++column, ++n) {
          const index_t rows = std::min(maps.cell_rows, shape.q_len - row * maps.cell_rows);
          const index_t keys = std::min(maps.cell_keys, shape.kv_len - column * maps.cell_keys);
          const double mean =
              totals.sum[n] / (static_cast<double>(rows) * static_cast<double>(keys));
          if (maps.mean.data != nullptr) maps.mean.store_at({b, h, row, column}, canonical(mean));
          if (maps.max.data != nullptr)
            maps.max.store_at({b, h, row, column}, static_cast<double>(canonical(totals.max[n])));
        }
}

template <class T>
EmptyRows make_maps(const WeightCall& call, const WeightMaps& maps, const Context& context) {
  const PairShape shape{call.q.shape[0], call.q.shape[1], call.q.shape[2], call.k.shape[2]};
  Totals<T> totals(maps, shape);
  WeightSweep<T> sweep(call, context, maps.cell_rows);
  std::vector<EmptyRows> empty(sweep.workers());
  std::vector<MapRows<T>> workers(sweep.workers(),
                                  MapRows<T>(maps, shape.heads, totals, sweep.group_rows()));
  sweep.run([&](int worker, const RowGroup& group, typename WeightSweep<T>::Room& room) {
    workers[static_cast<std::size_t>(worker)].add(group, room);
    for (index_t n = 0; n < group.count(); ++n)
      if (room.is_empty_row(n))
        empty[static_cast<std::size_t>(worker)].add(group.b, group.h, group.begin + n);
  });
  store_maps(maps, shape, totals);
  return all_of(empty);
}

EmptyRows run_maps(const WeightCall& call, const WeightMaps& maps, const Context& context) {
  return compute_type(call.q.dtype) == DType::f64 ? make_maps<double>(call, maps, context)
                                                  : make_maps<float>(call, maps, context);
}

// Sizes and memory of the maps, which are kept apart from what else is read and written.
void check_maps(const WeightMaps& maps, const ConstTensor<4>& q, const ConstTensor<4>& k,
                std::vector<NamedData> others, Findings& findings) {
  if (maps.cell_rows < 1 || maps.cell_keys < 1) {
    findings.option("maps", fmt::format("has cells of {} x {}; at least 1 x 1 is needed",
                                        maps.cell_rows, maps.cell_keys));
    return;
  }
  if (maps.mean.data == nullptr && maps.max.data == nullptr)
    findings.option("maps", "neither mean nor max has data: there is nothing to write");
  const std::array<index_t, 4> shape{q.shape[0], q.shape[1], cells(q.shape[2], maps.cell_rows),
                                     cells(k.shape[2], maps.cell_keys)};
  for (const auto& [where, tensor] :
       {std::pair<const char*, const MutableTensor<4>&>{"maps.mean", maps.mean},
        {"maps.max", maps.max}})
    if (tensor.data != nullptr)
      check_writable<4>(where, tensor, shape, {"batch", "heads", "rows", "keys"}, findings);
  others.push_back({"q", q.data});
  others.push_back({"k", k.data});
  check_apart(others, {{"maps.mean", maps.mean.data}, {"maps.max", maps.max.data}}, findings);
}

}  // namespace

void weight_maps(const ConstTensor<4>& q, const ConstTensor<4>& k, const RowState& rows,
                 const AttentionOptions& options, const WeightMaps& maps, const Context& context) {
  Findings findings;
  const WeightCall call{q, k, options, rows, {0, q.shape[1], 0, q.shape[2]}};
  check_weight_call(call, {}, findings);
  if (findings.is_empty())
    check_maps(maps, q, k, {{"rows.max", rows.max.data}, {"rows.sum", rows.sum.data}}, findings);
  refuse("weight_maps", findings);
  if (q.shape[0] == 0 || is_empty(call.range)) return;
  const EmptyRows empty = run_maps(call, maps, context);
  if (options.empty_row == EmptyRow::error)
    report_empty_rows(empty, "only scores of -inf", findings);
  refuse("weight_maps", findings);
}

void attend_with_maps(const ConstTensor<4>& q, const ConstTensor<4>& k, const ConstTensor<4>& v,
                      const MutableTensor<4>& out, const WeightMaps& maps,
                      const AttentionOptions& options, const RowState& rows,
                      const Context& context) {
  Findings findings;
  check_attend({&q, &k, &v}, out, rows, options, findings);
  if (findings.is_empty())
    check_maps(maps, q, k,
               {{"v", v.data},
                {"out", out.data},
                {"rows.max", rows.max.data},
                {"rows.sum", rows.sum.data},
                {"rows.lse", rows.lse.data}},
               findings);
  refuse("attend_with_maps", findings);
  // The state in full precision, whatever the types in which it is asked for.
  const std::array<index_t, 3> shape{q.shape[0], q.shape[1], q.shape[2]};
  Tensor<double, 3> max(shape);
  Tensor<double, 3> sum(shape);
  const RowState kept{max, sum, rows.lse};
  attend(q, k, v, out, options, kept, context);
  for (const auto& [from, to] :
       {std::pair<const Tensor<double, 3>&, const MutableTensor<3>&>{max, rows.max},
        {sum, rows.sum}}) {
    if (to.data == nullptr) continue;
    index_t n = 0;
    for (index_t b = 0; b < shape[0]; ++b)
      for (index_t h = 0; h < shape[1]; ++h)
        for (index_t i = 0; i < shape[2]; ++i) to.store_at({b, h, i}, from.data()[n++]);
  }
  if (q.shape[0] == 0 || q.shape[1] == 0 || q.shape[2] == 0) return;
  run_maps({q, k, options, kept, {0, q.shape[1], 0, q.shape[2]}}, maps, context);
}

}  // namespace glasshead
