#include "wire/case_values.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/mask_plan.h"
#include "wire/case_reader.h"
#include "wire/decimal.h"

namespace glasshead::wire {
namespace {

// One row of weights per element of the leading axes, or of anything shaped like them.
struct Rows {
  index_t count = 0;
  index_t length = 0;
  std::vector<index_t> shape;  // of one number per row
};

Rows rows_of(const TraceTensor& tensor) {
  Rows rows;
  rows.shape = tensor.shape;
  rows.length = rows.shape.back();
  rows.shape.pop_back();
  rows.count = 1;
  for (const index_t extent : rows.shape) rows.count *= extent;
  return rows;
}

template <class OfRow>
TraceTensor per_row(const TraceTensor& weights, const OfRow& of_row) {
  const Rows rows = rows_of(weights);
  TraceTensor out;
  out.shape = rows.shape;
  for (index_t row = 0; row < rows.count; ++row)
    out.values.push_back(
        of_row(weights.values.data() + static_cast<std::size_t>(row * rows.length), rows.length));
  return out;
}

double sum_of(const double* w, index_t n) {
  double sum = 0;
  for (index_t j = 0; j < n; ++j) sum += w[j];
  return sum;
}

double largest_of(const double* w, index_t n) { return n == 0 ? 0 : *std::max_element(w, w + n); }

double lead_of(const double* z, index_t n) {
  if (n < 2) return 0;
  std::vector<double> sorted(z, z + n);
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() - 1] - sorted[sorted.size() - 2];
}

// sqrt of the sum over i, j of (w_i [i = j] - w_i w_j)².
double jacobian_norm_of(const double* w, index_t n) {
  double sum = 0;
  for (index_t i = 0; i < n; ++i)
    for (index_t j = 0; j < n; ++j) {
      // w_i(1 - w_i) as w_i times the others' sum: 1 - w_i would lose a saturated row's digits.
      double others = 0;
      if (i == j)
        for (index_t other = 0; other < n; ++other) others += other == i ? 0 : w[other];
      const double entry = i == j ? w[i] * others : -w[i] * w[j];
      sum += entry * entry;
    }
  return std::sqrt(sum);
}

const TracedStep* find_step(const Trace& trace, std::string_view tap) {
  for (const TracedStep& step : trace.steps)
    if (step.step.tap == tap) return &step;
  return nullptr;
}

// Length of out minus the value of each row's heaviest key (the first of equals).
std::optional<TraceTensor> distances(const Trace& trace, const std::string& prefix) {
  const TracedStep* out_step = find_step(trace, prefix + "out");
  if (out_step == nullptr || out_step->step.reads.size() < 2) return std::nullopt;
  const TraceTensor* w = trace.find(out_step->step.reads[0]);
  const TraceTensor* v = trace.find(out_step->step.reads[1]);
  const TraceTensor& o = out_step->value;
  if (w == nullptr || v == nullptr || w->shape.size() < 2 || v->shape.size() < 2)
    return std::nullopt;
  const Rows rows = rows_of(*w);
  const index_t queries = w->shape[w->shape.size() - 2];
  const index_t keys = rows.length;
  const index_t size = v->shape.back();
  const index_t heads = queries == 0 ? 0 : rows.count / queries;
  const auto kv_heads = v->shape.size() == 3 ? v->shape[0] : index_t{1};
  if (keys == 0 || kv_heads == 0 || heads % kv_heads != 0) return std::nullopt;
  TraceTensor out;
  out.shape = rows.shape;
  for (index_t row = 0; row < rows.count; ++row) {
    const double* weights = w->values.data() + static_cast<std::size_t>(row * keys);
    const index_t heaviest = std::max_element(weights, weights + keys) - weights;
    const index_t group = row / queries / (heads / kv_heads);
    double sum = 0;
    for (index_t d = 0; d < size; ++d) {
      const double gap = o.values[static_cast<std::size_t>(row * size + d)] -
                         v->values[static_cast<std::size_t>((group * keys + heaviest) * size + d)];
      sum += gap * gap;
    }
    out.values.push_back(std::sqrt(sum));
  }
  return out;
}

TraceTensor single(double x) { return {{}, {x}}; }

TraceTensor standard_deviation(const TraceTensor& tensor) {
  const auto count = static_cast<double>(tensor.values.size());
  double mean = 0;
  for (const double x : tensor.values) mean += x;
  mean /= count;
  double sum = 0;
  for (const double x : tensor.values) sum += (x - mean) * (x - mean);
  return single(std::sqrt(sum / count));
}

// The tap of a second run in which the exponentials keep the row's maximum.
std::optional<TraceTensor> unshifted(const Case& c, const std::string& tap) {
  std::vector<Step> list = case_steps(c);
  for (Step& step : list)
    if (step.op != nullptr && std::string_view(step.op->id) == "exp") set_number(step, "shift", 0);
  const Trace trace = run_steps(list, c.inputs);
  const TraceTensor* found = trace.find(tap);
  return found == nullptr ? std::nullopt : std::optional<TraceTensor>(*found);
}

std::optional<TraceTensor> derived(const Case& c, const Trace& trace, const std::string& prefix,
                                   std::string_view name) {
  if (name == "exp_unshifted") return unshifted(c, prefix + "exp");
  if (name == "row_sum_unshifted") return unshifted(c, prefix + "row_sum");
  if (name == "distance") return distances(trace, prefix);
  if (name == "sqrt_d_k") {
    const TracedStep* scores = find_step(trace, prefix + "scores");
    const TraceTensor* q = scores == nullptr ? nullptr : trace.find(scores->step.reads[0]);
    if (q == nullptr) return std::nullopt;
    return single(std::sqrt(static_cast<double>(q->shape.back())));
  }
  if (name == "scores_std" || name == "scaled_std") {
    const TraceTensor* pairs = trace.find(prefix + (name == "scores_std" ? "scores" : "scaled"));
    if (pairs == nullptr || pairs->values.empty()) return std::nullopt;
    return standard_deviation(*pairs);
  }
  if (name == "mask_additive") {
    const TraceTensor* masked = trace.find(prefix + "masked");
    if (masked == nullptr) return std::nullopt;
    TraceTensor out = *masked;
    for (double& x : out.values) x = x == -HUGE_VAL ? x : 0;
    return out;
  }
  if (name == "lead") {
    const TraceTensor* scaled = trace.find(prefix + "scaled");
    if (scaled == nullptr || scaled->shape.empty()) return std::nullopt;
    return per_row(*scaled, lead_of);
  }
  const TraceTensor* weights = trace.find(prefix + "weights");
  if (weights == nullptr || weights->shape.empty()) return std::nullopt;
  if (name == "weights_sum") return per_row(*weights, sum_of);
  if (name == "largest_weight") return per_row(*weights, largest_of);
  if (name == "jacobian_norm") return per_row(*weights, jacobian_norm_of);
  return std::nullopt;
}

std::string list_of(const std::vector<double>& values) {
  std::string text;
  constexpr std::size_t kMostShown = 12;
  for (std::size_t n = 0; n < values.size() && n < kMostShown; ++n)
    text += (n == 0 ? "" : " ") + shortest(values[n]);
  return values.size() > kMostShown ? text + " …" : text;
}

index_t rows_of_input(const Case& c, const std::string& tap, index_t otherwise) {
  for (const auto& [name, tensor] : c.inputs)
    if (name == tap && tensor.shape.size() > 1) return tensor.shape[tensor.shape.size() - 2];
  return otherwise;
}

// Marks the rows that see no key, asking the mask alone: nothing is computed, so that a large case
// costs a row of flags.
void mark_empty_rows(const Case& c, const nn::Attention& attention, bool is_cross,
                     std::vector<bool>& is_empty) {
  const AttentionOptions& options = attention.options;
  if (!options.sinks.empty()) return;  // a sink takes what no key takes
  const auto queries = static_cast<index_t>(is_empty.size());
  PairShape shape{1, attention.heads, queries, queries};
  if (is_cross) shape.kv_len = rows_of_input(c, "context", queries);
  if (!attention.given_k.empty()) shape.kv_len = rows_of_input(c, attention.given_k, queries);
  const MaskPlan plan(options, shape);
  std::vector<std::uint8_t> allowed(static_cast<std::size_t>(shape.kv_len));
  for (index_t h = 0; h < shape.heads; ++h)
    for (index_t i = 0; i < queries; ++i) {
      const KeyRange keys = plan.key_range(0, h, i);
      if (keys.is_empty() || plan.fill_row(0, h, i, keys, allowed.data()) == 0)
        is_empty[static_cast<std::size_t>(i)] = true;
    }
}

}  // namespace

