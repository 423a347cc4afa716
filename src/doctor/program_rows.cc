// A row of a program from its scores to weights, out and lse, and their error bounds.
#include "doctor/program_rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/math.h"

namespace glasshead::doctor {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kNoise = 4;  // root mean squares of independent roundings that are allowed

double positive_expm1(double x) { return math::expm1(std::min(x, 700.0)); }

// What a weight of `w` can change by when its score moves by kNoise times `noise`, in the same
// unit: weights stay between 0 and 1.
double moved_weight(double w, double noise) {
  constexpr double kSmall = 0.02;  // within 4 % of linear
  const double by = noise < kSmall ? noise : positive_expm1(kNoise * noise) / kNoise;
  return std::min(std::fabs(w) * by, 1.0);
}

// The nearest number of f16. By splitting (T. J. Dekker 1971): which of two equally near ones it
// takes is left open, as is the order of the sums that this stands for.
double in_f16(double x) {
  const double size = std::fabs(x);
  if (!(size < 65520)) return std::isnan(x) ? x : x > 0 ? kInf : -kInf;
  if (size < 0x1p-14) return (x + 0x1.8p28) - 0x1.8p28;  // a multiple of 2^-24
  const double c = x * (0x1p42 + 1);
  return c - (c - x);
}

// As f32 holds it: too large is inf, too small is 0.
double in_f32(double x) {
  if (x > largest(DType::f32)) return kInf;
  return x < 0x1p-150 ? 0 : x;
}

// An exp and a sum of exps as the program holds them.
double held_exp(const Program& p, double e) {
  if (p.is_shifted || p.arithmetic == DType::f64) return e;
  return p.exps == Exps::wide ? in_f32(e) : in_f16(e);
}
double held_sum(const Program& p, double sum) {
  if (p.is_shifted || p.arithmetic == DType::f64) return sum;
  return p.exps == Exps::f16_and_sum ? in_f16(sum) : in_f32(sum);
}

// Exps in f16 of scores that are off by `margin` at most: whether that decides if the largest is
// inf or a number, a number of all its digits or one below f16's normal range, or, where the sum is
// in f16 too, whether that is inf.
bool is_on_edge(const Program& p, double top, double margin, double sum) {
  const double over = math::log(65520);  // rounds to inf from here on
  const double under = math::log(0x1p-25), normal = math::log(0x1p-14);
  if (top - margin > over || top + margin < under) return false;  // inf / inf, 0 / 0
  if (top + margin > over || top - margin < normal) return true;
  if (p.exps != Exps::f16_and_sum) return false;
  const double relative = positive_expm1(margin);
  return sum * (1 + relative) > 65520 && sum * (1 - relative) < 65520;
}

// How far off the largest scores may be: those that decide what becomes of their exps.
double margin_of_largest(const std::vector<double>& scores, double max,
                         const std::vector<double>& error, const std::vector<double>& noise) {
  double margin = 0;
  for (std::size_t j = 0; j < scores.size(); ++j)  // hidden ones are -inf
    if (scores[j] > max - 1) margin = std::max(margin, error[j] + kNoise * noise[j]);
  return margin;
}

// Softmax of the weights.
void apply_again(const std::vector<char>& included, std::vector<double>& weights) {
  double sum = 0;
  for (std::size_t j = 0; j < weights.size(); ++j)
    if (included[j] != 0) sum += math::exp(weights[j]);
  for (std::size_t j = 0; j < weights.size(); ++j)
    if (included[j] != 0) weights[j] = math::exp(weights[j]) / sum;
}

void add_value(double w, const double* __restrict v, index_t n, double* __restrict out,
               double* __restrict size) {
  for (index_t d = 0; d < n; ++d) {
    const double term = w * v[d];
    out[d] += term;
    size[d] += std::fabs(term);
  }
}

void add_distance(double factor, const double* __restrict v, const double* __restrict centre,
                  index_t n, double* __restrict sum) {
  for (index_t d = 0; d < n; ++d) sum[d] += factor * std::fabs(v[d] - centre[d]);
}

}  // namespace

