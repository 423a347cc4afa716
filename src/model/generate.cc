#include <algorithm>

#include <fmt/format.h>

#include "base/fail.h"
#include "glasshead/model.h"
#include "model/session_impl.h"

namespace glasshead {
namespace {

bool contains(const std::vector<index_t>& ids, index_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

std::vector<Problem> problems_of(const Session& session, const GenerateOptions& options) {
  std::vector<Problem> problems = check(options.sampling);
  const Model& model = session.model();
  if (model.kind() == ModelKind::encoder)
    problems.push_back({"model", "is an encoder: it reads whole texts and continues none"});
  else if (!model.has_logits())
    problems.push_back({"model", "has no head that makes logits"});
  if (options.max_tokens < 0)
    problems.push_back({"max_tokens", fmt::format("{}; 0 or more", options.max_tokens)});
  for (const index_t id : options.stop_ids)
    if (id < 0 || id >= model.vocab())
      problems.push_back(
          {"stop_ids", fmt::format("{}; this model's ids are 0 to {}", id, model.vocab() - 1)});
  for (const std::string& text : options.stop)
    if (text.empty()) problems.push_back({"stop", "an empty text, which is everywhere"});
  if (!options.stop.empty() && !options.text_of)
    problems.push_back({"stop", "stop texts need text_of, which gives the bytes of an id"});
  return problems;
}

// Whether a stop text has come; keeps no more of the text than the longest could begin in.
class Stops {
 public:
  explicit Stops(const GenerateOptions& options) : options_(options) {
    for (const std::string& text : options.stop) longest_ = std::max(longest_, text.size());
  }
  bool come_with(index_t id) {
    if (options_.stop.empty()) return false;
    const std::string more = options_.text_of(id);
    seen_ += more;
    for (const std::string& text : options_.stop)
      if (seen_.find(text) != std::string::npos) return true;
    if (seen_.size() >= longest_) seen_.erase(0, seen_.size() - longest_ + 1);
    return false;
  }

 private:
  const GenerateOptions& options_;
  std::size_t longest_ = 0;
  std::string seen_;
};

}  // namespace

const char* name(StopReason reason) {
  constexpr const char* kNames[] = {"length", "end", "stop", "callback"};
  return kNames[static_cast<int>(reason)];
}

Generation generate(Session& session, const std::vector<index_t>& prompt,
                    const GenerateOptions& options) {
  std::vector<Problem> problems = problems_of(session, options);
  if (!problems.empty()) fail(ErrorKind::option, "generate", std::move(problems));
  const Model& model = session.model();
  const index_t limit = model.position_limit();
  Generation result;
  Stops stops(options);
  std::vector<index_t> text = prompt;
  View<const float, 2> logits =
      session.forward({{options.sequence, prompt}}, LogitRows::last, options.taps);
  std::vector<Session::Part> next{{options.sequence, {0}}};
  while (static_cast<index_t>(result.ids.size()) < options.max_tokens) {
    const index_t id = sample({logits.data, {logits.shape[1]}}, options.sampling, text,
                              static_cast<std::uint64_t>(result.ids.size()));
    if ((options.stops_at_eos && contains(model.eos(), id)) || contains(options.stop_ids, id)) {
      result.why = StopReason::end_id;
      break;
    }
    result.ids.push_back(id);
    text.push_back(id);
    if (options.on_token && !options.on_token(id)) {
      result.why = StopReason::callback;
      break;
    }
    if (stops.come_with(id)) {
      result.why = StopReason::stop_text;
      break;
    }
    if (static_cast<index_t>(result.ids.size()) == options.max_tokens) break;
    if (limit > 0 && session.length(options.sequence) >= limit) break;
    next[0].ids[0] = id;
    logits = session.forward(next, LogitRows::last, options.taps);
  }
  return result;
}

}  // namespace glasshead
