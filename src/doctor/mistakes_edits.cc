#include "doctor/mistakes_edits.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/math.h"
#include "doctor/mistakes_ops.h"
#include "wire/case_reader.h"

namespace glasshead::doctor::edits {
namespace {

using OptionsPtr = std::shared_ptr<const AttentionOptions>;

// A step of this attention: it has options, and nothing deeper ("cross.") stands in its tap.
bool belongs_to(const Step& step, const Site& site) {
  return step.options && step.tap.starts_with(site.prefix) &&
         step.tap.find('.', site.prefix.size()) == std::string::npos;
}

OptionsPtr with_mask_of(const Site& site, Mask mask) {
  auto options = std::make_shared<AttentionOptions>(*site.options);
  options->mask = std::move(mask);
  return options;
}

void give_options(StepList& list, const Site& site, const OptionsPtr& options) {
  for (Step& step : list)
    if (belongs_to(step, site)) step.options = options;
}

// Nothing is hidden from here on: later steps skip no pair.
void forget_mask(StepList& list, const Site& site) {
  give_options(list, site, with_mask_of(site, {}));
}

void replace_mask(StepList& list, const Site& site, Mask mask) {
  give_options(list, site, with_mask_of(site, std::move(mask)));
}

MaskPlan mask_plan(const Site& site) {
  AttentionOptions mask_only = *site.options;
  mask_only.bias = {};  // -inf entries of a bias hide by themselves; only the mask is misread
  return {mask_only, site.pairs};
}

// The masked step becomes `op`, which reads the mask from its options; nothing after it hides.
void misuse_mask(StepList& list, const Site& site, const Op& op, double value) {
  Step* masked = find_step(list, site.tap("masked"));
  if (masked == nullptr) return;
  forget_mask(list, site);
  masked->op = &op;
  masked->options = site.options;
  set_number(*masked, "value", value);
}

void set_scale(StepList& list, const Site& site, double scale) {
  if (Step* scaled = find_step(list, site.tap("scaled"))) set_number(*scaled, "scale", scale);
}

double root_dk(const Site& site) { return std::sqrt(static_cast<double>(site.d_k)); }
double reciprocal_dk(const Site& site) { return 1.0 / static_cast<double>(site.d_k); }

std::string same_scale(const Site& site, double wrong) {
  return wrong == site.scale ? "this scale is the right one here" : "";
}

bool has_part(const Site& site, const auto& is_kind) {
  const auto& parts = site.options->mask.parts();
  return std::any_of(parts.begin(), parts.end(), is_kind);
}

std::string size(index_t a, index_t b) { return wire::shape_text({a, b}); }

}  // namespace

// --- when a mistake can be made -----------------------------------------------------------------

Verdict always(const Site&, std::string_view) { return {}; }

Verdict has_scale(const Site& site, std::string_view parameter) {
  if (site.d_model == 0 && parameter.find("d_model") != std::string_view::npos)
    return {Fit::absent, "the queries are given: there is no d_model"};
  return {};
}

Verdict has_softmax(const Site& site, std::string_view) {
  if (!site.has_softmax) return {Fit::absent, "this attention has no softmax"};
  return {};
}

Verdict has_mask(const Site& site, std::string_view) {
  if (site.options->mask.parts().empty()) return {Fit::absent, "this attention has no mask"};
  return {};
}

Verdict has_causal_mask(const Site& site, std::string_view) {
  const bool is_causal = has_part(
      site, [](const Mask::Part& part) { return std::holds_alternative<Mask::Causal>(part); });
  if (!is_causal) return {Fit::absent, "this attention has no causal mask"};
  return {};
}

Verdict is_square(const Site& site, std::string_view) {
  const PairShape& p = site.pairs;
  if (p.q_len == p.kv_len) return {};
  return {Fit::stops, "the transpose of " + size(p.q_len, p.kv_len) + " is " +
                          size(p.kv_len, p.q_len) + ", which fits only when q_len = kv_len"};
}

Verdict has_square_mask(const Site& site, std::string_view parameter) {
  const Verdict verdict = has_mask(site, parameter);
  return verdict.fit == Fit::runs ? is_square(site, parameter) : verdict;
}

Verdict multiplies_untransposed(const Site& site, std::string_view) {
  const PairShape& p = site.pairs;
  if (p.kv_len == site.d_k) return {};
  return {Fit::stops, "Q·K is " + size(p.q_len, site.d_k) + " · " + size(p.kv_len, site.d_k) +
                          ": the inner sizes " + std::to_string(site.d_k) + " and " +
                          std::to_string(p.kv_len) +
                          " differ (it runs only when kv_len = d_k, and is wrong then too)"};
}

Verdict projects_values(const Site& site, std::string_view) {
  if (site.v_input.empty()) return {Fit::absent, "not applicable: there is no W_V to leave out"};
  if (site.v_input_shape != site.v_shape)
    return {Fit::stops, "X is " + wire::shape_text(site.v_input_shape) + " where V is " +
                            wire::shape_text(site.v_shape) + ": what follows does not take it"};
  return {};
}

Verdict keys_fit_values(const Site& site, std::string_view) {
  if (site.d_k == site.d_v) return {};
  return {Fit::stops, "K has " + std::to_string(site.d_k) + " columns where V has " +
                          std::to_string(site.d_v) + ": what follows does not take it"};
}

// --- what hides it ------------------------------------------------------------------------------

std::string nothing(const Site&, double) { return ""; }
std::string same_scale_as_missing(const Site& site, double) { return same_scale(site, 1); }
std::string same_scale_as_dk(const Site& site, double) {
  return same_scale(site, reciprocal_dk(site));
}
std::string same_scale_as_inverse(const Site& site, double) {
  return same_scale(site, root_dk(site));
}
std::string same_scale_as_other(const Site& site, double parameter) {
  return same_scale(site, parameter);
}
std::string needs_overflow(const Site&, double) {
  return "the numbers differ only where exp overflows or underflows";
}
std::string finite_but_far(const Site&, double parameter) {
  constexpr double kFar = -745;  // exp of it is 0 in f64: a weight of exactly 0, as if hidden
  return parameter <= kFar ? "exp of so low a score is 0, as if it were hidden" : "";
}

// --- the edits ----------------------------------------------------------------------------------

std::optional<double> parameter_value(std::string_view text, const Site& site) {
  const auto root = [](index_t n) { return std::sqrt(static_cast<double>(n)); };
  if (text == "1/sqrt(d_model)") return 1 / root(site.d_model);
  if (text == "1/sqrt(n)") return 1 / root(site.pairs.kv_len);
  if (text == "1/n") return 1 / static_cast<double>(site.pairs.kv_len);
  if (text == "ln2") return site.scale * math::log(2);
  return wire::finite_number(text);
}

void scores_transposed(StepList& list, const Site& site, double) {
  find_step(list, site.tap("scores"))->op = &kScoresTransposed;
}
void scores_untransposed(StepList& list, const Site& site, double) {
  find_step(list, site.tap("scores"))->op = &kScoresUntransposed;
}

void scale_missing(StepList& list, const Site& site, double) { set_scale(list, site, 1); }
void scale_dk(StepList& list, const Site& site, double) {
  set_scale(list, site, reciprocal_dk(site));
}
void scale_inverse(StepList& list, const Site& site, double) {
  set_scale(list, site, root_dk(site));
}
void scale_other(StepList& list, const Site& site, double parameter) {
  set_scale(list, site, parameter);
}

// For edits after which no maximum says that a row is empty.
void read_no_maxima(StepList& list, const Site& site) {
  find_step(list, site.tap("out"))->reads.resize(2);
}

void softmax_missing(StepList& list, const Site& site, double) {
  bypass_step(list, site.tap("masked"));
  forget_mask(list, site);
  const std::string scores = find_step(list, site.tap("exp"))->reads.at(0);
  for (const char* tap : {"row_max", "exp", "row_sum", "lse"}) erase_step(list, site.tap(tap));
  Step* weights = find_step(list, site.tap("weights"));
  weights->op = &kCopy;
  weights->reads = {scores};
  read_no_maxima(list, site);
}

void softmax_whole(StepList& list, const Site& site, double) {
  find_step(list, site.tap("row_max"))->op = &kMatrixMax;
  find_step(list, site.tap("row_sum"))->op = &kMatrixSum;
}

void softmax_columns(StepList& list, const Site& site, double) {
  const std::string max = site.tap("column_max"), sum = site.tap("column_sum");
  erase_step(list, site.tap("lse"));
  const auto become = [&](const char* tap, const Op& op) -> Step& {
    Step& step = *find_step(list, site.tap(tap));
    step.op = &op;
    return step;
  };
  become("exp", kColumnExp).reads.at(1) = max;
  become("weights", kColumnWeights).reads.at(1) = sum;
  become("row_max", kColumnMax).tap = max;
  Step& column_sum = become("row_sum", kColumnSum);
  column_sum.tap = sum;
  column_sum.reads = {site.tap("exp")};
  read_no_maxima(list, site);
}

void softmax_unshifted(StepList& list, const Site& site, double) {
  for (const char* tap : {"exp", "row_sum", "lse", "weights"})
    if (Step* step = find_step(list, site.tap(tap))) set_number(*step, "shift", 0);
}

void mask_ignored(StepList& list, const Site& site, double) {
  bypass_step(list, site.tap("masked"));
  forget_mask(list, site);
}

void mask_after(StepList& list, const Site& site, double) {
  mask_ignored(list, site, 0);
  const std::string before = site.tap("weights_before_mask");
  Step& weights = *find_step(list, site.tap("weights"));
  Step hide = weights;
  weights.tap = before;
  hide.op = &kHideWeights;
  hide.reads = {before};
  hide.options = site.options;
  insert_after(list, before, std::move(hide));
}

void mask_multiply(StepList& list, const Site& site, double) {
  misuse_mask(list, site, kMaskMultiply, 0);
}
void mask_as_number(StepList& list, const Site& site, double) {
  misuse_mask(list, site, kMaskAsNumber, 1);
}
void mask_finite(StepList& list, const Site& site, double parameter) {
  misuse_mask(list, site, kMaskFinite, parameter);
}

void mask_inverted(StepList& list, const Site& site, double) {
  const MaskPlan plan = mask_plan(site);
  replace_mask(list, site, mask_where(site.pairs, [&](index_t b, index_t h, index_t i, index_t j) {
                 return !plan.allowed(b, h, i, j);
               }));
}
void mask_transposed(StepList& list, const Site& site, double) {
  const MaskPlan plan = mask_plan(site);
  replace_mask(list, site, mask_where(site.pairs, [&](index_t b, index_t h, index_t i, index_t j) {
                 return plan.allowed(b, h, j, i);
               }));
}
void mask_strict(StepList& list, const Site& site, double) {
  const MaskPlan plan = mask_plan(site);
  replace_mask(list, site, mask_where(site.pairs, [&](index_t b, index_t h, index_t i, index_t j) {
                 return plan.allowed(b, h, i, j) && j != plan.position(i);
               }));
}

void weights_transposed(StepList& list, const Site& site, double) {
  Step& out = *find_step(list, site.tap("out"));
  const std::string source = out.reads.at(0), turned = site.tap("weights_transposed");
  out.reads[0] = turned;
  out.options = with_mask_of(site, {});  // the transposed weights reach pairs that the mask hides
  insert_after(list, source, {turned, &kTranspose, {source}, {}, out.options});
}

void values_unprojected(StepList& list, const Site& site, double) {
  Step& v = *find_step(list, site.tap("v"));
  v.op = &kCopy;
  v.reads = {site.v_input};
}

void keys_as_values(StepList& list, const Site& site, double) {
  find_step(list, site.tap("out"))->reads.at(1) = site.k;
}

}  // namespace glasshead::doctor::edits