std::vector<std::string_view> derived_values() {
  return {"exp_unshifted", "row_sum_unshifted", "weights_sum", "largest_weight",
          "distance",      "jacobian_norm",     "sqrt_d_k",    "scores_std",
          "scaled_std",    "mask_additive",     "lead"};
}

std::optional<TraceTensor> value_of(const Case& c, const Trace& trace, const std::string& tap) {
  if (const TraceTensor* found = trace.find(tap)) return *found;
  const std::size_t dot = tap.rfind('.');
  const std::string prefix = dot == std::string::npos ? "" : tap.substr(0, dot + 1);
  return derived(c, trace, prefix, std::string_view(tap).substr(prefix.size()));
}

std::optional<std::vector<double>> numbers_at(const TraceTensor& tensor,
                                              const std::vector<index_t>& index) {
  if (index.size() > tensor.shape.size()) return std::nullopt;
  std::size_t first = 0;
  std::size_t count = tensor.values.size();
  for (std::size_t axis = 0; axis < index.size(); ++axis) {
    if (index[axis] < 0 || index[axis] >= tensor.shape[axis]) return std::nullopt;
    count /= static_cast<std::size_t>(tensor.shape[axis]);
    first += static_cast<std::size_t>(index[axis]) * count;
  }
  const auto begin = tensor.values.begin() + static_cast<std::ptrdiff_t>(first);
  return std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(count));
}

