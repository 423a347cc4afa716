// Gradients a second time, from naive.h's weights: every pair by itself, plain sums in order. In
// long double the reference, in float the plain f32 backward that f32 results are measured against.
#pragma once

#include <vector>

#include "naive.h"

namespace glasshead::test {

template <class R>
struct NaiveGradients {
  std::vector<R> dq, dk, dv;
  std::vector<std::vector<R>> d_bias;  // of each term, as Gradients::d_bias; empty for ALiBi
  std::vector<R> d_sinks;
};

// The shape of a term's gradient.
inline std::array<index_t, 4> term_shape(const Bias::Term& term) {
  if (const auto* t5 = std::get_if<Bias::T5>(&term)) return {1, 1, t5->buckets, t5->heads};
  std::array<index_t, 4> shape{1, 1, 1, 1};
  if (const auto* dense = std::get_if<Bias::Dense>(&term)) {
    const auto rank = static_cast<std::size_t>(dense->values.rank);
    for (std::size_t n = 0; n < rank; ++n) shape[4 - rank + n] = dense->values.shape[n];
  }
  return shape;
}

inline std::size_t term_entry(const Attention& call, const Bias::Term& term,
                              const std::array<index_t, 4>& pair) {
  if (const auto* t5 = std::get_if<Bias::T5>(&term)) {
    const index_t bucket = naive_t5_bucket(pair[3] - naive_position(call, pair[2]), *t5);
    return static_cast<std::size_t>(bucket * t5->heads + pair[1]);
  }
  const std::array<index_t, 4> shape = term_shape(term);
  index_t n = 0;
  for (std::size_t axis = 0; axis < 4; ++axis)
    n = n * shape[axis] + (shape[axis] == 1 ? 0 : pair[axis]);
  return static_cast<std::size_t>(n);
}

template <class R>
R naive_scale(const Attention& call) {
  return call.options.scale ? static_cast<R>(*call.options.scale)
                            : R(1) / std::sqrt(static_cast<R>(call.q.shape[3]));
}

// dL/ds of one row's pairs after softcap and bias; 0 where hidden. `used` are the weights that meet
// the values.
template <class R>
struct NaiveRow {
  std::vector<R> ds, used;
  R mean = 0;
};
template <class R>
NaiveRow<R> naive_row_gradients(const Attention& call, const Block& d_out, const Naive<R>& forward,
                                const std::array<index_t, 3>& at) {
  const auto [b, h, i] = at;
  const index_t g = h / (call.q.shape[1] / call.k.shape[1]);
  const auto size = static_cast<std::size_t>(forward.kv_len);
  NaiveRow<R> row{std::vector<R>(size), std::vector<R>(size), 0};
  const Dropout& dropout = call.options.dropout;
  for (index_t j = 0; j < forward.kv_len; ++j) {
    if (!naive_allowed(call, b, h, i, j)) continue;
    const auto n = static_cast<std::size_t>(j);
    const R w = forward.weights[forward.row(b, h, i) * size + n];
    R factor = 1;
    if (dropout.p > 0)
      factor = dropped(dropout.seed, {b, h, i, j}, dropout.p)
                   ? R(0)
                   : R(1) / (R(1) - static_cast<R>(dropout.p));
    for (index_t d = 0; d < call.v.shape[3]; ++d)
      row.ds[n] += static_cast<R>(d_out(b, h, i, d)) * static_cast<R>(call.v(b, g, j, d));
    row.ds[n] *= factor;
    row.used[n] = w * factor;
    row.mean += w * row.ds[n];
  }
  for (index_t j = 0; j < forward.kv_len; ++j) {
    const auto n = static_cast<std::size_t>(j);
    if (naive_allowed(call, b, h, i, j))
      row.ds[n] = forward.weights[forward.row(b, h, i) * size + n] * (row.ds[n] - row.mean);
  }
  return row;
}

template <class R>
void naive_pair(const Attention& call, const std::array<index_t, 4>& pair, R ds,
                NaiveGradients<R>& result) {
  const auto [b, h, i, j] = pair;
  const index_t g = h / (call.q.shape[1] / call.k.shape[1]);
  const std::vector<Bias::Term>& terms = call.options.bias.terms();
  for (std::size_t n = 0; n < terms.size(); ++n) {
    if (!result.d_bias[n].empty()) result.d_bias[n][term_entry(call, terms[n], pair)] += ds;
  }
  const R scale = naive_scale<R>(call);
  if (call.options.softcap > 0) {
    R s = 0;
    for (index_t d = 0; d < call.q.shape[3]; ++d)
      s += static_cast<R>(call.q(b, h, i, d)) * static_cast<R>(call.k(b, g, j, d));
    const R t = std::tanh(s * scale / static_cast<R>(call.options.softcap));
    ds *= (1 - t) * (1 + t);
  }
  for (index_t d = 0; d < call.q.shape[3]; ++d) {
    result.dq[call.q.index(b, h, i, d)] += ds * scale * static_cast<R>(call.k(b, g, j, d));
    result.dk[call.k.index(b, g, j, d)] += ds * scale * static_cast<R>(call.q(b, h, i, d));
  }
}

template <class R>
NaiveGradients<R> naive_backward(const Attention& call, const Block& d_out) {
  const Naive<R> forward = naive_attention<R>(call);
  NaiveGradients<R> result;
  result.dq.resize(call.q.x.size());
  result.dk.resize(call.k.x.size());
  result.dv.resize(call.v.x.size());
  result.d_sinks.resize(call.options.sinks.size());
  for (const Bias::Term& term : call.options.bias.terms()) {
    const auto s = term_shape(term);
    result.d_bias.emplace_back(std::holds_alternative<Bias::Alibi>(term)
                                   ? 0
                                   : static_cast<std::size_t>(s[0] * s[1] * s[2] * s[3]));
  }
  const index_t group = call.q.shape[1] / call.k.shape[1];
  for (index_t b = 0; b < call.q.shape[0]; ++b)
    for (index_t h = 0; h < call.q.shape[1]; ++h)
      for (index_t i = 0; i < call.q.shape[2]; ++i) {
        const NaiveRow<R> row = naive_row_gradients(call, d_out, forward, {b, h, i});
        for (index_t j = 0; j < call.k.shape[2]; ++j) {
          if (!naive_allowed(call, b, h, i, j)) continue;
          const auto n = static_cast<std::size_t>(j);
          naive_pair(call, {b, h, i, j}, row.ds[n], result);
          for (index_t d = 0; d < call.v.shape[3]; ++d)
            result.dv[call.v.index(b, h / group, j, d)] +=
                row.used[n] * static_cast<R>(d_out(b, h, i, d));
        }
        if (call.options.sinks.empty()) continue;
        const auto sink = static_cast<R>(call.options.sinks[static_cast<std::size_t>(h)]);
        result.d_sinks[static_cast<std::size_t>(h)] -=
            std::exp(sink - forward.lse_at(b, h, i)) * row.mean;
      }
  return result;
}

}  // namespace glasshead::test
