#include <algorithm>
#include <vector>

#include "base/random.h"
#include "core/backward.h"
#include "core/bias_gradients.h"
#include "core/softmax_row.h"

namespace glasshead {
namespace {

// Sums over the query rows of one key/value head, in f64: [kv_len, size], row-major.
struct KeySums {
  index_t size;
  std::vector<double> values;

  KeySums(index_t kv_len, index_t width)
      : size(width), values(static_cast<std::size_t>(kv_len * width)) {}
  double* row(index_t j) { return values.data() + j * size; }
  void clear() { std::fill(values.begin(), values.end(), 0.0); }
  void store(const MutableTensor<4>& tensor, index_t b, index_t g) {
    for (index_t j = 0; j < tensor.shape[2]; ++j) {
      for (index_t d = 0; d < size; ++d) tensor.store_at({b, g, j, d}, canonical(row(j)[d]));
    }
  }
};

struct BackwardTensors {
  const ConstTensor<4>& d_out;
  const ConstTensor<4>& v;
  const Gradients& gradients;
};

// One query row at a time; the formulas are those of attend_backward (attention.h).
template <class E>
class Backward {
 public:
  Backward(const Call<E>& call, const BackwardTensors& tensors)
      : call_(call),
        t_(tensors),
        row_(call),
        d_v_(tensors.v.shape[3]),
        dk_(call.shape.kv_len, call.d_k),
        dv_(call.shape.kv_len, tensors.v.shape[3]),
        d_out_(static_cast<std::size_t>(d_v_)),
        kept_(row_.weights.size()),
        d_weights_(row_.weights.size()),
        d_scores_(row_.weights.size()),
        sums_(2 * static_cast<std::size_t>(call.d_k)),
        bias_(call.options, call.shape, t_.gradients.d_bias),
        d_sinks_(call.options.sinks.size()) {}

  // Returns the rows without a key.
  EmptyRows run() {
    for (index_t b = 0; b < call_.shape.batch; ++b) {
      for (index_t g = 0; g < call_.k.shape[1]; ++g) {
        dk_.clear();
        dv_.clear();
        for (index_t h = g * call_.group; h < (g + 1) * call_.group; ++h) {
          for (index_t i = 0; i < call_.shape.q_len; ++i) differentiate(b, h, g, i);
        }
        dk_.store(t_.gradients.dk, b, g);
        dv_.store(t_.gradients.dv, b, g);
      }
    }
    bias_.store();
    store_sinks(d_sinks_, t_.gradients.d_sinks);
    return empty_;
  }

 private:
  void differentiate(index_t b, index_t h, index_t g, index_t i) {
    compute_row(call_, b, h, i, row_);
    if (row_.is_empty) empty_.add(b, h, i);
    hide_infinite_scores();
    for (index_t d = 0; d < d_v_; ++d)
      d_out_[static_cast<std::size_t>(d)] = t_.d_out.load(b, h, i, d);
    differentiate_values(b, h, g, i);
    differentiate_softmax(h);
    if (bias_.is_wanted())
      for_allowed([&](index_t j, std::size_t at) { bias_.add({b, h, i, j}, d_scores_[at]); });
    differentiate_scores();
    differentiate_products(b, h, g, i);
  }

  // A score of -inf through the data has weight 0, as if the pair were hidden: it takes no part, so
  // that the infinite k or q behind it isn't multiplied by 0.
  void hide_infinite_scores() {
    for (index_t j = row_.keys.begin; j < row_.keys.end; ++j) {
      const auto at = static_cast<std::size_t>(j);
      if (row_.scores[at] == kNothing<double>) row_.allowed[at] = 0;
    }
  }

  // forward: out_i = sum_j m_ij w_ij v_j, m the dropout factor (0 or 1/(1-p); 1 without dropout)
  void differentiate_values(index_t b, index_t h, index_t g, index_t i) {
    const Dropout& dropout = call_.options.dropout;
    for_allowed([&](index_t j, std::size_t at) {
      const bool is_dropped = dropout.p > 0 && dropped(dropout.seed, {b, h, i, j}, dropout.p);
      kept_[at] = is_dropped ? 0.0 : dropout.p > 0 ? 1.0 / (1.0 - dropout.p) : 1.0;
      const double product = dot<double>(d_out_.data(), value(b, g, j), d_v_);
      d_weights_[at] = kept_[at] * product;
      const double weight = row_.weights[at] * kept_[at];
      for (std::size_t d = 0; d < d_out_.size(); ++d) dv_.row(j)[d] += weight * d_out_[d];
    });
  }

