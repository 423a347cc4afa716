// A row of a program up to its scores: which keys it sees, products, scale, cap, bias, hiding.
#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "doctor/program_rows.h"

namespace glasshead::doctor {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr index_t kNothing = -1;  // the row of a slot that nothing was written to

AttentionOptions plan_options(const Program& program) {
  AttentionOptions options = program.options;
  if (!program.does_bias_hide) options.bias = {};
  return options;
}

nn::Rope rope_of(const Program& program) {
  nn::Rope rope;
  if (!program.rotary) return rope;
  rope.pairing = program.rotary->is_adjacent ? nn::RopePairing::adjacent : nn::RopePairing::halves;
  rope.base = program.rotary->base;
  rope.rotary = program.rotary->size;
  return rope;
}

// A product and the sum of its terms' sizes, each in four parts.
struct Sums {
  double sum = 0, size = 0;
};
Sums multiply(const double* a, const double* b, index_t n) {
  double sum[4] = {}, size[4] = {};
  index_t e = 0;
  for (; e + 4 <= n; e += 4)
    for (index_t part = 0; part < 4; ++part) {
      const double term = a[e + part] * b[e + part];
      sum[part] += term;
      size[part] += std::fabs(term);
    }
  for (; e < n; ++e) {
    sum[0] += a[e] * b[e];
    size[0] += std::fabs(a[e] * b[e]);
  }
  return {(sum[0] + sum[1]) + (sum[2] + sum[3]), (size[0] + size[1]) + (size[2] + size[3])};
}

double capped(double score, double cap) { return cap * math::tanh(score / cap); }

// A row of so many scores, none of which is visible yet.
template <class Scored>
void clear(Scored& to, std::size_t n) {
  to.scores.assign(n, -kInf);
  to.error.assign(n, 0);
  to.size.assign(n, 0);
  to.included.assign(n, 0);
  to.visible.assign(n, 0);
  to.is_poisoned = false;
}

// Rounded to f32 where the program computes in it.
double stored(double x, DType arithmetic) {
  if (arithmetic == DType::f64 || !(std::fabs(x) <= largest(DType::f32))) return x;
  return static_cast<double>(static_cast<float>(x));
}

}  // namespace

Runner::Runner(const Program& program, index_t columns)
    : program_(program),
      shape_(program.pairs()),
      columns_(program.d_out != nullptr ? program.d_v() : std::min(columns, program.d_v())),
      plan_(plan_options(program), shape_),
      bias_(program.options, shape_),
      u_(half_ulp(program.arithmetic == DType::f64 ? DType::f64 : DType::f32)),
      narrow_(program.arithmetic == DType::bf16 || program.arithmetic == DType::f16
                  ? half_ulp(program.arithmetic)
                  : 0),
      rope_(rope_of(program)) {
  pairs_ = [this](index_t b, index_t h, index_t i, index_t j) { return plan_.allowed(b, h, i, j); };
  for (const PairEdit& edit : program_.pair_edits) pairs_ = edit(pairs_);
  if (program_.missing_keys > 0)
    pairs_ = [before = pairs_, end = shape_.kv_len - program_.missing_keys](index_t b, index_t h,
                                                                            index_t i, index_t j) {
      return j < end && before(b, h, i, j);
    };
  for (const Bias::Term& term : program_.options.bias.terms())
    has_dense_bias_ = has_dense_bias_ || std::holds_alternative<Bias::Dense>(term);
  is_given_bias_ = has_dense_bias_ && program_.options.bias.terms().size() == 1;
  if (program_.rotary)
    turns_ = program_.turns != nullptr ? program_.turns->of(rope_, program_.d_k())
                                       : std::make_shared<TurnTable>(rope_, program_.d_k());
  if (program_.rotary && program_.d_k() > 0)
    turn_ =
        2 * math::pow(program_.rotary->base,
                      -2 / static_cast<double>(program_.rotary->size == 0 ? program_.d_k()
                                                                          : program_.rotary->size));
  const auto most = slot(std::max({program_.d_k(), program_.d_v(), program_.q->extent(3)}));
  query_.resize(most);
  key_.resize(most);
  value_.resize(most);
}

index_t Runner::kv_head(index_t h) const {
  switch (program_.grouping) {
    case Grouping::tiled:
    case Grouping::keys_tiled:
      return h % program_.kv_heads();
    case Grouping::first:
      return 0;
    case Grouping::adjacent:
    case Grouping::keys_interleaved:
      break;
  }
  return h / program_.group();
}

