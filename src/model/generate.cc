#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "base/fail.h"
#include "glasshead/text_writer.h"

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

}  // namespace

const char* name(StopReason reason) {
  constexpr const char* kNames[] = {"length", "end", "stop", "callback", "position_limit"};
  return kNames[static_cast<int>(reason)];
}

TextWriter::TextWriter(Session& session, std::vector<index_t> prompt, GenerateOptions options)
    : session_(&session), options_(std::move(options)), text_(std::move(prompt)) {
  std::vector<Problem> problems = problems_of(session, options_);
  if (!problems.empty()) fail(ErrorKind::option, "generate", std::move(problems));
  for (const std::string& text : options_.stop)
    longest_stop_ = std::max(longest_stop_, text.size());
}

// Keeps no more of the text than the longest could begin in.
bool TextWriter::stops_with(index_t id) {
  if (options_.stop.empty()) return false;
  seen_ += options_.text_of(id);
  for (const std::string& text : options_.stop)
    if (seen_.find(text) != std::string::npos) return true;
  if (seen_.size() >= longest_stop_) seen_.erase(0, seen_.size() - longest_stop_ + 1);
  return false;
}

std::optional<index_t> TextWriter::end(StopReason why) {
  is_over_ = true;
  why_ = why;
  return std::nullopt;
}

std::optional<index_t> TextWriter::next() {
  if (is_over_) return std::nullopt;
  const auto unread = text_.begin() + static_cast<std::ptrdiff_t>(read_);
  const View<const float, 2> logits = session_->forward(
      {{options_.sequence, {unread, text_.end()}}}, LogitRows::last, options_.taps, options_.heads);
  read_ = text_.size();
  if (written_ == options_.max_tokens) return end(StopReason::length);
  is_over_ = true;  // where something throws from here on: the text has no next token
  const index_t id = sample({logits.data, {logits.shape[1]}}, options_.sampling, text_,
                            static_cast<std::uint64_t>(written_));
  if ((options_.stops_at_eos && contains(session_->model().eos(), id)) ||
      contains(options_.stop_ids, id))
    return end(StopReason::end_id);
  text_.push_back(id);
  ++written_;
  const bool has_stop = stops_with(id);
  is_over_ = false;
  const index_t limit = session_->model().position_limit();
  if (has_stop)
    end(StopReason::stop_text);
  else if (written_ == options_.max_tokens)
    end(StopReason::length);
  else if (limit > 0 && session_->length(options_.sequence) >= limit)
    end(StopReason::position_limit);
  return id;
}

Generation generate(Session& session, const std::vector<index_t>& prompt,
                    const GenerateOptions& options) {
  Generation result;
  TextWriter writer(session, prompt, options);
  while (const std::optional<index_t> id = writer.next()) {
    result.ids.push_back(*id);
    if (options.on_token && !options.on_token(*id)) {
      result.why = StopReason::callback;
      return result;
    }
  }
  result.why = writer.why();
  return result;
}

}  // namespace glasshead
