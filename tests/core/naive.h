// Attention a second time, written to be obviously right and nothing else: the whole score matrix,
// the product scaled afterwards, every rule asked per pair, the C library's functions, plain sums.
// In long double it is the reference; in float it is the "plain three-pass f32" that f32 results
// are measured against. It shares no code with the library but the options' types and the dropout
// draw.
#pragma once

#include <cmath>
#include <vector>

#include "base/random.h"
#include "testing.h"

namespace glasshead::test {

inline double naive_element(const Broadcast& t, const std::array<index_t, 4>& at) {
  index_t offset = 0;
  for (int n = 0; n < t.rank; ++n) {
    const auto axis = static_cast<std::size_t>(n);
    const index_t index = at[static_cast<std::size_t>(4 - t.rank + n)];
    if (t.shape[axis] != 1) offset += index * t.strides[axis];
  }
  return load_element(t.data, t.dtype, offset);
}

inline index_t naive_position(const Attention& call, index_t i) {
  const index_t q_len = call.q.shape[2], kv_len = call.k.shape[2];
  const QueryStart& start = call.options.query_start;
  if (start.index() == 2) return std::get<index_t>(start) + i;
  if (start.index() == 1 && std::get<Align>(start) == Align::end) return kv_len - q_len + i;
  return i;
}

inline bool naive_allowed(const Attention& call, index_t b, index_t h, index_t i, index_t j) {
  const index_t p = naive_position(call, i);
  const auto of_batch = [&](const std::vector<index_t>& list) {
    return list[list.size() == 1 ? 0 : static_cast<std::size_t>(b)];
  };
  for (const Mask::Part& part : call.options.mask.parts()) {
    bool allowed = true;
    if (std::get_if<Mask::Causal>(&part)) {
      allowed = j <= p;
    } else if (const auto* window = std::get_if<Mask::Window>(&part)) {
      if (window->left && p - j > *window->left) allowed = false;
      if (window->right && j - p > *window->right) allowed = false;
    } else if (const auto* lengths = std::get_if<Mask::KeyLengths>(&part)) {
      allowed = j < of_batch(lengths->lengths);
    } else if (const auto* segments = std::get_if<Mask::Segments>(&part)) {
      const auto row = static_cast<std::size_t>(segments->batch == 1 ? 0 : b);
      const auto q_len = static_cast<std::size_t>(call.q.shape[2]);
      const auto kv_len = static_cast<std::size_t>(call.k.shape[2]);
      allowed = segments->query_ids[row * q_len + static_cast<std::size_t>(i)] ==
                segments->key_ids[row * kv_len + static_cast<std::size_t>(j)];
    } else if (const auto* prefix = std::get_if<Mask::Prefix>(&part)) {
      allowed = j < of_batch(prefix->lengths) || j <= p;
    } else if (const auto* given = std::get_if<Mask::Explicit>(&part)) {
      allowed = naive_element(given->allowed, {b, h, i, j}) != 0;
    } else if (const auto* where = std::get_if<Mask::Where>(&part)) {
      allowed = where->rule.predicate()(where->rule.options().per_batch ? b : 0,
                                        where->rule.options().per_head ? h : 0, p, j);
    }
    if (!allowed) return false;
  }
  for (const Bias::Term& term : call.options.bias.terms()) {
    const auto* dense = std::get_if<Bias::Dense>(&term);
    if (dense && naive_element(dense->values, {b, h, i, j}) == -kInf) return false;
  }
  return true;
}

// The bucket as in the original code: f32 logarithms there, f64 here.
inline index_t naive_t5_bucket(index_t relative, const Bias::T5& t5) {
  index_t buckets = t5.buckets, bucket = 0, n = -relative;
  if (t5.is_bidirectional) {
    buckets /= 2;
    if (n < 0) bucket += buckets;
    n = n < 0 ? -n : n;
  } else if (n < 0) {
    n = 0;
  }
  const index_t exact = buckets / 2;
  if (n < exact) return bucket + n;
  const long double large =
      std::log(static_cast<long double>(n) / static_cast<long double>(exact)) /
      std::log(static_cast<long double>(t5.max_distance) / static_cast<long double>(exact)) *
      static_cast<long double>(buckets - exact);
  return bucket + std::min(buckets - 1, exact + static_cast<index_t>(large + 1e-12L));
}

// One term of a bias.
template <class R>
R naive_term(const Attention& call, const Bias::Term& term, const std::array<index_t, 4>& at) {
  const index_t p = naive_position(call, at[2]), j = at[3];
  if (const auto* alibi = std::get_if<Bias::Alibi>(&term)) {
    const auto slope = static_cast<R>(alibi->slopes[static_cast<std::size_t>(at[1])]);
    return alibi->form == Bias::AlibiForm::distance ? -slope * static_cast<R>(std::abs(p - j))
                                                    : slope * static_cast<R>(j);
  }
  if (const auto* t5 = std::get_if<Bias::T5>(&term)) {
    const index_t bucket = naive_t5_bucket(j - p, *t5);
    return static_cast<R>(t5->table[static_cast<std::size_t>(bucket * t5->heads + at[1])]);
  }
  return static_cast<R>(naive_element(std::get<Bias::Dense>(term).values, at));
}

template <class R>
R naive_bias(const Attention& call, index_t b, index_t h, index_t i, index_t j) {
  R sum = 0;
  for (const Bias::Term& term : call.options.bias.terms())
    sum += naive_term<R>(call, term, {b, h, i, j});
  return sum;
}

// Two ways to write the same three passes, both found in programs: they round differently.
enum class Form : std::uint8_t {
  product_scaled,  // scale * (q . k); sums from the first term to the last
  query_scaled,    // (scale * q) . k; sums from the last term to the first
};

template <class R>
struct Naive {
  std::array<index_t, 4> shape;  // of out
  index_t kv_len = 0;
  std::vector<R> out, weights, lse;
  std::size_t row(index_t b, index_t h, index_t i) const {
    return static_cast<std::size_t>((b * shape[1] + h) * shape[2] + i);
  }
  R& out_at(index_t b, index_t h, index_t i, index_t d) {
    return out[row(b, h, i) * static_cast<std::size_t>(shape[3]) + static_cast<std::size_t>(d)];
  }
  R out_at(index_t b, index_t h, index_t i, index_t d) const {
    return const_cast<Naive*>(this)->out_at(b, h, i, d);
  }
  R lse_at(index_t b, index_t h, index_t i) const { return lse[row(b, h, i)]; }
};

// One row; scores come in, out and lse go to `result`.
template <class R>
void naive_row(const Attention& call, std::array<index_t, 3> at, Form form, Naive<R>& result) {
  const auto [b, h, i] = at;
  const bool scales_query = form == Form::query_scaled;
  const auto nth = [&](index_t n, index_t count) { return scales_query ? count - 1 - n : n; };
  const index_t g = h / (call.q.shape[1] / call.k.shape[1]);
  const auto& options = call.options;
  const R scale = options.scale ? static_cast<R>(*options.scale)
                                : R(1) / std::sqrt(static_cast<R>(call.q.shape[3]));
  std::vector<R> score(static_cast<std::size_t>(result.kv_len));
  std::vector<bool> allowed(score.size());
  R max = options.sinks.empty() ? -std::numeric_limits<R>::infinity()
                                : static_cast<R>(options.sinks[static_cast<std::size_t>(h)]);
  const R sink = max;
  for (index_t j = 0; j < result.kv_len; ++j) {
    const auto n = static_cast<std::size_t>(j);
    allowed[n] = naive_allowed(call, b, h, i, j);
    if (!allowed[n]) continue;
    R s = 0;
    for (index_t e = 0; e < call.q.shape[3]; ++e) {
      const index_t d = nth(e, call.q.shape[3]);
      const R q = static_cast<R>(call.q(b, h, i, d)) * (scales_query ? scale : R(1));
      s += q * static_cast<R>(call.k(b, g, j, d));
    }
    if (!scales_query) s *= scale;
    if (options.softcap > 0) {
      const auto cap = static_cast<R>(options.softcap);
      s = cap * std::tanh(s / cap);
    }
    score[n] = s + naive_bias<R>(call, b, h, i, j);
    max = std::max(max, score[n]);
  }
  R sum = 0;
  if (!options.sinks.empty()) sum += std::exp(sink - max);
  for (index_t j = 0; j < result.kv_len; ++j) {
    const auto n = static_cast<std::size_t>(nth(j, result.kv_len));
    score[n] = allowed[n] ? std::exp(score[n] - max) : R(0);
    sum += score[n];
  }
  result.lse[result.row(b, h, i)] = sum > 0 ? max + std::log(sum) : max;
  for (index_t m = 0; m < result.kv_len; ++m) {
    const index_t j = nth(m, result.kv_len);
    const auto n = static_cast<std::size_t>(j);
    if (!allowed[n]) continue;
    R w = score[n] / sum;
    result.weights[result.row(b, h, i) * score.size() + n] = w;
    if (options.dropout.p > 0) {
      const bool is_gone = dropped(options.dropout.seed, {b, h, i, j}, options.dropout.p);
      w = is_gone ? R(0) : w / (R(1) - static_cast<R>(options.dropout.p));
    }
    for (index_t d = 0; d < call.v.shape[3]; ++d)
      result.out_at(b, h, i, d) += w * static_cast<R>(call.v(b, g, j, d));
  }
}

template <class R>
Naive<R> naive_attention(const Attention& call, Form form = Form::product_scaled) {
  const auto& s = call.q.shape;
  Naive<R> result;
  result.shape = {s[0], s[1], s[2], call.v.shape[3]};
  result.kv_len = call.k.shape[2];
  const auto rows = static_cast<std::size_t>(s[0] * s[1] * s[2]);
  result.out.assign(rows * static_cast<std::size_t>(call.v.shape[3]), R(0));
  result.weights.assign(rows * static_cast<std::size_t>(result.kv_len), R(0));
  result.lse.assign(rows, R(0));
  for (index_t b = 0; b < s[0]; ++b)
    for (index_t h = 0; h < s[1]; ++h)
      for (index_t i = 0; i < s[2]; ++i) naive_row<R>(call, {b, h, i}, form, result);
  return result;
}

}  // namespace glasshead::test
