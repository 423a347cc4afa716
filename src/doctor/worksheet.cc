#include "doctor/worksheet.h"

#include <algorithm>
#include <map>
#include <utility>

#include "doctor/worksheet_search.h"

namespace glasshead::doctor {
namespace {

// Draws of scores, and of values for each that fits. At level 3 a draw is itself a search for two
// heads, and the tries of all of them are limited, too. More only makes failing slower: 600 sheets
// at the default options need far fewer.
constexpr std::uint64_t kScoreAttempts = 20'000, kTwoHeadAttempts = 2'000;
constexpr std::uint64_t kValueAttempts = 60;
// Sheets of these are found for nearly every seed.
constexpr index_t kCommonTokens = 3;
constexpr int kCommonDecimals = 2;

void check_range(std::vector<Problem>& problems, const char* flag, index_t value, index_t least,
                 index_t most) {
  if (value >= least && value <= most) return;
  problems.push_back({flag, "is " + std::to_string(value) + "; it must be from " +
                                std::to_string(least) + " to " + std::to_string(most)});
}

void check_options(const WorksheetOptions& options, std::vector<Problem>& problems) {
  check_range(problems, "--level", options.level, 1, 3);
  check_range(problems, "--tokens", options.tokens, options.level == 2 ? 3 : 2, 6);
  check_range(problems, "--decimals", options.decimals, 1, 4);
  std::string names;
  const std::vector<Stage> all = stages(options);
  for (const Stage& stage : all) names += (names.empty() ? "" : " ") + std::string(stage.name);
  for (const std::string& blank : options.blanks) {
    const bool is_known =
        std::any_of(all.begin(), all.end(), [&](const Stage& s) { return blank == s.name; });
    if (!is_known)
      problems.push_back(
          {"--blanks", "\"" + blank + "\" is nothing that this sheet has; there are " + names});
  }
}

// Rows of many weights seldom add to 1 in few digits, and two heads must do so at once.
std::string what_would_do(const WorksheetOptions& options) {
  std::string words = "try another --seed";
  if (options.tokens > kCommonTokens)
    words += ", or --tokens " + std::to_string(kCommonTokens) + ", for which most seeds do";
  if (options.decimals < kCommonDecimals && !options.has_fractions)
    words += ", or --decimals " + std::to_string(kCommonDecimals);
  return words;
}

}  // namespace

std::vector<Stage> stages(const WorksheetOptions& options) {
  std::vector<Stage> all;
  if (!options.has_fractions)
    all = {{"q", "q", "Q = X·W_Q"}, {"k", "k", "K = X·W_K"}, {"v", "v", "V = X·W_V"}};
  all.push_back({"scores", "scores", "scores S = Q·Kᵀ"});
  if (!options.has_fractions) all.push_back({"scaled", "scaled", "scaled Z"});
  all.push_back({"exp", "exp", options.has_fractions ? "powers 2ˢ" : "exp(Z)"});
  all.push_back({"sum", "row_sum", "sum of each row"});
  all.push_back({"weights", "weights", "weights A"});
  all.push_back({"out", "out", "out O = A·V"});
  if (options.level == 3) {
    all.push_back({"concat", "concat", "heads side by side"});
    all.push_back({"projected", "projected", "projected by W_O"});
  }
  return all;
}

bool is_blank(const WorksheetOptions& options, const Stage& stage) {
  const auto is_named = [&](const char* name) {
    if (options.blanks.empty()) return std::string(name) == "weights" || std::string(name) == "out";
    return std::find(options.blanks.begin(), options.blanks.end(), name) != options.blanks.end();
  };
  const std::string name = stage.name;
  // What is made of a blank's numbers alone would give them away.
  if (name == "concat") return is_named("concat") || is_named("out");
  if (name == "projected") return is_named("projected") || is_named("concat") || is_named("out");
  return is_named(stage.name);
}

std::optional<Worksheet> make_worksheet(const WorksheetOptions& options,
                                        std::vector<Problem>& problems) {
  const std::size_t before = problems.size();
  check_options(options, problems);
  if (problems.size() > before) return std::nullopt;
  const std::uint64_t attempts =
      options.level == 3 && !options.has_fractions ? kTwoHeadAttempts : kScoreAttempts;
  std::map<index_t, StepList> paper, steps;  // by d_k
  std::uint64_t attempt = 0, tries = 0;
  for (; attempt < attempts && tries < kMostTries; ++attempt) {
    std::optional<Draft> drawn = draw_scores(options, attempt, tries);
    if (!drawn) continue;
    Draft& candidate = *drawn;
    StepList& known = paper[candidate.d_k];
    if (known.empty()) known = paper_steps(candidate.exercise);
    candidate.paper = known;
    StepList& plain = steps[candidate.d_k];
    if (plain.empty()) plain = wire::case_steps(candidate.exercise);
    candidate.steps = plain;
    if (!has_friendly_weights(candidate, options) || !has_varied_weights(candidate, options))
      continue;
    const index_t multiple = options.has_fractions
                                 ? common_denominator(run_steps(paper_steps(candidate.exercise),
                                                                candidate.exercise.inputs))
                                 : 1;
    for (std::uint64_t m = 0; m < kValueAttempts; ++m) {
      draw_values(candidate, options, attempt, m, multiple);
      if (!has_friendly_result(candidate, options)) continue;
      Worksheet sheet{options, candidate.exercise, {}, candidate.result, {}};
      if (!shows_every_mistake(candidate, options, sheet.wrong)) continue;
      sheet.trace = run_steps(candidate.paper, candidate.exercise.inputs);
      return sheet;
    }
  }
  problems.push_back({"--seed", "no friendly numbers found for seed " +
                                    std::to_string(options.seed) + " among " +
                                    std::to_string(attempt) + " draws; " + what_would_do(options)});
  return std::nullopt;
}

}  // namespace glasshead::doctor