double half_ulp(DType type) {
  switch (type) {
    case DType::f32:
      return 0x1p-24;
    case DType::bf16:
      return 0x1p-8;
    case DType::f16:
      return 0x1p-11;
    default:
      return 0x1p-53;
  }
}

double smallest(DType type) {
  switch (type) {
    case DType::f32:
    case DType::bf16:
      return 0x1p-126;
    case DType::f16:
      return 0x1p-24;
    default:
      return 0x1p-1074;
  }
}

double largest(DType type) {
  switch (type) {
    case DType::f32:
      return 0x1.fffffep127;
    case DType::bf16:
      return 0x1.fep127;
    case DType::f16:
      return 65504;
    default:
      return std::numeric_limits<double>::max();
  }
}

const RowNumbers& Runner::row(const RowIndex& wanted) {
  if (program_.swaps_axes) return computed({wanted.b, wanted.i, wanted.h});
  if (program_.out_order.is_right()) return computed(wanted);
  // out of row `from` is read as that of row `wanted`; weights and lse are not.
  const Place from =
      found_at(program_.out_order, {wanted.h, wanted.i, 0}, {shape_.heads, shape_.q_len, 1});
  const RowNumbers written = computed({wanted.b, from.h, from.l});
  computed(wanted);
  numbers_.out = written.out;
  numbers_.out_error = written.out_error;
  numbers_.out_size = written.out_size;
  numbers_.is_open = numbers_.is_open || written.is_open;
  return numbers_;
}

const RowNumbers& Runner::computed(const RowIndex& at) {
  RowNumbers& to = numbers_;
  to.weights.assign(slot(shape_.kv_len), 0);
  to.out.assign(slot(columns_), 0);
  to.weight_error.assign(slot(shape_.kv_len), 0);
  to.out_error.assign(slot(columns_), 0);
  to.out_size.assign(slot(columns_), 0);
  to.lse_error = 0;
  to.dq.clear();
  to.dq_error.clear();
  to.is_empty = to.is_open = false;
  score(at, scored_);
  to.visible = scored_.visible;
  softmax(at, scored_, to);
  to.scores = scored_.scores;
  to.score_error = scored_.error;
  if (narrow_ > 0)
    for (std::size_t j = 0; j < noise_.size(); ++j) to.score_error[j] += kNoise * noise_[j];
  if (to.is_empty && program_.empty != EmptyRule::uniform) {
    if (program_.has_gradients()) query_gradient(at, to);
    return to;
  }
  const std::vector<double> weights = to.weights, weight_error = to.weight_error;
  if (program_.is_matrix_wide()) across_rows(at, scored_, to);
  if (program_.axis == Axis::heads) across_heads(at, scored_, to);
  sum_values(at, scored_, to);
  if (program_.has_gradients()) query_gradient(at, to);
  if (program_.transposes_weights) {  // on their way to the values alone: shown, they are right
    to.weights = weights;
    to.weight_error = weight_error;
  }
  return to;
}

void Runner::empty_row(RowNumbers& to) const {
  to.is_empty = true;
  to.lse = program_.lse == LseRule::zero_if_empty ? 0 : -kInf;
  if (program_.empty == EmptyRule::nan) {
    std::fill(to.weights.begin(), to.weights.end(), kNan);
    std::fill(to.out.begin(), to.out.end(), kNan);
  } else if (program_.empty == EmptyRule::uniform) {
    std::fill(to.weights.begin(), to.weights.end(), 1.0 / static_cast<double>(shape_.kv_len));
    std::fill(to.weight_error.begin(), to.weight_error.end(), u_ + narrow_);
  }
}

double Runner::lse_of(const Scored& scored, double max, double sum) const {
  const double natural = max + math::log(sum);
  switch (program_.lse) {
    case LseRule::base2:
      return natural / math::log(2);
    case LseRule::without_max:
      return math::log(sum);
    case LseRule::only_max:
      return max;
    case LseRule::unscaled: {
      double most = -kInf, total = 0;
      for (std::size_t j = 0; j < scored.scores.size(); ++j)
        if (scored.included[j] != 0) most = std::max(most, scored.scores[j] / program_.scale);
      for (std::size_t j = 0; j < scored.scores.size(); ++j)
        if (scored.included[j] != 0) total += math::exp(scored.scores[j] / program_.scale - most);
      return most + math::log(total);
    }
    case LseRule::natural:
    case LseRule::zero_if_empty:
      break;
  }
  return natural;
}

