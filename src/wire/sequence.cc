#include "wire/sequence.h"

#include <algorithm>

#include <fmt/format.h>

#include "wire/document_build.h"

namespace glasshead::wire {
namespace {

constexpr std::string_view kRun = "step.";

// How many characters of `tap` name its run: 7 of "step.2.weights", 0 of "weights".
std::size_t run_length(const std::string& tap) {
  if (tap.compare(0, kRun.size(), kRun) != 0) return 0;
  const std::size_t end = tap.find_first_not_of("0123456789", kRun.size());
  return end == std::string::npos || end == kRun.size() || tap[end] != '.' ? 0 : end + 1;
}

bool is_cross_tap(const std::string& tap) {
  const std::string prefix = prefix_of(tap);
  constexpr std::string_view kCross = "cross.";
  return prefix.size() >= kCross.size() &&
         prefix.compare(prefix.size() - kCross.size(), kCross.size(), kCross) == 0;
}

}  // namespace

Sequence::Sequence(const Case& c, const Trace& trace) : case_(c), tokens_(c.query_labels) {
  for (const TracedStep& traced : trace.steps) runs_ = std::max(runs_, run_of(traced.step.tap) + 1);
  const auto rows = static_cast<index_t>(tokens_.size());
  prompt_ = c.feed > 0 ? std::min(c.feed, rows) : rows;
  if (c.generate == 0) return;
  for (index_t run = 0; run + 1 < runs_; ++run) {
    const TraceTensor* next =
        trace.find(run == 0 ? std::string("next_token") : fmt::format("step.{}.next_token", run));
    if (!next || next->values.empty()) break;
    const auto id = static_cast<std::size_t>(next->values.back());
    tokens_.push_back(id < c.vocabulary.size() ? c.vocabulary[id] : fmt::format("{}", id));
  }
}

index_t Sequence::run_of(const std::string& tap) {
  const std::size_t length = run_length(tap);
  index_t run = 0;
  for (std::size_t at = kRun.size(); at + 1 < length; ++at) run = run * 10 + (tap[at] - '0');
  return run;
}

std::string Sequence::without_run(const std::string& tap) { return tap.substr(run_length(tap)); }

index_t Sequence::first_row(const std::string& tap) const {
  const index_t run = run_of(tap);
  return run == 0 ? 0 : prompt_ + run - 1;
}

std::string Sequence::token(index_t row) const {
  const auto at = static_cast<std::size_t>(row);
  return row >= 0 && at < tokens_.size() ? tokens_[at] : fmt::format("{}", row);
}

// "3 chases"; a row without a name of its own is its number already.
std::vector<std::string> Sequence::placed(index_t begin, index_t end) const {
  std::vector<std::string> names;
  for (index_t row = begin; row < end; ++row) {
    const std::string number = fmt::format("{}", row), name = token(row);
    names.push_back(name == number ? name : number + " " + name);
  }
  return names;
}

std::vector<std::string> Sequence::queries(const std::string& tap) const {
  if (runs_ == 1) return case_.query_labels;
  const index_t first = first_row(tap);
  return run_of(tap) == 0 ? query_tokens(tap) : placed(first, first + 1);
}

std::vector<std::string> Sequence::query_tokens(const std::string& tap) const {
  if (runs_ == 1) return case_.query_labels;
  const index_t first = first_row(tap), count = run_of(tap) == 0 ? prompt_ : 1;
  std::vector<std::string> names;
  for (index_t row = first; row < first + count; ++row) names.push_back(token(row));
  return names;
}

std::vector<std::string> Sequence::keys(const std::string& tap) const {
  if (run_of(tap) == 0 || is_cross_tap(tap) || case_.key_labels != case_.query_labels)
    return key_tokens(tap);
  const std::string leaf = leaf_of(tap);
  const index_t first = first_row(tap);
  if (leaf == "k_earlier" || leaf == "v_earlier") return placed(0, first);
  const bool is_own =
      leaf == "k" || leaf == "v" || leaf.compare(0, 2, "k_") == 0 || leaf.compare(0, 2, "v_") == 0;
  if (is_own && leaf != "k_cache" && leaf != "v_cache") return queries(tap);  // the run's new rows
  return placed(0, first + 1);
}

std::vector<std::string> Sequence::key_tokens(const std::string& tap) const {
  if (is_cross_tap(tap)) return case_.context_labels;
  if (runs_ == 1 || case_.key_labels != case_.query_labels) return case_.key_labels;
  if (run_of(tap) == 0) return query_tokens(tap);
  std::vector<std::string> names;
  for (index_t row = 0; row <= first_row(tap); ++row) names.push_back(token(row));
  return names;
}

}  // namespace glasshead::wire
