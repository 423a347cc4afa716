#include "glasshead/attention_weights.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "core/attention_weights_call.h"
#include "core/attention_weights_sweep.h"
#include "core/narrow.h"
#include "core/softmax_row.h"

namespace glasshead {
namespace {

template <class T, class E>
EmptyRows write_transparent(const Call<E>& call, const RowRange& range,
                            const MutableTensor<4>& weights) {
  EmptyRows empty;
  if (call.shape.batch == 0 || is_empty(range)) return empty;
  Row<T> row(call);
  for (index_t b = 0; b < call.shape.batch; ++b) {
    for (index_t h = range.head_begin; h < range.head_end; ++h) {
      for (index_t i = range.row_begin; i < range.row_end; ++i) {
        compute_row(call, b, h, i, row);
        if (row.is_empty) empty.add(b, h, i);
        for (index_t j = 0; j < call.shape.kv_len; ++j) {
          const auto at = static_cast<std::size_t>(j);
          const bool is_seen =
              j >= row.keys.begin && j < row.keys.end && row.allowed[at] != 0 && !row.is_empty;
          weights.store_at({b, h - range.head_begin, i - range.row_begin, j},
                           is_seen ? static_cast<double>(canonical(row.weights[at])) : 0.0);
        }
      }
    }
  }
  return empty;
}

// Row n of the group in the result: where its key 0 stands, or would stand.
index_t row_offset(const MutableTensor<4>& t, const WeightCall& call, const RowGroup& group,
                   index_t n) {
  const index_t first_key = call.keys ? call.keys->begin : 0;
  return group.b * t.strides[0] + (group.h - call.range.head_begin) * t.strides[1] +
         (group.begin - call.range.row_begin + n) * t.strides[2] - first_key * t.strides[3];
}

void clear_row(const MutableTensor<4>& t, index_t offset, KeyRange keys) {
  const index_t step = t.strides[3];
  const auto size = static_cast<index_t>(size_of(t.dtype));
  if (step == 1) {  // 0 is no bit of any type
    std::memset(static_cast<unsigned char*>(t.data) + (offset + keys.begin) * size, 0,
                static_cast<std::size_t>((keys.end - keys.begin) * size));
    return;
  }
  for (index_t j = keys.begin; j < keys.end; ++j)
    store_element(t.data, t.dtype, offset + j * step, 0);
}

template <class T>
void store_tile(const WeightTile<T>& tile, const T* sums, const MutableTensor<4>& weights,
                const WeightCall& call, const RowGroup& group) {
  const index_t step = weights.strides[3], keys = tile.keys.end - tile.keys.begin;
  for (index_t r = 0; r < tile.count; ++r) {
    const T sum = sums[tile.first + r];
    const index_t at = row_offset(weights, call, group, tile.first + r) + tile.keys.begin * step;
    T row[kBlock];
    for (index_t n = 0; n < keys; ++n) row[n] = tile.p[n * tile.lanes + r] / sum;
    if (tile.allowed != nullptr)
      for (index_t n = 0; n < keys; ++n) row[n] = tile.is_allowed(n, r) ? row[n] : T(0);
    for (index_t n = 0; n < keys; ++n) row[n] = canonical(row[n]);
    store_run(row, weights.data, weights.dtype, at, step, keys);
  }
}

template <class T>
EmptyRows write_weights(const WeightCall& call, const MutableTensor<4>& weights,
                        const Context& context) {
  WeightSweep<T> sweep(call, context, 1, call.keys ? RowKeys::together : RowKeys::apart);
  std::vector<EmptyRows> empty(sweep.workers());
  sweep.run([&](int worker, const RowGroup& group, typename WeightSweep<T>::Room& room) {
    for (index_t n = 0; n < group.count(); ++n) {
      clear_row(weights, row_offset(weights, call, group, n), group.keys);
      if (group.node == 0 && room.is_empty_row(n))
        empty[static_cast<std::size_t>(worker)].add(group.b, group.h, group.begin + n);
    }
    room.for_tiles(
        [&](const WeightTile<T>& tile) {
          store_tile(tile, room.sums().data(), weights, call, group);
        },
        [](KeyRange) {});
  });
  return all_of(empty);
}

}  // namespace

void attention_weights(const ConstTensor<4>& q, const ConstTensor<4>& k, const RowState& rows,
                       const AttentionOptions& options, const RowRange& range,
                       const MutableTensor<4>& weights, const Context& context) {
  Findings findings;
  check_weight_call({q, k, options, rows, range}, {{"weights", weights, k.shape[2]}}, findings);
  refuse("attention_weights", findings);
  if (q.shape[0] == 0 || is_empty(range)) return;
  const WeightCall call{q, k, options, rows, range, {}};
  const EmptyRows empty = compute_type(q.dtype) == DType::f64
                              ? write_weights<double>(call, weights, context)
                              : write_weights<float>(call, weights, context);
  if (options.empty_row == EmptyRow::error)
    report_empty_rows(empty, "only scores of -inf", findings);
  refuse("attention_weights", findings);
}

void attention_weights_of_keys(const WeightCall& call, const MutableTensor<4>& weights,
                               const Context& context) {
  if (call.q.shape[0] == 0 || is_empty(call.range) || call.keys->is_empty()) return;
  if (compute_type(call.q.dtype) == DType::f64)
    write_weights<double>(call, weights, context);
  else
    write_weights<float>(call, weights, context);
}

void attention_weights(const ConstTensor<4>& q, const ConstTensor<4>& k,
                       const AttentionOptions& options, const RowRange& range,
                       const MutableTensor<4>& weights) {
  attention_weights(q, k, {}, options, range, weights, default_context());
}

void attention_weights_transparent(const ConstTensor<4>& q, const ConstTensor<4>& k,
                                   const AttentionOptions& options, const RowRange& range,
                                   const MutableTensor<4>& weights) {
  Findings findings;
  check_weight_call({q, k, options, {}, range}, {{"weights", weights, k.shape[2]}}, findings);
  refuse("attention_weights", findings);

  EmptyRows empty;
  with_element(q.dtype, [&](auto element) {
    using E = decltype(element);
    using T = std::conditional_t<std::is_same_v<E, double>, double, float>;
    empty = write_transparent<T>(Call<E>(q, k, options), range, weights);
  });
  if (options.empty_row == EmptyRow::error)
    report_empty_rows(empty, "only scores of -inf", findings);
  refuse("attention_weights", findings);
}

}  // namespace glasshead