void Runner::softmax(const RowIndex& at, Scored& scored, RowNumbers& to) {
  const auto n = scored.scores.size();
  if (program_.tiling == Tiling::tail_ignored) {
    const index_t end = shape_.kv_len / program_.tile * program_.tile;
    for (std::size_t j = slot(end); j < n; ++j) scored.included[j] = 0;
  }
  const bool has_sink = !program_.options.sinks.empty();
  const double sink = has_sink ? program_.options.sinks[slot(at.h)] : -kInf;
  double max = sink, padding = 0;
  for (std::size_t j = 0; j < n; ++j) {
    if (scored.included[j] == 0) continue;
    max = std::max(max, scored.scores[j]);
    if (std::isnan(scored.scores[j])) scored.is_poisoned = true;
  }
  if (program_.tiling == Tiling::tail_zero) {
    const index_t past = shape_.kv_len % program_.tile;
    padding = past == 0 ? 0 : static_cast<double>(program_.tile - past);
    max = std::max(max, 0.0);
  }
  noise_.assign(n, 0);
  if (scored.is_poisoned) max = kNan;
  if (max == -kInf) return empty_row(to);
  const double shift = program_.is_shifted ? max : 0;
  double sum = has_sink ? math::exp(sink - shift) : 0;
  if (padding > 0) sum += padding * math::exp(-shift);
  for (std::size_t j = 0; j < n; ++j) {
    if (scored.included[j] == 0) continue;
    const double e = held_exp(program_, math::exp(scored.scores[j] - shift));
    to.weights[j] = program_.axis == Axis::none ? scored.scores[j] : e;
    sum += e;
  }
  const double all = sum;
  sum = held_sum(program_, sum);
  to.lse = lse_of(scored, program_.is_shifted ? max : 0, sum);
  if (program_.axis != Axis::none && program_.is_divided)
    for (std::size_t j = 0; j < n; ++j)
      if (scored.included[j] != 0) to.weights[j] /= sum;
  if (program_.is_twice) apply_again(scored.included, to.weights);
  if (program_.tiling == Tiling::not_rescaled || program_.tiling == Tiling::neither_rescaled ||
      program_.tiling == Tiling::sum_not_rescaled || program_.tiling == Tiling::averaged)
    tile_weights(scored, sum, to);
  weight_errors(scored, max, to);
  if (program_.exps != Exps::wide)
    to.is_open =
        is_on_edge(program_, max, margin_of_largest(scored.scores, max, scored.error, noise_), all);
  for (std::size_t j = 0; j < n; ++j) {
    if (program_.hiding == Hiding::after && scored.visible[j] == 0)
      to.weights[j] = to.weight_error[j] = 0;
    to.weights[j] *= program_.weight_factor;
    to.weight_error[j] *= program_.weight_factor;
  }
}

void Runner::tile_weights(const Scored& scored, double sum, RowNumbers& to) const {
  const auto n = scored.scores.size(), tile = slot(program_.tile);
  double running = -kInf, largest_score = -kInf, unscaled_sum = 0;
  index_t tiles = 0;
  for (std::size_t j0 = 0; j0 < n; j0 += tile) {
    const std::size_t end = std::min(n, j0 + tile);
    double of_tile = -kInf, tile_sum = 0;
    for (std::size_t j = j0; j < end; ++j)
      if (scored.included[j] != 0) of_tile = std::max(of_tile, scored.scores[j]);
    running = std::max(running, of_tile);
    for (std::size_t j = j0; j < end; ++j) {
      if (scored.included[j] == 0) continue;
      const double reference = program_.tiling == Tiling::averaged ? of_tile : running;
      to.weights[j] = math::exp(scored.scores[j] - reference);
      tile_sum += to.weights[j];
    }
    if (of_tile > -kInf) ++tiles;
    unscaled_sum += tile_sum;
    if (program_.tiling != Tiling::averaged) continue;
    for (std::size_t j = j0; j < end; ++j)
      if (scored.included[j] != 0) to.weights[j] /= tile_sum;
  }
  largest_score = running;
  double divisor = program_.tiling == Tiling::not_rescaled ? sum : unscaled_sum;
  if (program_.tiling == Tiling::averaged) divisor = static_cast<double>(tiles);
  for (std::size_t j = 0; j < n; ++j) {
    if (scored.included[j] == 0) continue;
    if (program_.tiling == Tiling::sum_not_rescaled)
      to.weights[j] = math::exp(scored.scores[j] - largest_score);
    to.weights[j] /= divisor;
  }
}

