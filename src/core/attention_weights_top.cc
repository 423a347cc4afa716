// The largest weights of each row, kept in order as the keys go by.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "core/attention_weights_call.h"

namespace glasshead {
namespace {

// The best so far of one row, largest first. NaN counts as larger than any number.
template <class T>
class Best {
 public:
  explicit Best(index_t size) : size_(static_cast<std::size_t>(size)) {}

  void clear() { found_.clear(); }
  // Keys come in ascending order, so one that equals the last stays behind it.
  void add(index_t key, T weight) {
    const T rank = weight != weight ? std::numeric_limits<T>::infinity() : weight;
    if (found_.size() == size_) {
      if (size_ == 0 || !(rank > found_.back().rank)) return;
      found_.pop_back();
    }
    auto at = found_.end();
    while (at != found_.begin() && rank > (at - 1)->rank) --at;
    found_.insert(at, {key, weight, rank});
  }

  void store(const MutableTensor<4>& keys, index_t keys_at, const MutableTensor<4>& weights,
             index_t weights_at) const {
    for (std::size_t n = 0; n < size_; ++n) {
      const bool is_found = n < found_.size();
      const auto at = static_cast<index_t>(n);
      static_cast<index_t*>(keys.data)[keys_at + at * keys.strides[3]] =
          is_found ? found_[n].key : -1;
      store_element(weights.data, weights.dtype, weights_at + at * weights.strides[3],
                    is_found ? static_cast<double>(canonical(found_[n].weight)) : 0.0);
    }
  }

 private:
  struct Found {
    index_t key;
    T weight, rank;
  };
  std::size_t size_;
  std::vector<Found> found_;
};

template <class T>
EmptyRows find_top(const WeightCall& call, const MutableTensor<4>& keys,
                   const MutableTensor<4>& weights, const Context& context) {
  WeightSweep<T> sweep(call, context, 1);
  std::vector<EmptyRows> empty(sweep.workers());
  std::vector<std::vector<Best<T>>> best(
      sweep.workers(),
      std::vector<Best<T>>(static_cast<std::size_t>(sweep.group_rows()), Best<T>(keys.shape[3])));
  sweep.run([&](int worker, const RowGroup& group, typename WeightSweep<T>::Room& room) {
    std::vector<Best<T>>& rows = best[static_cast<std::size_t>(worker)];
    for (Best<T>& row : rows) row.clear();
    room.for_tiles(
        [&](const WeightTile<T>& tile) {
          for (index_t r = 0; r < tile.count; ++r) {
            const auto row = static_cast<std::size_t>(tile.first + r);
            if (room.is_empty_row(tile.first + r)) continue;
            const T sum = room.sums()[row];
            for (index_t n = 0; n < tile.keys.end - tile.keys.begin; ++n)
              if (tile.is_allowed(n, r))
                rows[row].add(tile.keys.begin + n, tile.p[n * tile.lanes + r] / sum);
          }
        },
        [](KeyRange) {});
    const auto offset = [&](const MutableTensor<4>& t, index_t n) {
      return group.b * t.strides[0] + (group.h - call.range.head_begin) * t.strides[1] +
             (group.begin - call.range.row_begin + n) * t.strides[2];
    };
    for (index_t n = 0; n < group.count(); ++n) {
      rows[static_cast<std::size_t>(n)].store(keys, offset(keys, n), weights, offset(weights, n));
      if (room.is_empty_row(n))
        empty[static_cast<std::size_t>(worker)].add(group.b, group.h, group.begin + n);
    }
  });
  return all_of(empty);
}

}  // namespace

void top_weights(const ConstTensor<4>& q, const ConstTensor<4>& k, const RowState& rows,
                 const AttentionOptions& options, const RowRange& range,
                 const MutableTensor<4>& keys, const MutableTensor<4>& weights,
                 const Context& context) {
  Findings findings;
  const WeightCall call{q, k, options, rows, range};
  MutableTensor<4> numbers = keys;  // as wide as an f64, which the check knows to write
  if (keys.dtype == DType::i64)
    numbers.dtype = DType::f64;
  else
    findings.option("keys", fmt::format("has dtype {}; i64 would be right", name(keys.dtype)));
  const index_t count = keys.shape[3];
  check_weight_call(call, {{"keys", numbers, count}, {"weights", weights, count}}, findings);
  refuse("top_weights", findings);
  if (q.shape[0] == 0 || is_empty(range)) return;
  const EmptyRows empty = compute_type(q.dtype) == DType::f64
                              ? find_top<double>(call, keys, weights, context)
                              : find_top<float>(call, keys, weights, context);
  if (options.empty_row == EmptyRow::error)
    report_empty_rows(empty, "only scores of -inf", findings);
  refuse("top_weights", findings);
}

}  // namespace glasshead
