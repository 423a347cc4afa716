#include "wire/fused_check.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/bias_plan.h"
#include "core/mask_plan.h"
#include "core/scale.h"
#include "core/steps.h"
#include "glasshead/attention.h"
#include "wire/decimal.h"

namespace glasshead::wire {
namespace {

// Multiply-adds of one attention that are made again for the check: well below a second even where
// the fused multiply-add is a function (WebAssembly).
constexpr index_t kMostWork = index_t{1} << 20;
constexpr double kRoundoff = 0x1p-53;

bool is_op(const Step& step, const char* id) {
  return step.op != nullptr && step.op == find_attention_op(id);
}

ConstTensor<4> view(const TraceTensor& tensor) {
  ConstTensor<4>::Shape shape{1, 1, 1, 1};
  const std::size_t rank = std::min<std::size_t>(tensor.shape.size(), shape.size());
  std::copy_n(tensor.shape.end() - static_cast<std::ptrdiff_t>(rank), rank,
              shape.end() - static_cast<std::ptrdiff_t>(rank));
  return {tensor.values.data(), DType::f64, shape, row_major<4>(shape)};
}

std::vector<double> run_attend(const TraceTensor& q, const TraceTensor& k, const TraceTensor& v,
                               const AttentionOptions& options) {
  const ConstTensor<4> queries = view(q), values = view(v);
  const ConstTensor<4>::Shape shape{queries.shape[0], queries.shape[1], queries.shape[2],
                                    values.shape[3]};
  std::vector<double> out(static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * shape[3]));
  attend(queries, view(k), values, {out.data(), DType::f64, shape, row_major<4>(shape)}, options);
  return out;
}

TraceTensor absolute(TraceTensor tensor) {
  for (double& x : tensor.values) x = std::fabs(x);
  return tensor;
}

// max_j (|scale| |q_i|.|k_j| + |bias_ij|) over the keys that row i sees.
double largest_terms(const ConstTensor<4>& q, const ConstTensor<4>& k, double scale,
                     const BiasPlan& bias, const MaskPlan& mask, index_t b, index_t h, index_t i) {
  double largest = 0;
  const index_t g = h / (q.shape[1] / k.shape[1]);
  for (index_t j = 0; j < k.shape[2]; ++j) {
    if (!mask.allowed(b, h, i, j)) continue;
    double sum = 0;
    for (index_t d = 0; d < q.shape[3]; ++d)
      sum += std::fabs(q.load(b, h, i, d) * k.load(b, g, j, d));
    sum *= std::fabs(scale);
    if (!bias.is_empty()) sum += std::fabs(bias.at<double>(b, h, i, j));
    if (!(sum <= largest)) largest = sum;  // a NaN stays
  }
  return largest;
}

bool are_same(const Step& a, const Step& b) {
  return a.tap == b.tap && a.op == b.op && a.reads == b.reads && a.numbers == b.numbers;
}

}  // namespace

FusedCheck::FusedCheck(std::vector<Step> list) : list_(std::move(list)) {
  for (std::size_t n = 0; n < list_.size(); ++n) {
    if (leaf_of(list_[n].tap) != "scores") continue;
    Attention attention;
    attention.first = n;
    const std::string prefix = prefix_of(list_[n].tap);
    for (std::size_t m = n; m < list_.size() && attention.out.empty(); ++m) {
      const Step& step = list_[m];
      if (prefix_of(step.tap) != prefix || !is_op(step, "out") || step.reads.size() < 2) continue;
      attention.out = step.tap;
      attention.v = step.reads[1];
    }
    const Step& scores = list_[n];
    if (!is_op(scores, "scores") || scores.reads.size() != 2 || !scores.options ||
        attention.out.empty()) {
      is_left_out_ = true;
      continue;
    }
    attention.q = scores.reads[0];
    attention.k = scores.reads[1];
    needed_.insert({attention.q, attention.k, attention.v});
    attentions_.push_back(std::move(attention));
  }
}

