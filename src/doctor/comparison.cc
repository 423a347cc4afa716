#include "doctor/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "wire/document_tables.h"

namespace glasshead::doctor {
namespace {

constexpr double kSame = 16 * 0x1p-52;

bool is_same_number(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::fabs(a - b) <= kSame * std::max(std::fabs(a), std::fabs(b));
}

}  // namespace

wire::AttentionPart shown_part(const Trace& run, const Trace& right) {
  const auto first = [](const Trace& trace) {
    for (const TracedStep& traced : trace.steps)
      if (wire::leaf_of(traced.step.tap) == "scores")
        return wire::attention_of(traced.step, traced.value, trace.at(traced.step.reads.at(0)));
    return wire::AttentionPart{};
  };
  wire::AttentionPart part = first(run);
  const wire::AttentionPart right_part = first(right);
  const TraceTensor& weights = weights_used(run);
  const TraceTensor* masked = run.find(part.prefix + "masked");
  const PairShape& shape = part.shape;
  const bool is_same_shape = shape.q_len == right_part.shape.q_len &&
                             shape.kv_len == right_part.shape.kv_len && right_part.plan.has_value();
  const Mask mask = mask_where(shape, [&](index_t b, index_t h, index_t i, index_t j) {
    const auto n =
        static_cast<std::size_t>(((b * shape.heads + h) * shape.q_len + i) * shape.kv_len + j);
    if (n >= weights.values.size() || weights.values[n] != 0) return true;
    if (masked != nullptr && masked->values[n] == -std::numeric_limits<double>::infinity())
      return false;
    return !is_same_shape || right_part.plan->allowed(b, h, i, j);
  });
  auto options = std::make_shared<AttentionOptions>();
  options->mask = mask;
  part.options = options;
  part.plan.emplace(*options, shape);
  return part;
}

bool is_same_row(const TraceTensor& a, const TraceTensor& b, index_t matrix, index_t row) {
  const auto left = wire::row_of(a, matrix, row), right = wire::row_of(b, matrix, row);
  return std::equal(left.begin(), left.end(), right.begin(), right.end(), is_same_number);
}

bool is_same(const TraceTensor& a, const TraceTensor& b) {
  return a.shape == b.shape &&
         std::equal(a.values.begin(), a.values.end(), b.values.begin(), is_same_number);
}

std::string why_hidden(const MistakenRun& run) {
  if (run.fit != Fit::runs) return {};
  if (!is_same(weights_used(run.wrong), weights_used(run.right)) ||
      !is_same(attention_out(run.wrong), attention_out(run.right)))
    return {};
  std::string text = "these inputs cannot show it";
  if (!run.hidden_because.empty()) return text + ": " + run.hidden_because;
  for (const Coincidence& same : run.chosen.mistake->coincidences())
    if (std::string_view(same.id) == "right") return text + ": right when " + same.when;
  return text;
}

}  // namespace glasshead::doctor