void Runner::weight_errors(const Scored& scored, double max, RowNumbers& to) {
  const auto n = scored.scores.size();
  double tau = 0, spread = 0, common = 0, count = 0;
  const auto at_worst = [&](std::size_t j) {
    return scored.error[j] + u_ * (8 + std::max(0.0, max - scored.scores[j]));
  };
  for (std::size_t j = 0; j < n; ++j) {
    if (scored.included[j] == 0) continue;
    ++count;
    if (narrow_ > 0) {
      // The order of sums leaves two roundings of the factors, those of storing and shifting it.
      double& noise = noise_[j];
      const double root = std::sqrt(static_cast<double>(program_.d_k()));
      noise = narrow_ * (2 * scored.size[j] / root + 2 * std::fabs(scored.scores[j]) + 3 +
                         std::max(0.0, max - scored.scores[j]));
      if (program_.exps != Exps::wide && to.weights[j] > 0)  // of an exp in f16, half its spacing
        noise += 0x1p-25 * math::exp(-scored.scores[j]);
      const double moved = moved_weight(to.weights[j], noise);
      spread += moved * moved;
      common += to.weights[j] * scored.scores[j];
    }
    if (to.weights[j] > 0) tau += to.weights[j] * at_worst(j);
  }
  const double own = kNoise * std::sqrt(spread) + 3 * narrow_;
  for (std::size_t j = 0; j < n; ++j) {
    if (scored.included[j] == 0) continue;
    const double w = std::fabs(to.weights[j]);
    if (program_.axis == Axis::none) {
      to.weight_error[j] = scored.error[j] + kNoise * noise_[j];
      continue;
    }
    to.weight_error[j] = w * (positive_expm1(at_worst(j) + tau) + (8 + count) * u_);
    if (narrow_ > 0)
      to.weight_error[j] += kNoise * moved_weight(w, noise_[j]) +
                            w * (own + 2 * narrow_ * std::fabs(scored.scores[j] - common));
  }
  to.lse_error = tau + u_ * (24 + count + 2 * std::fabs(to.lse)) +
                 math::log1p(kNoise * std::sqrt(spread)) +
                 narrow_ * (2 * std::fabs(common) + std::fabs(to.lse) + 3);
}

void Runner::sum_values(const RowIndex& at, const Scored& scored, RowNumbers& to) {
  const index_t n = shape_.kv_len;
  double total = 0, mean = 0, keys = 0;
  std::vector<char> is_poisoned;  // by column: 0 * NaN is NaN where the NaN is
  if (program_.reads_hidden_values) is_poisoned.assign(slot(columns_), 0);
  for (index_t j = 0; j < n; ++j) {
    const std::size_t s = slot(j);
    const double w = to.weights[s];
    if (w == 0) {
      if (!program_.reads_hidden_values || scored.visible[s] != 0) continue;
      const double* hidden = value(at, j);
      for (index_t d = 0; d < columns_; ++d)
        if (!std::isfinite(hidden[d])) is_poisoned[slot(d)] = 1;
      continue;
    }
    total += w;
    ++keys;
    mean += w * (scored.included[s] != 0 ? scored.scores[s] : 0);
    add_value(w, value(at, j), columns_, to.out.data(), to.out_size.data());
  }
  if (program_.accumulates_f16) sum_in_f16(at, to);
  // A common factor of all weights moves out by a multiple of itself alone: weights that add to 1
  // are compared by how far each value is from out.
  const bool is_average = std::fabs(total - 1) < 1e-3 && !program_.accumulates_f16;
  value_errors(at, scored, is_average, mean, to);
  if (is_average && program_.axis == Axis::row && !program_.is_matrix_wide())
    keep_within(at, scored, to);
  for (std::size_t e = 0; e < slot(columns_); ++e) {
    to.out_error[e] += u_ * (keys + 24) * to.out_size[e];
    if (program_.accumulates_f16)
      to.out_error[e] += half_ulp(DType::f16) * 4 * std::sqrt(keys + 4) * to.out_size[e];
    if (scored.is_poisoned || (!is_poisoned.empty() && is_poisoned[e] != 0)) to.out[e] = kNan;
  }
}

