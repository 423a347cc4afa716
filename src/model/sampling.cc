#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/math.h"
#include "base/random.h"
#include "core/findings.h"
#include "glasshead/model.h"

namespace glasshead {
namespace {

struct Candidate {
  double logit = 0;
  index_t id = 0;
};

bool comes_first(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

// Largest first; NaN last, so that it is never chosen where there is anything else.
std::vector<Candidate> candidates_of(const View<const float, 1>& logits, const Sampling& sampling,
                                     const std::vector<index_t>& text) {
  std::vector<Candidate> all(static_cast<std::size_t>(logits.shape[0]));
  for (std::size_t n = 0; n < all.size(); ++n) {
    const double logit = logits(static_cast<index_t>(n));
    all[n] = {std::isnan(logit) ? -INFINITY : logit, static_cast<index_t>(n)};
  }
  if (sampling.repetition_penalty == 1) return all;
  std::vector<bool> is_there(all.size(), false);
  for (const index_t id : text)
    if (id >= 0 && id < static_cast<index_t>(all.size()))
      is_there[static_cast<std::size_t>(id)] = true;
  for (std::size_t n = 0; n < all.size(); ++n)
    if (is_there[n])
      all[n].logit = all[n].logit > 0 ? all[n].logit / sampling.repetition_penalty
                                      : all[n].logit * sampling.repetition_penalty;
  return all;
}

// How many of `weights` (probabilities in proportion, largest first) top-p and min-p leave.
std::size_t kept_by(const std::vector<double>& weights, const Sampling& sampling) {
  double total = 0;
  for (const double w : weights) total += w;
  std::size_t kept = weights.size();
  if (sampling.top_p < 1) {
    double sum = 0;
    kept = 0;
    while (kept < weights.size() && sum < sampling.top_p * total) sum += weights[kept++];
  }
  while (kept > 1 && weights[kept - 1] < sampling.min_p * weights[0]) --kept;
  return std::max<std::size_t>(kept, 1);
}

}  // namespace

std::vector<Problem> check(const Sampling& s) {
  Findings findings;
  const auto wrong = [&](const char* where, double found, const char* right) {
    findings.option(where, fmt::format("{}; {}", number_text(found), right));
  };
  if (!(s.temperature >= 0) || !std::isfinite(s.temperature))
    wrong("temperature", s.temperature, "0 for the most probable token, or a number above 0");
  if (s.top_k < 0)
    findings.option("top_k", fmt::format("{}; 0 for all tokens, or how many", s.top_k));
  if (!(s.top_p > 0 && s.top_p <= 1))
    wrong("top_p", s.top_p, "a probability above 0, at most 1 (all tokens)");
  if (!(s.min_p >= 0 && s.min_p <= 1))
    wrong("min_p", s.min_p, "a share of the best token's probability, 0 (all tokens) to 1");
  if (!(s.repetition_penalty > 0) || !std::isfinite(s.repetition_penalty))
    wrong("repetition_penalty", s.repetition_penalty, "a number above 0; 1 is no penalty");
  return findings.problems;
}

index_t sample(const View<const float, 1>& logits, const Sampling& sampling,
               const std::vector<index_t>& text, std::uint64_t draw) {
  std::vector<Problem> problems = check(sampling);
  if (logits.shape[0] < 1) problems.push_back({"logits", "there is none"});
  if (!problems.empty()) fail(ErrorKind::option, "sample", std::move(problems));

  std::vector<Candidate> all = candidates_of(logits, sampling, text);
  if (sampling.temperature == 0) return std::min_element(all.begin(), all.end(), comes_first)->id;
  if (sampling.top_k > 0 && sampling.top_k < static_cast<index_t>(all.size())) {
    std::partial_sort(all.begin(), all.begin() + sampling.top_k, all.end(), comes_first);
    all.resize(static_cast<std::size_t>(sampling.top_k));
  } else {
    std::sort(all.begin(), all.end(), comes_first);
  }
  if (std::isinf(all[0].logit)) return all[0].id;  // beside it all others are nothing
  std::vector<double> weights;
  for (const Candidate& c : all)
    weights.push_back(math::exp((c.logit - all[0].logit) / sampling.temperature));
  weights.resize(kept_by(weights, sampling));
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double left = uniform(sampling.seed, draw) * total;
  for (std::size_t n = 0; n + 1 < weights.size(); ++n) {
    if (left < weights[n]) return all[n].id;
    left -= weights[n];
  }
  return all[weights.size() - 1].id;
}

}  // namespace glasshead