// Nothing between scores and out was edited.
bool FusedCheck::is_library_s(const Attention& attention, index_t d_k) const {
  const Step& scores = list_[attention.first];
  const std::vector<Step> own = attention_steps(
      *scores.options, d_k, {prefix_of(scores.tap), attention.q, attention.k, attention.v});
  if (attention.first + own.size() > list_.size()) return false;
  return std::equal(own.begin(), own.end(),
                    list_.begin() + static_cast<std::ptrdiff_t>(attention.first), are_same);
}

void FusedCheck::see(const std::string& tap, const TraceTensor& value) {
  if (seen_ < attentions_.size() && attentions_[seen_].out == tap && !is_left_out_) {
    compare(attentions_[seen_], value);
    ++seen_;
  }
  if (!needed_.contains(tap) || is_left_out_) return;
  if (value.values.size() > static_cast<std::size_t>(kMostWork)) {
    is_left_out_ = true;
    values_.clear();
    return;
  }
  values_[tap] = value;
}

void FusedCheck::compare(const Attention& attention, const TraceTensor& out) {
  const TraceTensor &q = values_[attention.q], &k = values_[attention.k], &v = values_[attention.v];
  const ConstTensor<4> queries = view(q), keys = view(k), values = view(v);
  const PairShape shape{queries.shape[0], queries.shape[1], queries.shape[2], keys.shape[2]};
  const AttentionOptions& options = *list_[attention.first].options;
  const index_t size = queries.shape[3] + values.shape[3];
  const double work = static_cast<double>(shape.batch * shape.heads * shape.q_len) *
                      static_cast<double>(shape.kv_len * size);
  if (work > static_cast<double>(kMostWork) || !is_library_s(attention, queries.shape[3]) ||
      !check(queries, keys, values, options).empty()) {
    is_left_out_ = true;
    return;
  }
  const std::vector<double> got = run_attend(q, k, v, options);
  const std::vector<double> sizes = run_attend(q, k, absolute(v), options);
  const BiasPlan bias(options, shape);
  const MaskPlan mask(options, shape);
  const double scale = scale_of(options, queries.shape[3]);
  const double smallest = std::max(16.0, 4 * std::sqrt(static_cast<double>(shape.kv_len)));
  const auto width = static_cast<std::size_t>(values.shape[3]);
  std::size_t n = 0;
  for (index_t row = 0; row < shape.batch * shape.heads * shape.q_len; ++row) {
    const index_t b = row / (shape.heads * shape.q_len), h = row / shape.q_len % shape.heads,
                  i = row % shape.q_len;
    const double terms = largest_terms(queries, keys, scale, bias, mask, b, h, i);
    const double factor = 2 * kRoundoff * (smallest + 4 * terms);
    for (std::size_t d = 0; d < width; ++d, ++n) {
      const double shown = out.values[n];
      // Where a term is not finite, neither path promises a number.
      const double allowed = factor * sizes[n] + 0x1p-1074;
      const double difference = std::fabs(got[n] - shown);
      if (!std::isfinite(allowed) || difference <= allowed || !line_.is_ok) continue;
      line_.is_ok = false;
      line_.detail = fmt::format("{} row {} differs by ", attention.out, i) + shortest(difference);
    }
  }
}

std::optional<CheckLine> FusedCheck::line() const {
  if (is_left_out_ || seen_ == 0 || seen_ < attentions_.size()) return std::nullopt;
  return line_;
}

std::optional<CheckLine> fused_check(const Trace& trace) {
  std::vector<Step> list;
  for (const TracedStep& traced : trace.steps) list.push_back(traced.step);
  FusedCheck check(std::move(list));
  for (const auto& [tap, value] : trace.inputs) check.see(tap, value);
  for (const TracedStep& traced : trace.steps) check.see(traced.step.tap, traced.value);
  return check.line();
}

}  // namespace glasshead::wire
