#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/math.h"
#include "glasshead/model.h"
#include "model/log_probabilities.h"

namespace glasshead {
namespace {

// A fork of a sequence, dropped with it.
class Fork {
 public:
  Fork(Session& session, index_t of) : session_(&session), sequence_(session.fork(of)) {}
  ~Fork() {
    if (session_ != nullptr) session_->drop(sequence_);
  }
  Fork(Fork&& from) noexcept
      : session_(std::exchange(from.session_, nullptr)), sequence_(from.sequence_) {}
  Fork& operator=(Fork&& from) noexcept {
    std::swap(session_, from.session_);
    std::swap(sequence_, from.sequence_);
    return *this;
  }
  index_t sequence() const { return sequence_; }

 private:
  Session* session_;
  index_t sequence_;
};

// An unfinished text, with the sequence of the session that holds all of it but the last id.
struct Growing {
  Fork fork;
  std::vector<index_t> ids;
  double log_probability = 0;
};

// A text's continuation by one id.
struct Step {
  std::size_t parent = 0;
  index_t id = 0;
  double log_probability = 0;
};

bool comes_first(const Step& a, const Step& b) {
  if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
  return a.parent != b.parent ? a.parent < b.parent : a.id < b.id;
}

double score(double log_probability, std::size_t length, const BeamOptions& options) {
  return log_probability /
         math::pow(static_cast<double>(std::max<std::size_t>(length, 1)), options.length_penalty);
}

class Search {
 public:
  Search(Session& session, const BeamOptions& options) : session_(session), options_(options) {}

  std::vector<Beam> run(const std::vector<index_t>& prompt) {
    growing_.push_back({Fork(session_, options_.sequence), {}, 0});
    std::vector<Session::Part> parts{{growing_[0].fork.sequence(), prompt}};
    for (index_t n = 0; n < options_.max_tokens && !growing_.empty(); ++n) {
      advance(session_.forward(parts));
      if (is_decided() || is_at_limit()) break;
      parts.clear();
      for (const Growing& text : growing_)
        parts.push_back({text.fork.sequence(), {text.ids.back()}});
    }
    for (const Growing& text : growing_)
      finished_.push_back({text.ids, text.log_probability, false});
    growing_.clear();
    std::sort(finished_.begin(), finished_.end(), [&](const Beam& a, const Beam& b) {
      const double x = score_of(a), y = score_of(b);
      return x > y || (x == y && a.ids < b.ids);
    });
    if (static_cast<index_t>(finished_.size()) > options_.beams)
      finished_.resize(static_cast<std::size_t>(options_.beams));
    return std::move(finished_);
  }

 private:
  // The end id counts as a token of the text.
  double score_of(const Beam& beam) const {
    return score(beam.log_probability, beam.ids.size() + (beam.is_finished ? 1 : 0), options_);
  }

  // The most probable continuations of all texts: twice as many as there are beams, so that enough
  // are left if as many end.
  std::vector<Step> steps(const View<const float, 2>& logits) const {
    std::vector<Step> all;
    const auto count = static_cast<std::size_t>(2 * options_.beams);
    for (std::size_t n = 0; n < growing_.size(); ++n) {
      const float* const row = logits.data + static_cast<index_t>(n) * logits.strides[0];
      const std::vector<double> logs = model::log_probabilities({row, {logits.shape[1]}});
      for (std::size_t id = 0; id < logs.size(); ++id) {
        const double found = growing_[n].log_probability + logs[id];
        // NaN comes last.
        all.push_back({n, static_cast<index_t>(id), std::isnan(found) ? -INFINITY : found});
      }
      const std::size_t kept = std::min(count, all.size());
      std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept), all.end(),
                        comes_first);
      all.resize(kept);
    }
    return all;
  }

  void advance(const View<const float, 2>& logits) {
    const std::vector<index_t>& ends = session_.model().eos();
    std::vector<Growing> next;
    for (const Step& step : steps(logits)) {
      if (static_cast<index_t>(next.size()) == options_.beams) break;
      std::vector<index_t> ids = growing_[step.parent].ids;
      if (std::find(ends.begin(), ends.end(), step.id) != ends.end()) {
        finished_.push_back({std::move(ids), step.log_probability, true});
        continue;
      }
      ids.push_back(step.id);
      next.push_back({Fork(session_, growing_[step.parent].fork.sequence()), std::move(ids),
                      step.log_probability});
    }
    growing_ = std::move(next);
  }

  // No text has a position for its last id.
  bool is_at_limit() const {
    const index_t limit = session_.model().position_limit();
    return limit > 0 && !growing_.empty() && session_.length(growing_[0].fork.sequence()) >= limit;
  }

  // Enough have ended, and no other can come before the worst of them: a log probability only
  // falls, so a text's best is what it has now, at the length that suits it best.
  bool is_decided() {
    if (static_cast<index_t>(finished_.size()) < options_.beams || growing_.empty()) return false;
    std::vector<double> scores;
    for (const Beam& beam : finished_) scores.push_back(score_of(beam));
    std::sort(scores.begin(), scores.end(), [](double a, double b) { return a > b; });
    const double worst = scores[static_cast<std::size_t>(options_.beams) - 1];
    const Growing& best = growing_[0];
    const std::size_t length = options_.length_penalty > 0
                                   ? static_cast<std::size_t>(options_.max_tokens)
                                   : best.ids.size();
    return score(best.log_probability, length, options_) <= worst;
  }

  Session& session_;
  const BeamOptions& options_;
  std::vector<Growing> growing_;
  std::vector<Beam> finished_;
};

}  // namespace

std::vector<Beam> beam_search(Session& session, const std::vector<index_t>& prompt,
                              const BeamOptions& options) {
  std::vector<Problem> problems;
  const Model& model = session.model();
  if (model.kind() == ModelKind::encoder)
    problems.push_back({"model", "is an encoder: it reads whole texts and continues none"});
  else if (!model.has_logits())
    problems.push_back({"model", "has no head that makes logits"});
  if (options.beams < 1 || options.beams > model.vocab())
    problems.push_back(
        {"beams", fmt::format("{}; 1 to {}, the vocabulary's size", options.beams, model.vocab())});
  if (options.max_tokens < 0)
    problems.push_back({"max_tokens", fmt::format("{}; 0 or more", options.max_tokens)});
  if (!std::isfinite(options.length_penalty))
    problems.push_back({"length_penalty", "not a number; 0 is no penalty, 1 the mean per token"});
  if (!problems.empty()) fail(ErrorKind::option, "beam_search", std::move(problems));
  return Search(session, options).run(prompt);
}

}  // namespace glasshead