// However wrong the weights, they add to 1: out stays among the values that the row sees.
void Runner::keep_within(const RowIndex& at, const Scored& scored, RowNumbers& to) {
  bool is_wide = false;  // else there is nothing to keep in
  for (std::size_t e = 0; e < slot(columns_); ++e)
    is_wide = is_wide || !(to.out_error[e] < to.out_size[e] / 16);
  if (!is_wide) return;
  const double none = program_.options.sinks.empty() ? kInf : 0;  // a sink pulls towards 0
  std::vector<double> low(slot(columns_), none), high(slot(columns_), -none);
  for (index_t j = 0; j < shape_.kv_len; ++j) {
    if (scored.included[slot(j)] == 0) continue;
    const double* v = value(at, j);
    for (std::size_t e = 0; e < slot(columns_); ++e) {
      low[e] = std::min(low[e], v[e]);
      high[e] = std::max(high[e], v[e]);
    }
  }
  for (std::size_t e = 0; e < slot(columns_); ++e) {
    const double most = std::max(high[e] - to.out[e], to.out[e] - low[e]) +
                        8 * narrow_ * std::max(std::fabs(low[e]), std::fabs(high[e]));
    if (most < to.out_error[e]) to.out_error[e] = most;
  }
}

void Runner::sum_in_f16(const RowIndex& at, RowNumbers& to) {
  std::fill(to.out.begin(), to.out.end(), 0.0);
  double most = 0;
  for (const double w : to.weights) most = std::max(most, w);
  for (index_t j = 0; j < shape_.kv_len; ++j) {
    const double w = to.weights[slot(j)] / most;
    if (w == 0) continue;
    const double* v = value(at, j);
    for (index_t d = 0; d < columns_; ++d) {
      double& sum = to.out[slot(d)];
      sum = in_f16(sum + w * v[d]);
    }
  }
  for (double& x : to.out) x *= most;
}

// What errors of the weights and roundings of the products do to out.
void Runner::value_errors(const RowIndex& at, const Scored& scored, bool is_average, double mean,
                          RowNumbers& to) {
  std::vector<double> centre(slot(columns_), 0), spread(slot(columns_)), common(slot(columns_));
  if (is_average) centre = to.out;
  for (index_t j = 0; j < shape_.kv_len; ++j) {
    const std::size_t s = slot(j);
    const double w = to.weights[s];
    if (w == 0) continue;
    const double* v = value(at, j);
    if (narrow_ == 0) {
      add_distance(std::fabs(to.weight_error[s]), v, centre.data(), columns_, to.out_error.data());
      continue;
    }
    const double moved = w * positive_expm1(scored.error[s] + 16 * u_);
    const double noise = program_.axis == Axis::none ? noise_[s] : moved_weight(w, noise_[s]);
    const double lean = scored.included[s] != 0 ? w * (scored.scores[s] - mean) : 0;
    add_distance(std::fabs(moved), v, centre.data(), columns_, to.out_error.data());
    for (std::size_t e = 0; e < slot(columns_); ++e) {
      const double away = v[e] - centre[e], of_weight = narrow_ * w * v[e];
      spread[e] += noise * noise * away * away + 4 * of_weight * of_weight;
      common[e] += lean * away;
    }
  }
  for (std::size_t e = 0; narrow_ > 0 && e < slot(columns_); ++e)
    to.out_error[e] +=
        kNoise * std::sqrt(spread[e]) + 2 * narrow_ * (std::fabs(common[e]) + std::fabs(to.out[e]));
}

}  // namespace glasshead::doctor
