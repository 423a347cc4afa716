// The table, and what applies it. Order, ids and tell-tales are those of docs/mistakes.md, which is
// made from here.
#include "doctor/mistakes.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "doctor/mistakes_edits.h"

namespace glasshead::doctor {
namespace {

using namespace edits;

constexpr const char* kRight = "right";

const Mistake kMistakes[] = {
    {"scores-transposed",
     "keys scored against queries",
     "scores_transposed_KQt",
     "",
     "",
     "K·Qᵀ instead of Q·Kᵀ",
     "each row holds the scores of a key, not of a query; nothing moves where Q·Kᵀ is symmetric",
     "scores = k @ q.T",
     "scores = q @ k.T",
     "queries on the left: rows are queries",
     {{kRight, "Q·Kᵀ is symmetric, as where Q = K"}},
     is_square,
     nothing,
     edits::scores_transposed},
    {"scores-untransposed",
     "K not transposed",
     "",
     "",
     "",
     "Q·K instead of Q·Kᵀ",
     "a shape error, unless kv_len happens to equal d_k",
     "scores = q @ k",
     "scores = q @ k.T",
     "transpose the keys' last two axes",
     {{kRight, "kv_len = d_k and K is symmetric"}},
     multiplies_untransposed,
     nothing,
     edits::scores_untransposed},
    {"scale-missing",
     "scale forgotten",
     "no_scale",
     "",
     "",
     "scores are not multiplied by 1/√d_k",
     "weights sharper than right: the largest of each row is too large",
     "weights = softmax(q @ k.T)",
     "weights = softmax(q @ k.T / sqrt(d_k))",
     "divide by sqrt(d_k)",
     {{kRight, "d_k = 1"}, {"scale-other", "the other scale is 1"}},
     always,
     same_scale_as_missing,
     scale_missing},
    {"scale-dk",
     "scaled twice",
     "scale_by_dk",
     "",
     "",
     "scores times 1/d_k: divided by d_k, or by √d_k twice",
     "weights flatter than right: the largest of each row is too small",
     "weights = softmax(q @ k.T / d_k)",
     "weights = softmax(q @ k.T / sqrt(d_k))",
     "divide by sqrt(d_k), once",
     {{kRight, "d_k = 1"}, {"scale-other", "the other scale is 1/d_k"}},
     always,
     same_scale_as_dk,
     scale_dk},
    {"scale-inverse",
     "multiplied by √d_k",
     "scale_multiplied",
     "",
     "",
     "scores times √d_k instead of divided by it",
     "weights much sharper than right, sharper than without any scale",
     "weights = softmax(q @ k.T * sqrt(d_k))",
     "weights = softmax(q @ k.T / sqrt(d_k))",
     "divide, not multiply",
     {{kRight, "d_k = 1"}, {"scale-other", "the other scale is √d_k"}},
     always,
     same_scale_as_inverse,
     scale_inverse},
    {"scale-other",
     "another scale",
     "",
     "S",
     "1/sqrt(d_model)",
     "scores times S: 1/sqrt(d_model), 1/sqrt(n), ln2 (2ˢ for eˢ), or any number",
     "within a row the logarithms of the weights are S times the scores, but for a constant: S is "
     "ln(w_i/w_j)/(s_i − s_j)",
     "weights = softmax(q @ k.T / sqrt(x.shape[-1]))",
     "weights = softmax(q @ k.T / sqrt(q.shape[-1]))",
     "d_k is the size of one head's queries",
     {{kRight, "S is the right scale, as 1/sqrt(d_model) for one head of full width"}},
     has_scale,
     same_scale_as_other,
     scale_other},
    {"softmax-missing",
     "no softmax",
     "no_max_no_softmax_linear",
     "",
     "",
     "scaled scores are used as weights: Q·(Kᵀ·V), which can hide nothing",
     "rows add to anything, weights may be negative, and no key is hidden",
     "out = q @ (k.T @ v) / sqrt(d_k)",
     "out = softmax(q @ k.T / sqrt(d_k)) @ v",
     "softmax each row before multiplying by V",
     {},
     has_softmax,
     nothing,
     softmax_missing},
    {"softmax-whole",
     "one softmax over the whole matrix",
     "softmax_whole_matrix",
     "",
     "",
     "exp of all scores divided by one sum",
     "rows do not add to 1; all of them together do",
     "e = exp(s - s.max()); weights = e / e.sum()",
     "e = exp(s - s.max(-1, keepdims=True)); weights = e / e.sum(-1, keepdims=True)",
     "maximum and sum per row",
     {{kRight, "there is one query"}},
     has_softmax,
     nothing,
     softmax_whole},
    {"softmax-columns",
     "softmax down the columns",
     "softmax_columns",
     "",
     "",
     "each column instead of each row is made to add to 1",
     "columns add to 1, rows do not",
     "weights = softmax(scores, axis=-2)",
     "weights = softmax(scores, axis=-1)",
     "softmax over the keys, the last axis",
     {{kRight, "the masked scores are symmetric and every row and column has the same sum"}},
     has_softmax,
     nothing,
     softmax_columns},
    {"softmax-unshifted",
     "maximum not subtracted",
     "",
     "",
     "",
     "exp of the scores themselves",
     "right until a score is above 709.78 (f64) or 88.72 (f32): then inf/inf, nan; far below zero "
     "0/0, nan",
     "e = exp(s); weights = e / e.sum(-1, keepdims=True)",
     "e = exp(s - s.max(-1, keepdims=True)); weights = e / e.sum(-1, keepdims=True)",
     "subtract each row's maximum first",
     {{kRight, "no exp overflows and no row's exps are all 0"}},
     has_softmax,
     needs_overflow,
     softmax_unshifted},
    {"mask-ignored",
     "mask forgotten",
     "mask_ignored",
     "",
     "",
     "no mask is applied",
     "hidden keys have weights; rows with nothing hidden are right",
     "weights = softmax(q @ k.T / sqrt(d_k))",
     "weights = softmax(where(allowed, q @ k.T / sqrt(d_k), -inf))",
     "apply the mask",
     {{"mask-finite", "every hidden score equals V already"},
      {"mask-multiply", "every hidden score is 0"}},
     has_mask,
     nothing,
     mask_ignored},
    {"mask-after",
     "masked after softmax",
     "mask_after_softmax_no_renormalise",
     "",
     "",
     "weights of hidden keys are set to 0 after softmax",
     "rows that lost keys sum to less than 1; rows that lost none are right",
     "weights = softmax(scores) * allowed",
     "weights = softmax(where(allowed, scores, -inf))",
     "hide before softmax",
     {},
     has_mask,
     nothing,
     mask_after},
    {"mask-multiply",
     "scores multiplied by the mask",
     "mask_multiplied_into_scores_zero",
     "",
     "",
     "scores are multiplied by 1 or 0, so that a hidden score is 0, not −∞",
     "hidden keys keep weight, in each row the same",
     "weights = softmax(scores * allowed)",
     "weights = softmax(where(allowed, scores, -inf))",
     "hidden scores are −∞",
     {{"mask-ignored", "every hidden score is 0"}, {"mask-finite", "V = 0"}},
     has_mask,
     nothing,
     mask_multiply},
    {"mask-inverted",
     "mask the wrong way round",
     "mask_inverted",
     "",
     "",
     "true is read as \"hide\"",
     "exactly the hidden keys have weight; a row with nothing to hide is empty",
     "scores.masked_fill_(allowed, -inf)",
     "scores.masked_fill_(~allowed, -inf)",
     "find out which way the mask is meant",
     {},
     has_mask,
     nothing,
     mask_inverted},
    {"mask-transposed",
     "mask transposed",
     "mask_anti_causal_lower_hidden",
     "",
     "",
     "allowed(j, i) is asked instead of allowed(i, j): of a causal mask the upper triangle is kept",
     "the first row sees everything, the last only itself",
     "allowed = triu(ones(n, n))",
     "allowed = tril(ones(n, n))",
     "rows are queries, columns are keys",
     {{kRight, "the mask is symmetric"}},
     has_square_mask,
     nothing,
     mask_transposed},
    {"mask-strict",
     "own position hidden",
     "mask_excludes_diagonal",
     "",
     "",
     "only keys before the query are allowed, its own position is not",
     "no weight on the diagonal; the first row is empty",
     "allowed = tril(ones(n, n), -1)",
     "allowed = tril(ones(n, n))",
     "a token attends to itself: j <= i",
     {},
     has_causal_mask,
     nothing,
     mask_strict},
    {"mask-as-number",
     "true and false added as numbers",
     "",
     "",
     "",
     "the boolean mask is added to the scores as 1 and 0",
     "hidden keys keep weight; allowed ones are e times too heavy beside them",
     "weights = softmax(scores + allowed)",
     "weights = softmax(where(allowed, scores, -inf))",
     "turn the mask into 0 and −∞ before adding it",
     {},
     has_mask,
     nothing,
     mask_as_number},
    {"mask-finite",
     "hidden scores set to a number",
     "mask_with_finite_minus_one",
     "V",
     "-1",
     "hidden scores are set to V instead of −∞",
     "hidden keys keep weight exp(V − …); with V = -1e4, -1e9 or the type's lowest number all is "
     "right but an empty row, which becomes uniform",
     "scores[~allowed] = -1",
     "scores[~allowed] = -inf",
     "hidden scores are −∞",
     {{"mask-multiply", "V = 0"}, {kRight, "V is so low that exp gives 0, and no row is empty"}},
     has_mask,
     finite_but_far,
     mask_finite},
    {"weights-transposed",
     "weights transposed",
     "output_uses_weights_transposed",
     "",
     "",
     "Aᵀ·V instead of A·V",
     "weights are right, out is not; what multiplies the values does not add to 1 by rows",
     "out = weights.T @ v",
     "out = weights @ v",
     "no transpose: rows are queries",
     {{kRight, "the weights are symmetric"}},
     is_square,
     nothing,
     weights_transposed},
    {"values-unprojected",
     "values not projected",
     "values_from_X_without_WV",
     "",
     "",
     "V = X instead of X·W_V",
     "weights are right, out averages the inputs themselves",
     "out = weights @ x",
     "out = weights @ (x @ w_v)",
     "project the values",
     {{kRight, "W_V is the identity"}, {"keys-as-values", "W_K is the identity"}},
     projects_values,
     nothing,
     values_unprojected},
    {"keys-as-values",
     "keys used as values",
     "keys_used_as_values",
     "",
     "",
     "A·K instead of A·V",
     "weights are right, out averages the keys",
     "out = weights @ k",
     "out = weights @ v",
     "multiply by V",
     {{kRight, "K = V"}, {"values-unprojected", "W_K is the identity"}},
     keys_fit_values,
     nothing,
     keys_as_values},
};

// The run goes on when the mistake empties a row: what a wrong program does there is part of it.
void let_rows_be_empty(StepList& steps) {
  for (Step& step : steps) {
    if (!step.options || step.options->empty_row == EmptyRow::zero) continue;
    auto options = std::make_shared<AttentionOptions>(*step.options);
    options->empty_row = EmptyRow::zero;
    step.options = std::move(options);
  }
}

}  // namespace

std::span<const Coincidence> Mistake::coincidences() const {
  std::size_t count = 0;
  while (count < std::size(coincides) && coincides[count].id != nullptr) ++count;
  return {coincides, count};
}

std::span<const Mistake> mistakes() { return kMistakes; }

std::string id_with_parameter(const Mistake& mistake) {
  std::string text = mistake.id;
  if (*mistake.parameter != '\0') text += std::string(":") + mistake.parameter;
  return text;
}

const Mistake* find_mistake(std::string_view id) {
  const auto at = std::find_if(std::begin(kMistakes), std::end(kMistakes),
                               [&](const Mistake& m) { return id == m.id; });
  return at == std::end(kMistakes) ? nullptr : at;
}

std::string mistake_ids() {
  std::string text;
  for (const Mistake& mistake : kMistakes) {
    if (!text.empty()) text += ", ";
    text += id_with_parameter(mistake);
  }
  return text;
}

std::string ChosenMistake::name() const {
  return parameter.empty() ? mistake->id : std::string(mistake->id) + ":" + parameter;
}

std::optional<ChosenMistake> choose_mistake(std::string_view text, std::vector<Problem>& problems) {
  const std::size_t colon = text.find(':');
  const std::string_view id = text.substr(0, colon);
  const Mistake* mistake = find_mistake(id);
  if (mistake == nullptr) {
    problems.push_back({"--mistake", "there is no mistake \"" + std::string(id) + "\"; there are " +
                                         mistake_ids()});
    return std::nullopt;
  }
  ChosenMistake chosen{mistake, mistake->default_parameter};
  if (colon == std::string_view::npos) return chosen;
  chosen.parameter = text.substr(colon + 1);
  if (*mistake->parameter == '\0') {
    problems.push_back({"--mistake", std::string(id) + " takes no parameter"});
    return std::nullopt;
  }
  if (chosen.parameter.empty()) {
    problems.push_back({"--mistake", "no " + std::string(mistake->parameter) +
                                         " after the colon (" + id_with_parameter(*mistake) + ")"});
    return std::nullopt;
  }
  return chosen;
}

std::optional<AppliedMistake> apply_mistake(const ChosenMistake& chosen, const StepList& steps,
                                            const Trace& right, std::vector<Problem>& problems,
                                            Fit* fit) {
  const Mistake& mistake = *chosen.mistake;
  const std::string where = chosen.name();
  AppliedMistake applied{steps, ""};
  const std::vector<Site> sites = find_sites(steps, right);
  Verdict verdict = sites.empty() ? Verdict{Fit::absent, "there is no attention in it"} : Verdict{};
  bool has_any = false;
  for (const Site& site : sites) {
    const Verdict here = mistake.fits(site, chosen.parameter);
    // One place to make the mistake is enough; one that stops is the end of the program.
    if (here.fit == Fit::absent) {
      if (!has_any) verdict = here;
      continue;
    }
    has_any = true;
    verdict = here;
    if (here.fit == Fit::stops) break;
    const std::optional<double> value =
        chosen.parameter.empty() ? 0.0 : parameter_value(chosen.parameter, site);
    if (!value) {
      problems.push_back({"--mistake", "\"" + chosen.parameter + "\" is not a number for " +
                                           mistake.parameter + " (" + id_with_parameter(mistake) +
                                           ")"});
      return std::nullopt;
    }
    applied.hidden_because = mistake.hides(site, *value);
    mistake.edit(applied.steps, site, *value);
  }
  if (fit != nullptr) *fit = verdict.fit;
  if (verdict.fit != Fit::runs) {
    problems.push_back({where, verdict.why});
    return std::nullopt;
  }
  let_rows_be_empty(applied.steps);
  return applied;
}

std::optional<MistakenRun> run_mistake(std::string_view text, const wire::Case& c,
                                       std::vector<Problem>& problems) {
  const std::optional<ChosenMistake> chosen = choose_mistake(text, problems);
  if (!chosen) return std::nullopt;
  MistakenRun run;
  run.chosen = *chosen;
  const StepList steps = wire::case_steps(c);
  run.right = run_steps(steps, c.inputs);
  std::vector<Problem> here;
  std::optional<AppliedMistake> applied = apply_mistake(*chosen, steps, run.right, here, &run.fit);
  if (!applied && run.fit == Fit::stops) {
    run.stops_because = here.front().what;
    return run;
  }
  problems.insert(problems.end(), here.begin(), here.end());
  if (!applied) return std::nullopt;
  run.hidden_because = applied->hidden_because;
  run.wrong = run_steps(applied->steps, run.right.inputs);
  return run;
}

const TraceTensor& weights_used(const Trace& trace) {
  for (const TracedStep& traced : trace.steps) {
    const std::string_view tap = traced.step.tap;
    if (tap == "out" || tap.ends_with(".out")) return trace.at(traced.step.reads.at(0));
  }
  return trace.at("weights");
}

const TraceTensor& attention_out(const Trace& trace) {
  for (const TracedStep& traced : trace.steps) {
    const std::string_view tap = traced.step.tap;
    if (tap == "out" || tap.ends_with(".out")) return traced.value;
  }
  return trace.at("out");
}

}  // namespace glasshead::doctor
