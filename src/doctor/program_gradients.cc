// Gradients of a program whose rows are ordinary softmax rows, from those rows:
//     dv_j = sum_i w_ij d_out_i        dw_ij = dot(d_out_i, v_j)
//     ds_ij = w_ij (dw_ij - sum_j w_ij dw_ij), times 1 - tanh^2 under a cap
//     dq_i = scale sum_j ds_ij k_j     dk_j = scale sum_i ds_ij q_i
// Errors at worst: of dw u (d_v + 2) sum |d_out v|; of w as in program_rows.h; a sum of n terms
// adds n u of its terms' sizes; narrow arithmetic stores w, dw, ds and the sums each once.
#include <algorithm>
#include <cmath>

#include "doctor/program_rows.h"

namespace glasshead::doctor {

Runner::ScoreGradients Runner::score_gradients(const RowIndex& at) {
  const index_t n = shape_.kv_len, d_v = program_.d_v();
  const auto keys = static_cast<double>(n);
  ScoreGradients to{std::vector<double>(slot(n)), std::vector<double>(slot(n))};
  std::vector<double> room(slot(d_v)), dw(slot(n)), dw_error(slot(n));
  const double* d_out =
      program_.d_out->row(at.b, {at.h, at.i, 0}, program_.d_out_order, room.data());
  double mean = 0, mean_size = 0, mean_error = 0;
  for (index_t j = 0; j < n; ++j) {
    const std::size_t s = slot(j);
    if (numbers_.weights[s] == 0) continue;
    const double* v = value(at, j);
    double size = 0;
    for (index_t d = 0; d < d_v; ++d) {
      dw[s] += d_out[d] * v[d];
      size += std::fabs(d_out[d] * v[d]);
    }
    dw_error[s] = u_ * static_cast<double>(d_v + 2) * size + narrow_ * 2 * size;
    mean += numbers_.weights[s] * dw[s];
    mean_size += std::fabs(numbers_.weights[s] * dw[s]);
  }
  for (std::size_t s = 0; s < slot(n); ++s)
    mean_error +=
        numbers_.weight_error[s] * std::fabs(dw[s] - mean) + numbers_.weights[s] * dw_error[s];
  mean_error += (u_ * (keys + 8) + narrow_ * 2) * mean_size;
  if (program_.forgets_mean) mean = mean_size = mean_error = 0;
  const double cap = program_.options.softcap;
  for (index_t j = 0; j < n; ++j) {
    const std::size_t s = slot(j);
    const double w = numbers_.weights[s], difference = dw[s] - mean;
    if (w == 0) continue;
    double slope = program_.scale * program_.gradient_scale;
    if (cap > 0 && !program_.forgets_cap_slope) {
      const double bias = bias_.is_empty() ? 0 : bias_.at<double>(at.b, at.h, at.i, j);
      const double t = (scored_.scores[s] - bias) / cap;
      slope *= 1 - t * t;
    }
    to.ds[s] = slope * w * difference;
    to.error[s] =
        std::fabs(slope) *
        (numbers_.weight_error[s] * std::fabs(difference) + w * (dw_error[s] + mean_error) +
         (8 * u_ + 3 * narrow_) * w * (std::fabs(dw[s]) + std::fabs(mean)));
    if (cap > 0)  // 1 - t^2 of a t that is off by the score's error
      to.error[s] += std::fabs(program_.scale * w * difference) *
                     (2 * (scored_.error[s] + 8 * narrow_ * std::fabs(scored_.scores[s])) / cap +
                      16 * (u_ + narrow_));
  }
  return to;
}

void Runner::query_gradient(const RowIndex& at, RowNumbers& to) {
  const index_t n = shape_.kv_len, d_k = program_.d_k();
  to.dq.assign(slot(d_k), 0);
  to.dq_error.assign(slot(d_k), 0);
  if (to.is_empty) return;
  const ScoreGradients of_scores = score_gradients(at);
  for (index_t j = 0; j < n; ++j) {
    const double ds = of_scores.ds[slot(j)], error = of_scores.error[slot(j)];
    if (ds == 0 && error == 0) continue;
    const double* k = key(at, j);
    for (index_t e = 0; e < d_k; ++e) {
      to.dq[slot(e)] += ds * k[e];
      to.dq_error[slot(e)] +=
          std::fabs(k[e]) *
          (error + std::fabs(ds) * (u_ * static_cast<double>(n + 8) + 2 * narrow_));
    }
  }
}

KeyNumbers Runner::key_gradients(index_t b, index_t g) {
  const index_t n = shape_.kv_len, d_k = program_.d_k(), d_v = program_.d_v();
  KeyNumbers to{std::vector<double>(slot(n * d_k)), std::vector<double>(slot(n * d_k)),
                std::vector<double>(slot(n * d_v)), std::vector<double>(slot(n * d_v))};
  const double count = static_cast<double>(shape_.q_len * program_.group());
  const double sum_error = u_ * (count + 8) + 2 * narrow_;
  std::vector<double> room(slot(d_v));
  index_t last = -1;
  for (index_t h = 0; h < shape_.heads; ++h)
    if (kv_head(h) == g) last = h;
  for (index_t h = 0; h < shape_.heads; ++h) {
    if (kv_head(h) != g || (program_.keeps_last_head && h != last)) continue;
    for (index_t i = 0; i < shape_.q_len; ++i) {
      const RowIndex at{b, h, i};
      if (row(at).is_empty) continue;
      const ScoreGradients of_scores = score_gradients(at);
      const double* q = program_.q->row(b, h, i);
      const double* d_out = program_.d_out->row(b, {h, i, 0}, program_.d_out_order, room.data());
      for (index_t j = 0; j < n; ++j) {
        const std::size_t s = slot(j);
        const double ds = of_scores.ds[s], w = numbers_.weights[s];
        if (w == 0) continue;
        const index_t to_key = kv_row(h, j);
        for (index_t e = 0; e < d_k; ++e) {
          const std::size_t at_key = slot(to_key * d_k + e);
          to.dk[at_key] += ds * q[e];
          to.dk_error[at_key] += std::fabs(q[e]) * (of_scores.error[s] + std::fabs(ds) * sum_error);
        }
        for (index_t d = 0; d < d_v; ++d) {
          const std::size_t at_value =
              slot(std::clamp<index_t>(to_key + program_.value_shift, 0, n - 1) * d_v + d);
          to.dv[at_value] += w * d_out[d];
          to.dv_error[at_value] += std::fabs(d_out[d]) * (numbers_.weight_error[s] + w * sum_error);
        }
      }
    }
  }
  return to;
}

}  // namespace glasshead::doctor
