// Rows of programs whose softmax, or whose sum, runs across the rows or the heads of a matrix.
#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "doctor/program_rows.h"

namespace glasshead::doctor {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

}  // namespace

// The weights of the whole head, [q_len, kv_len].
void Runner::fill_matrix(const RowIndex& at) {
  if (matrix_of_.b == at.b && matrix_of_.h == at.h) return;
  matrix_of_ = {at.b, at.h, 0};
  const index_t rows = shape_.q_len, n = shape_.kv_len;
  matrix_.assign(slot(rows * n), 0);
  std::vector<double> column_max(slot(n), -kInf), column_sum(slot(n), 0);
  double max = -kInf, sum = 0;
  Scored scored;
  for (index_t i = 0; i < rows; ++i) {
    score({at.b, at.h, i}, scored);
    double* to = matrix_.data() + i * n;
    double row_max = -kInf, row_sum = 0;
    for (index_t j = 0; j < n; ++j) {
      to[j] = scored.included[slot(j)] != 0 ? scored.scores[slot(j)] : -kInf;
      row_max = std::max(row_max, to[j]);
      max = std::max(max, to[j]);
      column_max[slot(j)] = std::max(column_max[slot(j)], to[j]);
    }
    if (program_.axis != Axis::row) continue;
    for (index_t j = 0; j < n; ++j) {
      to[j] = row_max == -kInf ? 0 : math::exp(to[j] - row_max);
      row_sum += to[j];
    }
    for (index_t j = 0; j < n && row_sum > 0; ++j) to[j] /= row_sum;
  }
  if (program_.axis == Axis::row) return;
  const bool is_whole = program_.axis == Axis::whole;
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < n; ++j) {
      double& x = matrix_[slot(i * n + j)];
      const double most = is_whole ? max : column_max[slot(j)];
      x = most == -kInf ? 0 : math::exp(x - most);
      sum += x;
      column_sum[slot(j)] += x;
    }
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < n; ++j) {
      const double all = is_whole ? sum : column_sum[slot(j)];
      if (all > 0) matrix_[slot(i * n + j)] /= all;
    }
}

void Runner::across_rows(const RowIndex& at, Scored& scored, RowNumbers& to) {
  fill_matrix(at);
  const index_t n = shape_.kv_len;
  for (index_t j = 0; j < n; ++j) {
    const std::size_t s = slot(j);
    const double before = to.weights[s];
    const double relative = before > 0 ? to.weight_error[s] / before : 64 * u_;
    to.weights[s] =
        program_.transposes_weights ? matrix_[slot(j * n + at.i)] : matrix_[slot(at.i * n + j)];
    // Each weight's own roundings are like those of the row's softmax.
    to.weight_error[s] = to.weights[s] * (relative + scored.error[s] + 64 * u_);
  }
}

void Runner::across_heads(const RowIndex& at, Scored& scored, RowNumbers& to) {
  const auto n = slot(shape_.kv_len);
  std::vector<double> max(n, -kInf), sum(n, 0);
  std::vector<std::vector<double>> scores;
  Scored other;
  for (index_t h = 0; h < shape_.heads; ++h) {
    score({at.b, h, at.i}, other);
    for (std::size_t j = 0; j < n; ++j) {
      if (other.included[j] == 0) other.scores[j] = -kInf;
      max[j] = std::max(max[j], other.scores[j]);
    }
    scores.push_back(other.scores);
  }
  for (std::size_t j = 0; j < n; ++j) {
    for (const auto& of_head : scores)
      sum[j] += max[j] == -kInf ? 0 : math::exp(of_head[j] - max[j]);
    const double own = scores[slot(at.h)][j];
    to.weights[j] = sum[j] > 0 ? math::exp(own - max[j]) / sum[j] : 0;
    to.weight_error[j] = to.weights[j] * (8 * scored.error[j] + 64 * u_ + 8 * narrow_);
  }
}

}  // namespace glasshead::doctor
