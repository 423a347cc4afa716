// Names, shapes, masks and labels in words.
#include <algorithm>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/math.h"
#include "wire/display.h"
#include "wire/document_build.h"

namespace glasshead::wire {
namespace {

const char* words_of(const std::string& reason) {
  if (reason == "causal") return "key after query";
  if (reason == "window") return "outside the window";
  if (reason == "padding") return "padding";
  if (reason == "segments") return "another document";
  if (reason == "prefix") return "after the prefix and the query";
  if (reason == "mask") return "hidden by the mask";
  if (reason == "rule") return "hidden by the rule";
  return "hidden by the bias";
}

std::string limit_words(const std::optional<index_t>& limit) {
  return limit ? fmt::format("{}", *limit) : std::string("any");
}

std::string part_words(const Mask::Part& part) {
  if (std::holds_alternative<Mask::Causal>(part)) return "causal";
  if (const auto* window = std::get_if<Mask::Window>(&part))
    return "window " + limit_words(window->left) + "," + limit_words(window->right);
  if (std::holds_alternative<Mask::KeyLengths>(part)) return "padding";
  if (std::holds_alternative<Mask::Segments>(part)) return "segments";
  if (const auto* prefix = std::get_if<Mask::Prefix>(&part)) {
    std::string lengths;
    for (const index_t length : prefix->lengths)
      lengths += (lengths.empty() ? "" : ",") + fmt::format("{}", length);
    return "prefix " + lengths;
  }
  return "chosen pairs";
}

}  // namespace

std::string leaf_of(const std::string& tap) {
  const std::size_t dot = tap.rfind('.');
  return dot == std::string::npos ? tap : tap.substr(dot + 1);
}

std::string prefix_of(const std::string& tap) {
  const std::size_t dot = tap.rfind('.');
  return dot == std::string::npos ? std::string() : tap.substr(0, dot + 1);
}

std::string reason_words(const Reasons& reasons) {
  std::string words;
  for (const std::string& reason : reasons.names())
    words += (words.empty() ? "" : ", ") + std::string(words_of(reason));
  return words;
}

std::vector<char> hidden_row(const MaskPlan& plan, index_t b, index_t h, index_t i) {
  const auto n = static_cast<std::size_t>(plan.shape().kv_len);
  std::vector<std::uint8_t> allowed(n);
  plan.fill_row(b, h, i, {0, plan.shape().kv_len}, allowed.data());
  std::vector<char> hidden(n);
  for (std::size_t j = 0; j < n; ++j) hidden[j] = allowed[j] == 0 ? 1 : 0;
  return hidden;
}

std::string shape_words(const std::vector<index_t>& shape) {
  std::string words;
  for (const index_t extent : shape)
    words += (words.empty() ? "" : "×") + fmt::format("{}", extent);
  return words;
}

std::string mask_words(const AttentionOptions& options) {
  std::string words;
  for (const Mask::Part& part : options.mask.parts())
    words += (words.empty() ? "" : " and ") + part_words(part);
  return words.empty() ? "none" : words;
}

std::string scale_words(const AttentionPart& part, int decimals) {
  const std::string value = print_alone(part.scale, decimals);
  if (part.options && part.options->scale) return value;
  return fmt::format("1/√{}", part.d_k) + " = " + value;
}

std::string shown_label(const std::string& label) {
  return cut(escape_controls(label), kLabelCells);
}

std::vector<std::string> shown_labels(const std::vector<std::string>& labels) {
  std::vector<std::string> shown;
  shown.reserve(labels.size());
  for (const std::string& label : labels) shown.push_back(shown_label(label));
  std::vector<std::string> sorted = shown;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end()) return shown;
  for (std::size_t n = 0; n < shown.size(); ++n) shown[n] = fmt::format("{} {}", n, shown[n]);
  return shown;
}

std::vector<index_t> shown_rows(index_t n, const std::optional<index_t>& query) {
  std::vector<index_t> rows;
  for (index_t i = 0; i < n; ++i)
    if (!query || *query == i) rows.push_back(i);
  return rows;
}

AttentionPart attention_of(const Step& scores, const TraceTensor& value, const TraceTensor& q) {
  AttentionPart part;
  part.prefix = prefix_of(scores.tap);
  part.scores = &scores;
  part.options = scores.options ? scores.options : std::make_shared<const AttentionOptions>();
  const std::size_t rank = value.shape.size();
  part.has_heads = rank > 2;
  part.shape.batch = rank > 3 ? value.shape[0] : 1;
  part.shape.heads = rank > 2 ? value.shape[rank - 3] : 1;
  part.shape.q_len = rank > 1 ? value.shape[rank - 2] : 1;
  part.shape.kv_len = rank > 0 ? value.shape[rank - 1] : 1;
  part.d_k = q.shape.empty() ? 1 : q.shape.back();
  part.plan.emplace(*part.options, part.shape);
  return part;
}

bool is_wide(const AttentionPart& part) {
  constexpr index_t kWideHead = 8;  // coordinates: more products are not written out either
  return part.shape.kv_len > kLongRow || part.d_k > kWideHead;
}

void add_sinks(AttentionPart& part, const TraceTensor& row_max, const Step& step,
               const TraceTensor& row_sum) {
  const std::vector<double>& sinks = part.options->sinks;
  if (sinks.empty() || part.shape.q_len == 0) return;
  const bool is_shifted = number(step, "shift", 1) != 0;
  for (std::size_t row = 0; row < row_sum.values.size(); ++row) {
    const index_t h = static_cast<index_t>(row) / part.shape.q_len % part.shape.heads;
    const double sink = sinks.at(static_cast<std::size_t>(h));
    part.sink_exps.push_back(math::exp(is_shifted ? sink - row_max.values[row] : sink));
    part.sink_shares.push_back(part.sink_exps.back() / row_sum.values[row]);
  }
}

std::optional<double> sink_share(const AttentionPart* part, index_t m, index_t i) {
  if (!part || part->sink_shares.empty()) return std::nullopt;
  return part->sink_shares[static_cast<std::size_t>(m * part->shape.q_len + i)];
}

std::vector<AttentionPart> attentions(const Trace& trace) {
  std::vector<AttentionPart> parts;
  const TraceTensor* row_max = nullptr;
  for (const TracedStep& traced : trace.steps) {
    const Step& step = traced.step;
    if (leaf_of(step.tap) == "scores" && !step.reads.empty())
      parts.push_back(attention_of(step, traced.value, trace.at(step.reads[0])));
    if (!parts.empty() && leaf_of(step.tap) == "scaled" &&
        prefix_of(step.tap) == parts.back().prefix)
      parts.back().scale = number(step, "scale", 1);
    if (parts.empty() || prefix_of(step.tap) != parts.back().prefix) continue;
    if (leaf_of(step.tap) == "row_max") row_max = &traced.value;
    if (leaf_of(step.tap) == "row_sum" && row_max)
      add_sinks(parts.back(), *row_max, step, traced.value);
  }
  return parts;
}

}  // namespace glasshead::wire
