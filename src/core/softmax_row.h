// One query row from q and k to weights: the loop body that `attend`, `attention_weights` and
// `attend_backward` share.
//
//   Call<E> call(q, k, options);
//   Row<T> row(call);
//   compute_row(call, b, h, i, row);       // row.weights[j], row.max, row.sum, row.lse
//
// T is the compute type (float or double), E the element type of q and k. Memory: O(kv_len).
#pragma once

#include <cstdint>
#include <vector>

#include "core/bias_plan.h"
#include "core/mask_plan.h"
#include "core/rows.h"
#include "core/scale.h"
#include "glasshead/attention.h"

namespace glasshead {

// Vector (b, h, i) of a tensor whose elements are E: [batch, heads, length, size].
template <class E>
Strided<E> vector_at(const ConstTensor<4>& t, index_t b, index_t h, index_t i) {
  const index_t offset = b * t.strides[0] + h * t.strides[1] + i * t.strides[2];
  return {static_cast<const E*>(t.data) + offset, t.strides[3]};
}

// What the rows of one call have in common. The tensors and options must outlive it.
template <class E>
struct Call {
  const ConstTensor<4>& q;
  const ConstTensor<4>& k;
  const AttentionOptions& options;
  PairShape shape;
  index_t d_k;
  index_t group;  // query heads per key/value head
  double scale;
  MaskPlan mask;
  BiasPlan bias;

  Call(const ConstTensor<4>& queries, const ConstTensor<4>& keys, const AttentionOptions& given)
      : q(queries),
        k(keys),
        options(given),
        shape{q.shape[0], q.shape[1], q.shape[2], k.shape[2]},
        d_k(q.shape[3]),
        group(k.shape[1] == 0 ? 0 : q.shape[1] / k.shape[1]),
        scale(scale_of(given, d_k)),
        mask(given, shape),
        bias(given, shape) {}
};

// The state of one row, used again for the next.
template <class T>
struct Row {
  std::vector<T> query;               // [d_k] scale * q
  std::vector<T> uncapped;            // [kv_len] scores before softcap; only where softcap is on
  std::vector<T> scores;              // [kv_len] after softcap and bias
  std::vector<T> weights;             // [kv_len] after softmax, before dropout
  std::vector<std::uint8_t> allowed;  // [kv_len] 1 or 0 inside `keys`
  KeyRange keys;                      // nothing outside is allowed, or was computed
  T max = kNothing<T>, sum = 0, lse = kNothing<T>;
  bool is_empty = true;  // no allowed key, or none with a score above -inf; and no sink

  template <class E>
  explicit Row(const Call<E>& call)
      : query(static_cast<std::size_t>(call.d_k)),
        uncapped(call.options.softcap > 0 ? static_cast<std::size_t>(call.shape.kv_len) : 0),
        scores(static_cast<std::size_t>(call.shape.kv_len)),
        weights(static_cast<std::size_t>(call.shape.kv_len)),
        allowed(static_cast<std::size_t>(call.shape.kv_len)) {}
};

// scores[j] for the allowed keys of the row.
template <class T, class E>
void compute_scores(const Call<E>& call, index_t b, index_t h, index_t i, Row<T>& row) {
  const Strided<E> q = vector_at<E>(call.q, b, h, i);
  for (index_t d = 0; d < call.d_k; ++d)
    row.query[static_cast<std::size_t>(d)] = scaled_element<T>(q[d], call.scale);
  const double softcap = call.options.softcap;
  for (index_t j = row.keys.begin; j < row.keys.end; ++j) {
    const auto at = static_cast<std::size_t>(j);
    row.scores[at] = 0;  // a hidden key's entry is never read
    if (row.allowed[at] == 0) continue;
    T score = dot<T>(row.query.data(), vector_at<E>(call.k, b, h / call.group, j), call.d_k);
    if (softcap > 0) {
      row.uncapped[at] = score;
      score = capped_score(score, softcap);
    }
    row.scores[at] = score;
  }
  call.bias.add_row(b, h, i, row.keys, row.scores.data());
}

// The whole row: mask, scores, softmax. An empty row has weights 0, max and lse -inf, sum 0.
template <class T, class E>
void compute_row(const Call<E>& call, index_t b, index_t h, index_t i, Row<T>& row) {
  row.keys = call.mask.key_range(b, h, i);
  std::uint8_t* allowed = row.allowed.data();
  call.mask.fill_row(b, h, i, row.keys, allowed);
  compute_scores(call, b, h, i, row);

  const bool has_sink = !call.options.sinks.empty();
  const T sink =
      has_sink ? static_cast<T>(call.options.sinks[static_cast<std::size_t>(h)]) : kNothing<T>;
  row.max = row_max(row.scores.data(), allowed, row.keys, sink);
  row.is_empty = row.max == kNothing<T>;
  T* e = row.weights.data();
  for (index_t j = row.keys.begin; j < row.keys.end; ++j) {
    const auto at = static_cast<std::size_t>(j);
    e[at] = row.is_empty || allowed[at] == 0 ? T(0) : shifted_exp(row.scores[at], row.max);
  }
  row.sum = row.is_empty ? T(0) : block_sum(e, allowed, row.keys);
  if (has_sink) row.sum += shifted_exp(sink, row.max);
  row.lse = log_sum_exp(row.max, row.sum);
  if (row.is_empty) return;
  for (index_t j = row.keys.begin; j < row.keys.end; ++j) {
    const auto at = static_cast<std::size_t>(j);
    if (allowed[at] != 0) e[at] /= row.sum;
  }
}

// Calls f(E{}) with the element type of `type`: double, float, bf16 or f16.
template <class F>
void with_element(DType type, const F& f) {
  switch (type) {
    case DType::f64:
      return f(double{});
    case DType::f32:
      return f(float{});
    case DType::bf16:
      return f(bf16{});
    case DType::f16:
      return f(f16{});
    case DType::u8:
    case DType::i64:
      return;  // refused by check
  }
}

}  // namespace glasshead
