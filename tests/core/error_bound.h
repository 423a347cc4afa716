// How far from the exact result a row may be: what rounding can do at worst, derived for the order
// of `arithmetic/1` (docs/same-bits.md). The readable path stays below it too. Every number of
// every row must satisfy it: it leaves nothing to luck.
//
//     RowBound bound = error_bound<float>(call, exact, {b, h, i});
//     |out[d] - exact| <= bound.out[d]
//
// As in Higham, Accuracy and Stability of Numerical Algorithms, chapter 3: u is half the distance
// from 1 to the next number; n roundings of a number, or of the partial sums of a sum, change it by
// n u of itself or of the sum of its terms' sizes. Largest distances, by step:
//
//   score    3 roundings of scale * q (two make the default scale), d_k of the chain
//                E = (d_k + 3) u sum_e |scale q_e k_e|
//   softcap  the quotient x = s / c; tanh's 2.8 ulp (an ulp is at most 2 u), c itself, the product
//                E <- (E + u |s|) tanh'(x) + 7.6 u |c tanh x|,  tanh' at its largest near x
//   bias     n terms, each rounded once, summed, added
//                E <- E + n u sum |terms| + u |s|
//   weight   exp(s - m): the difference and exp's 0.95 ulp. m may rise R times, by blocks, chunks
//   or
//            a sink: each time another exp and two roundings; their differences add up to m - s
//                t = E + u (m - s) + (1.9 + 3.9 R) u
//   softmax  weights w e^(t_j) instead of w, divided by their sum, which is at most e^tau times its
//            exact value and at least e^-tau:  tau = ln sum_j w_j e^(t_j)
//                |change of w_j| <= w_j (e^(t_j + tau) - 1)
//   out      since sum_j w_j (v_j - out) is 0, that moves out by at most
//                sum_j w_j (e^(t_j + tau) - 1) |v_j - out|
//            then one rounding a key, 4 where each weight is divided (readable), and for the whole
//            18 in the sum (16 of a partial sum's, 3 of the tree, the first of nothing), 1/(1-p),
//            the reciprocal, the product
//                (keys + 4) u sum |w v| + 21 u |out|
//
// Products of two such errors are left out above; 1 % more covers them and those of the long double
// that is taken for exact. Numbers below the normal ones err by half the smallest number instead.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/arithmetic.h"
#include "naive.h"