  // forward: w_ij = exp(s_ij - max_i) / sum_i
  void differentiate_softmax(index_t h) {
    for_allowed([&](index_t, std::size_t at) {
      d_scores_[at] = row_.weights[at] * d_weights_[at];  // summed below
    });
    const double mean = block_sum(d_scores_.data(), row_.allowed.data(), row_.keys);
    for_allowed([&](index_t, std::size_t at) {
      d_scores_[at] = row_.weights[at] * (d_weights_[at] - mean);
    });
    if (d_sinks_.empty() || row_.is_empty) return;  // a sink has a weight and no value: dw is 0
    const auto head = static_cast<std::size_t>(h);
    const double weight = shifted_exp(call_.options.sinks[head], row_.max) / row_.sum;
    d_sinks_[head] -= weight * mean;
  }

  // forward: s = softcap * tanh(s' / softcap); the bias only shifts
  void differentiate_scores() {
    const double softcap = call_.options.softcap;
    if (softcap <= 0) return;
    for_allowed([&](index_t, std::size_t at) {
      const double t = math::tanh(row_.uncapped[at] / softcap);
      d_scores_[at] *= (1.0 - t) * (1.0 + t);
    });
  }

  // forward: s'_ij = dot(scale * q_i, k_j)
  void differentiate_products(index_t b, index_t h, index_t g, index_t i) {
    double* dq = sums_.data();
    const auto key = [&](index_t j) { return vector_at<E>(call_.k, b, g, j); };
    weighted_sum(d_scores_.data(), row_.allowed.data(), row_.keys, key, call_.d_k, dq + call_.d_k,
                 dq);
    for (index_t d = 0; d < call_.d_k; ++d) {
      const double x = call_.scale * dq[d];
      t_.gradients.dq.store_at({b, h, i, d}, canonical(x));
    }
    for_allowed([&](index_t j, std::size_t at) {
      for (index_t d = 0; d < call_.d_k; ++d)
        dk_.row(j)[d] += d_scores_[at] * row_.query[static_cast<std::size_t>(d)];
    });
  }

  template <class F>
  void for_allowed(const F& f) {
    for (index_t j = row_.keys.begin; j < row_.keys.end; ++j) {
      const auto at = static_cast<std::size_t>(j);
      if (row_.allowed[at] != 0) f(j, at);
    }
  }

  Strided<E> value(index_t b, index_t g, index_t j) const {
    return d_v_ == 0 ? Strided<E>{} : vector_at<E>(t_.v, b, g, j);
  }

  const Call<E>& call_;
  BackwardTensors t_;
  Row<double> row_;
  EmptyRows empty_;
  index_t d_v_;
  KeySums dk_, dv_;
  std::vector<double> d_out_;      // [d_v]
  std::vector<double> kept_;       // [kv_len] dropout factors
  std::vector<double> d_weights_;  // [kv_len]
  std::vector<double> d_scores_;   // [kv_len]
  std::vector<double> sums_;       // [2, d_k] dq and room for its blocks
  BiasGradients bias_;
  std::vector<double> d_sinks_;  // [heads] where there are sinks
};

}  // namespace

void attend_backward_transparent(const ConstTensor<4>& d_out, const ConstTensor<4>& q,
                                 const ConstTensor<4>& k, const ConstTensor<4>& v,
                                 const Gradients& gradients, const AttentionOptions& options) {
  constexpr auto kFunction = "attend_backward_transparent";
  Findings findings;
  check_backward({&d_out, &q, &k, &v}, gradients, options, findings);
  refuse(kFunction, findings);

  EmptyRows empty;
  with_element(q.dtype, [&](auto element) {
    using E = decltype(element);
    const Call<E> call(q, k, options);
    empty = Backward<E>(call, {d_out, v, gradients}).run();
  });
  if (options.empty_row == EmptyRow::error)
    report_empty_rows(empty, "only scores of -inf", findings);
  refuse(kFunction, findings);
}

}  // namespace glasshead