index_t Runner::kv_row(index_t h, index_t j) const {
  const index_t group = program_.group(), n = shape_.kv_len;
  if (program_.grouping == Grouping::keys_interleaved) j = (h % group * n + j) / group;
  if (program_.grouping == Grouping::keys_tiled) j = (j * group + h / program_.kv_heads()) % n;
  if (program_.early_keys == 0 || j + 1 < n - program_.early_keys) return j;
  if (j + 1 < n) return j + 1;
  return program_.is_last_slot_zero ? kNothing : j;
}

index_t Runner::query_position(index_t b, index_t i) const {
  const index_t at =
      program_.query_starts.empty() ? plan_.position(i) : program_.query_starts[slot(b)] + i;
  return at + program_.query_offset;
}

// |q| |k| of the row's query and the key that was turned last: what a pair of coordinates loses to
// rounding when it turns goes with the length of the pair, not with one coordinate of it.
double Runner::product_of_lengths() const {
  double q = 0, k = 0;
  for (std::size_t e = 0; e < slot(program_.d_k()); ++e) {
    q += query_[e] * query_[e];
    k += key_[e] * key_[e];
  }
  return std::sqrt(q * k);
}

void Runner::turn(double* x, index_t position) { turns_->turn(x, position, rope_); }

const double* Runner::key(const RowIndex& at, index_t j) {
  const index_t b = program_.is_first_batch ? 0 : at.b;
  const Place place{kv_head(at.h), kv_row(at.h, j), 0};
  if (place.l == kNothing) {
    std::fill(key_.begin(), key_.end(), 0.0);
    return key_.data();
  }
  const double* row = program_.k->row(b, place, program_.k_order, key_.data());
  if (!program_.rotary || !program_.turns_k) return row;
  if (row != key_.data()) std::copy_n(row, program_.d_k(), key_.data());
  // A key in another's slot was turned before it was written there.
  const index_t position = program_.early_keys > 0 ? place.l : j;
  turn(key_.data(), position);
  if (position < program_.turned_twice) turn(key_.data(), position);
  return key_.data();
}

const double* Runner::value(const RowIndex& at, index_t j) {
  const index_t b = program_.is_first_batch ? 0 : at.b;
  const index_t own = kv_row(at.h, j);
  if (own == kNothing) {
    std::fill(value_.begin(), value_.end(), 0.0);
    return value_.data();
  }
  const index_t shifted = std::clamp<index_t>(own + program_.value_shift, 0, shape_.kv_len - 1);
  const double* row =
      program_.v->row(b, {kv_head(at.h), shifted, 0}, program_.v_order, value_.data());
  if (!program_.rotary || !program_.turns_v || program_.d_v() != program_.d_k()) return row;
  if (row != value_.data()) std::copy_n(row, program_.d_v(), value_.data());
  turn(value_.data(), program_.early_keys > 0 ? own : j);
  return value_.data();
}

double Runner::product(const RowIndex& at, index_t j, const double* query, double& size) {
  const index_t d_k = program_.d_k();
  Sums sums;
  if (program_.product == Product::untransposed) {
    for (index_t e = 0; e < d_k; ++e) {
      const double term = query[e] * key(at, e)[j];
      sums.sum += term;
      sums.size += std::fabs(term);
    }
  } else if (program_.product == Product::keys_queries) {
    const double* other = program_.q->row(at.b, {at.h, j, 0}, program_.q_order, key_.data());
    if (program_.rotary && program_.turns_q) {
      if (other != key_.data()) std::copy_n(other, d_k, key_.data());
      turn(key_.data(), query_position(at.b, j));
      if (program_.turns_q_twice) turn(key_.data(), query_position(at.b, j));
      other = key_.data();
    }
    sums = multiply(query, other, d_k);
  } else {
    sums = multiply(query, key(at, j), d_k);
  }
  size = sums.size;
  return sums.sum;
}

// score + number as the arithmetic stores it.
double Runner::added(double score, double number, double& error) const {
  const DType type = program_.arithmetic;
  const double sum = stored(score + number, type);
  // A number so large that the score is lost in it leaves nothing to be rounded.
  const bool is_absorbed =
      stored(score + number - error, type) == sum && stored(score + number + error, type) == sum;
  error = is_absorbed && std::fabs(number) > 1e3 ? 0 : error + 2 * u_ * std::fabs(sum);
  return sum;
}

