// What is added to the scores, answered for one call: the sum of the bias's terms at each pair, in
// the order in which they were added, in the compute type T (double or float).
//
//   BiasPlan plan(options, {batch, heads, q_len, kv_len});
//   double x = plan.at<double>(b, h, i, j);
//   plan.add_row(b, h, i, keys, scores);     // scores[j] + (term 0 + term 1 + ...), j in keys
//
// Each term is computed in f64 and rounded once to T; the terms are summed in T; the sum is added
// to the score. An entry of -inf in a dense term makes the sum -inf; whether the pair is hidden is
// MaskPlan's to say, which hides exactly those pairs. The options must have passed `check`.
#pragma once

#include "core/mask_plan.h"

namespace glasshead {

class BiasPlan {
 public:
  BiasPlan(const AttentionOptions& options, const PairShape& shape);

  bool is_empty() const { return bias_.terms().empty(); }  // nothing is added
  const Bias& bias() const { return bias_; }

  template <class T>
  T at(index_t b, index_t h, index_t i, index_t j) const;

  // scores[j] = scores[j] + at<T>(b, h, i, j) for every j in `keys` (indexed by the key itself).
  template <class T>
  void add_row(index_t b, index_t h, index_t i, KeyRange keys, T* scores) const;

 private:
  Bias bias_;
  index_t query_start_ = 0;
};

}  // namespace glasshead