bool equals_printed(double x, std::string_view text, double factor) {
  const std::optional<double> printed = finite_number(text);
  if (!printed || std::isnan(x)) return false;
  // Half a unit of the last place: "0.50" has 2, "1.9e-13" has 1 + 13.
  const std::size_t e = text.find_first_of("eE");
  const std::string_view digits = text.substr(0, e);
  const std::size_t point = digits.find('.');
  const std::size_t places = point == std::string_view::npos ? 0 : digits.size() - point - 1;
  std::string half = "0.5e" + std::to_string(-static_cast<long long>(places));
  if (e != std::string_view::npos) {
    const double exponent = finite_number(text.substr(e + 1)).value_or(0);
    half =
        "0.5e" + std::to_string(static_cast<long long>(exponent) - static_cast<long long>(places));
  }
  // A tie is both roundings'; 1e-9 of a unit is for its own rounding in binary.
  return std::fabs(x * factor - *printed) <= finite_number(half).value_or(0) * (1 + 1e-9);
}

std::vector<std::string> rows_without_keys(const Case& c) {
  std::vector<bool> is_empty(c.query_labels.size(), false);
  for (const nn::Block& block : c.network.blocks) {
    mark_empty_rows(c, block.attention, block.is_cross, is_empty);
    if (block.cross_attention) mark_empty_rows(c, *block.cross_attention, true, is_empty);
  }
  std::vector<std::string> labels;
  for (std::size_t row = 0; row < is_empty.size(); ++row)
    if (is_empty[row]) labels.push_back(c.query_labels[row]);
  return labels;
}

ClaimResult check_claim(const Case& c, const Claim& claim) {
  std::vector<Problem> problems;
  const std::optional<Case> edited = edit_case(c, claim.with, problems);
  if (!edited) return {false, problems[0].where + ": " + problems[0].what};
  if (!claim.is_refused.empty()) {
    const std::vector<std::string> rows = rows_without_keys(*edited);
    if (!rows.empty() && rows[0] == claim.is_refused) return {true, {}};
    return {false, rows.empty() ? "every row has a key" : "the first row is " + rows[0]};
  }
  const std::optional<TraceTensor> value = value_of(*edited, run_case(*edited), claim.tap);
  if (!value) return {false, "there is no " + claim.tap};
  const std::optional<std::vector<double>> numbers = numbers_at(*value, claim.index);
  if (!numbers) return {false, claim.tap + " is " + shape_text(value->shape)};
  bool holds = true;
  if (claim.is_unchanged) {
    const std::optional<TraceTensor> before = value_of(c, run_case(c), claim.tap);
    const auto old = before ? numbers_at(*before, claim.index) : std::nullopt;
    holds = old && *old == *numbers;
  } else if (claim.between) {
    for (const double x : *numbers)
      holds = holds && x >= claim.between->first && x <= claim.between->second;
  } else {
    holds = claim.is.size() == numbers->size();
    for (std::size_t n = 0; holds && n < claim.is.size(); ++n)
      holds = equals_printed((*numbers)[n], claim.is[n]);
  }
  return {holds, holds ? "" : list_of(*numbers)};
}

std::vector<ClaimResult> check_claims(const Case& c) {
  std::vector<ClaimResult> results;
  for (const Claim& claim : c.claims) results.push_back(check_claim(c, claim));
  return results;
}

}  // namespace glasshead::wire