namespace glasshead::test {

inline constexpr long double kSecondOrder = 1.01L;

struct RowBound {
  std::vector<long double> out, size;  // [d_v]; size: sum_j |w_j v_j|
  std::vector<long double> weights;    // [kv_len], before dropout
  long double lse = 0;
};

// An exact score, and how far a computed one may be.
struct ScoreBound {
  long double exact = 0, error = 0;
};

template <class T>
ScoreBound score_bound(const Attention& call, const std::array<index_t, 4>& at) {
  constexpr long double u = std::numeric_limits<T>::epsilon() / 2;
  const auto [b, h, i, j] = at;
  const AttentionOptions& options = call.options;
  const index_t d_k = call.q.shape[3], g = h / (call.q.shape[1] / call.k.shape[1]);
  const long double scale =
      options.scale ? *options.scale : 1 / std::sqrt(static_cast<long double>(d_k));
  ScoreBound score;
  for (index_t e = 0; e < d_k; ++e) {
    const long double term = scale * call.q(b, h, i, e) * call.k(b, g, j, e);
    score.exact += term;
    score.error += static_cast<long double>(d_k + 3) * u * std::fabs(term);
  }
  if (options.softcap > 0) {
    const long double cap = options.softcap, tanh = std::tanh(score.exact / cap);
    const long double moved = score.error + u * std::fabs(score.exact);
    const long double least = std::tanh(std::max(0.0L, std::fabs(score.exact) - moved) / cap);
    score.error = moved * (1 - least * least) + 7.6L * u * std::fabs(cap * tanh);
    score.exact = cap * tanh;
  }
  const auto terms = static_cast<long double>(options.bias.terms().size());
  if (terms == 0) return score;
  for (const Bias::Term& term : options.bias.terms()) {
    const auto x = naive_term<long double>(call, term, at);
    score.exact += x;
    score.error += terms * u * std::fabs(x);
  }
  score.error += u * std::fabs(score.exact);
  return score;
}

// How often the maximum may rise after a key was weighted with it.
inline index_t most_rescalings(const Attention& call) {
  const index_t kv_len = call.k.shape[2];
  const auto chunks = static_cast<std::uint64_t>((kv_len + kChunk - 1) / kChunk);
  const index_t blocks = (std::min(kv_len, kChunk) + kBlock - 1) / kBlock;
  const index_t levels = chunks <= 1 ? 0 : static_cast<index_t>(std::bit_width(chunks - 1));
  return std::max<index_t>(0, blocks - 1) + levels + (call.options.sinks.empty() ? 0 : 1);
}

// What rounding does to the weights of a row.
struct WeightBounds {
  std::vector<bool> visible;        // [kv_len]
  std::vector<long double> change;  // [kv_len] e^(t_j + tau) - 1, relative to w_j
  long double sink = 0;             // of the sink's weight, times that weight
  long double tau = 0, rises = 0, count = 0;
};

template <class T>
WeightBounds weight_bounds(const Attention& call, const Naive<long double>& exact,
                           const std::array<index_t, 3>& row) {
  constexpr long double u = std::numeric_limits<T>::epsilon() / 2;
  const auto [b, h, i] = row;
  const auto keys = static_cast<std::size_t>(exact.kv_len);
  const bool has_sink = !call.options.sinks.empty();
  const long double sink = has_sink ? call.options.sinks[static_cast<std::size_t>(h)] : -kInf;
  WeightBounds bounds;
  bounds.rises = static_cast<long double>(most_rescalings(call));
  std::vector<ScoreBound> scores(keys);
  long double max = sink;
  for (std::size_t j = 0; j < keys; ++j) {
    bounds.visible.push_back(naive_allowed(call, b, h, i, static_cast<index_t>(j)));
    if (!bounds.visible[j]) continue;
    scores[j] = score_bound<T>(call, {b, h, i, static_cast<index_t>(j)});
    max = std::max(max, scores[j].exact);
    ++bounds.count;
  }
  const auto t = [&](const ScoreBound& score) {
    return kSecondOrder *
           (score.error + u * (max - score.exact) + (1.9L + 3.9L * bounds.rises) * u);
  };
  const long double* const w = exact.weights.data() + exact.row(b, h, i) * keys;
  long double total = 0, sink_weight = has_sink ? 1 : 0;
  for (std::size_t j = 0; j < keys; ++j) {
    if (!bounds.visible[j]) continue;
    total += w[j] * std::exp(t(scores[j]));
    if (has_sink) sink_weight -= w[j];
  }
  const long double of_sink = has_sink ? t({sink, u * std::fabs(sink)}) : 0;
  total += sink_weight * std::exp(of_sink);
  bounds.tau = std::log(std::max(1.0L, total));
  bounds.sink = std::max(0.0L, sink_weight) * std::expm1(of_sink + bounds.tau);
  for (std::size_t j = 0; j < keys; ++j)
    bounds.change.push_back(bounds.visible[j] ? std::expm1(t(scores[j]) + bounds.tau) : 0);
  return bounds;
}

template <class T>
RowBound error_bound(const Attention& call, const Naive<long double>& exact,
                     const std::array<index_t, 3>& row) {
  constexpr long double u = std::numeric_limits<T>::epsilon() / 2;
  constexpr long double kSmallest = std::numeric_limits<T>::denorm_min();
  const auto [b, h, i] = row;
  const index_t g = h / (call.q.shape[1] / call.k.shape[1]);
  const WeightBounds weights = weight_bounds<T>(call, exact, row);
  const auto keys = static_cast<std::size_t>(exact.kv_len);
  const long double* const w = exact.weights.data() + exact.row(b, h, i) * keys;
  RowBound bound;
  for (std::size_t j = 0; j < keys; ++j)
    bound.weights.push_back(!weights.visible[j] ? 0
                                                : w[j] * (weights.change[j] + 21 * u) +
                                                      (2 + weights.rises) * kSmallest);
  bound.lse =
      weights.tau +
      kSecondOrder * u * (18 + std::log(1 + weights.count) + 2 * std::fabs(exact.lse_at(b, h, i)));
  const Dropout& dropout = call.options.dropout;
  std::vector<long double> kept;  // what a value is multiplied by
  for (index_t j = 0; j < exact.kv_len; ++j) {
    const bool is_gone = dropout.p > 0 && dropped(dropout.seed, {b, h, i, j}, dropout.p);
    kept.push_back(is_gone ? 0 : 1 / (1.0L - dropout.p));
  }
  for (index_t d = 0; d < call.v.shape[3]; ++d) {
    const long double out = exact.out_at(b, h, i, d);
    long double moved = weights.sink * std::fabs(out), size = 0, values = 0;
    for (std::size_t j = 0; j < keys; ++j) {
      if (!weights.visible[j]) continue;
      const long double v = kept[j] * call.v(b, g, static_cast<index_t>(j), d);
      moved += w[j] * weights.change[j] * std::fabs(v - out);
      size += w[j] * std::fabs(v);
      values += std::fabs(v);
    }
    bound.size.push_back(size);
    bound.out.push_back(moved +
                        kSecondOrder * u * ((weights.count + 4) * size + 21 * std::fabs(out)) +
                        kSmallest * ((2 + weights.rises) * values + weights.count + 4));
  }
  return bound;
}

}  // namespace glasshead::test