double Runner::biased(const RowIndex& at, index_t j, double score, double& error) const {
  if (bias_.is_empty()) return score;
  index_t i = at.i, from = j + program_.bias_shift;
  if (has_dense_bias_) from = std::clamp<index_t>(from, 0, shape_.kv_len - 1);
  if (program_.is_bias_transposed) std::swap(i, from);
  const index_t h = program_.is_bias_of_first_head ? 0 : at.h;
  double bias = bias_.at<double>(at.b, h, i, from);
  if (bias == -kInf || bias <= program_.hidden_from) {
    if (program_.hiding != Hiding::select || !program_.does_bias_hide) return score;
    return -kInf;
  }
  bias *= program_.bias_factor;
  // Numbers that were given are what they are; computed ones are rounded. Where they are so large
  // that no score is left beside them, equal ones stay equal.
  constexpr double kHuge = 1e30;
  if (!is_given_bias_ || (program_.bias_factor != 1 && std::fabs(bias) < kHuge))
    error += u_ * 3 * std::fabs(bias);
  return added(score, bias, error);
}

// Which keys the row sees; by the plan at once where nothing edits its pairs.
void Runner::see(const RowIndex& at, Scored& to) {
  const index_t n = shape_.kv_len;
  if (program_.pair_edits.empty() && program_.missing_keys == 0) {
    flags_.assign(slot(n), 0);
    plan_.fill_row(at.b, at.h, at.i, plan_.key_range(at.b, at.h, at.i), flags_.data());
    std::copy(flags_.begin(), flags_.end(), to.visible.begin());
    return;
  }
  for (index_t j = 0; j < n; ++j) to.visible[slot(j)] = pairs_(at.b, at.h, at.i, j) ? 1 : 0;
}

void Runner::read_query(const RowIndex& at) {
  if (program_.product == Product::keys_queries) {
    std::copy_n(key({at.b, at.h, 0}, at.i), program_.d_k(), query_.data());
    return;
  }
  const double* query = program_.q->row(at.b, {at.h, at.i, 0}, program_.q_order, query_.data());
  if (query != query_.data()) std::copy_n(query, program_.d_k(), query_.data());
  const index_t position = query_position(at.b, at.i);
  if (program_.rotary && program_.turns_q) turn(query_.data(), position);
  if (program_.rotary && program_.turns_q_twice) turn(query_.data(), position);
}

void Runner::score(const RowIndex& at, Scored& to) {
  const index_t n = shape_.kv_len;
  clear(to, slot(n));
  read_query(at);
  const double scale = program_.scale, cap = program_.options.softcap;
  const auto cap_at = [&](CapPlace place, double x) {
    return cap > 0 && program_.cap_place == place ? capped(x, cap) : x;
  };
  const double value = program_.hidden_value;
  const auto position = static_cast<double>(query_position(at.b, at.i));
  const int turns = program_.turned_twice > 0 || program_.turns_q_twice ? 2 : 1;  // at most
  see(at, to);
  for (index_t j = 0; j < n; ++j) {
    const std::size_t s = slot(j);
    const bool is_visible = to.visible[s] != 0;
    const bool is_hidden_at_once = program_.hiding == Hiding::select && !is_visible;
    if (is_hidden_at_once) {
      if (cap > 0 && program_.cap_place == CapPlace::after_mask) {
        to.scores[s] = -cap;
        to.included[s] = 1;
      }
      if (!program_.reads_hidden_keys && !program_.reads_hidden_values) continue;
      double ignored = 0;
      if (program_.reads_hidden_keys && !std::isfinite(product(at, j, query_.data(), ignored)))
        to.is_poisoned = true;
      continue;
    }
    double size = 0;
    const double raw = product(at, j, query_.data(), size);
    if (program_.rotary) size += product_of_lengths();
    to.size[s] = std::fabs(scale) * size;
    double x = cap_at(CapPlace::before_scale, raw) * scale;
    double error = u_ * (static_cast<double>(program_.d_k() + 4) * to.size[s] + 8 * std::fabs(x));
    if (program_.rotary)
      error += u_ * turns * turn_ * (std::fabs(position) + static_cast<double>(j)) * to.size[s];
    x = biased(at, j, cap_at(CapPlace::after_scale, x), error);
    x = cap_at(CapPlace::after_mask, cap_at(CapPlace::after_bias, x));  // one of them
    if (program_.hiding == Hiding::numbered && is_visible) x += 1;
    if (program_.hiding == Hiding::times_infinity) to.is_poisoned = true;
    if (!is_visible) {
      if (program_.hiding == Hiding::multiplied) x = 0;
      if (program_.hiding == Hiding::set) x = value;
      if (program_.hiding == Hiding::added || program_.hiding == Hiding::scaled)
        x = added(x, program_.hiding == Hiding::scaled ? value * scale : value, error);
      else if (program_.hiding != Hiding::after && program_.hiding != Hiding::numbered)
        error = 0;
    }
    to.scores[s] = x;
    to.error[s] = error;
    to.included[s] = 1;
  }
}

}  // namespace glasshead::doctor
