#include <algorithm>

#include <fmt/format.h>

#include "glasshead/model.h"
#include "model/ends.h"
#include "model/session_impl.h"

namespace glasshead {
namespace {

// What a forward is asked to do, in goes of at most so many rows.
class Forward {
 public:
  Forward(Session::Impl& session, const std::vector<Session::Part>& parts, LogitRows rows,
          const Session::Impl::Looks& looks)
      : session_(session), parts_(parts), rows_(rows), looks_(looks) {}

  View<const float, 2> run() {
    index_t total = 0;
    for (const Session::Part& part : parts_) total += static_cast<index_t>(part.ids.size());
    if (!session_.description().head.has_logits) rows_ = LogitRows::none;
    const index_t count = rows_ == LogitRows::all    ? total
                          : rows_ == LogitRows::last ? static_cast<index_t>(parts_.size())
                                                     : 0;
    if (count > 0) logits_ = session_.work.logits.rows(count, session_.description().vocab);
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const auto size = static_cast<index_t>(parts_[p].ids.size());
      for (index_t done = 0; done < size;) {
        const index_t take = std::min(
            size - done, session_.options.rows_at_once - static_cast<index_t>(ids_.size()));
        put(p, done, take);
        done += take;
        if (static_cast<index_t>(ids_.size()) == session_.options.rows_at_once) flush();
      }
    }
    flush();
    return logits_;
  }

 private:
  void put(std::size_t p, index_t done, index_t take) {
    const Session::Part& part = parts_[p];
    Session::Impl::Sequence& sequence = session_.at("Session::forward", part.sequence);
    spans_.push_back({.place = static_cast<index_t>(p),
                      .row = static_cast<index_t>(ids_.size()),
                      .rows = take,
                      .position = sequence.length,
                      .keys = sequence.keys,
                      .memory = sequence.memory + 1});
    const auto first = part.ids.begin() + done;
    ids_.insert(ids_.end(), first, first + take);
    sequence.length += take;
    const bool is_end = done + take == static_cast<index_t>(part.ids.size());
    for (index_t i = 0; i < take; ++i)
      is_wanted_.push_back(rows_ == LogitRows::all ||
                           (rows_ == LogitRows::last && is_end && i == take - 1));
  }

  void flush() {
    if (ids_.empty()) return;
    const model::Description& description = session_.description();
    const model::Stack& stack = *description.decoder;
    const View<float, 2> x = session_.decode(ids_, spans_, looks_);
    if (looks_.taps != nullptr && stack.has_final_norm) {  // all rows, to be looked at
      const View<float, 2> normed = session_.work.normed.rows(x.shape[0], x.shape[1]);
      apply_norm(stack.norm, session_.weights().decoder.final_norm, x, normed, *session_.context);
      session_.see("decoder", model::Point::final_norm, normed, spans_, looks_.taps);
    }
    make_logits(x);
    ids_.clear();
    spans_.clear();
    is_wanted_.clear();
  }

  // Of the rows that are wanted, which become the next rows of the result.
  void make_logits(const View<float, 2>& x) {
    const auto count = std::count(is_wanted_.begin(), is_wanted_.end(), true);
    if (count == 0) return;
    index_t to = 0;
    for (index_t row = 0; row < x.shape[0]; ++row)
      if (is_wanted_[static_cast<std::size_t>(row)]) {
        std::copy_n(x.data + row * x.strides[0], x.shape[1], x.data + to * x.strides[0]);
        ++to;
      }
    const model::Stack& stack = *session_.description().decoder;
    const View<float, 2> chosen = model::some_rows(x, 0, count);
    if (stack.has_final_norm)
      apply_norm(stack.norm, session_.weights().decoder.final_norm, chosen, chosen,
                 *session_.context);
    const View<float, 2> logits = model::some_rows(logits_, made_, count);
    logits_of(session_.description(), session_.weights().head, chosen, session_.work, logits,
              *session_.context);
    made_ += count;
    if (looks_.taps != nullptr)
      looks_.taps->see({"", -1, model::Point::logits}, logits, wanted_spans(), 0);
  }

  // The spans over the rows that logits were made of.
  std::vector<model::Span> wanted_spans() const {
    std::vector<model::Span> spans;
    index_t row = 0;
    for (const model::Span& span : spans_) {
      const auto begin = is_wanted_.begin() + span.row;
      const auto rows = std::count(begin, begin + span.rows, true);
      spans.push_back({.place = span.place, .row = row, .rows = rows});
      row += rows;
    }
    return spans;
  }

  Session::Impl& session_;
  const std::vector<Session::Part>& parts_;
  LogitRows rows_;
  Session::Impl::Looks looks_;
  View<float, 2> logits_;
  index_t made_ = 0;
  std::vector<index_t> ids_;
  std::vector<model::Span> spans_;
  std::vector<bool> is_wanted_;
};

}  // namespace

View<const float, 2> Session::forward(const std::vector<Part>& parts, LogitRows rows, Taps* taps,
                                      HeadStudy* heads) {
  constexpr const char* kFunction = "Session::forward";
  std::vector<Problem> problems;
  if (impl_->is_encoder())
    problems.push_back({"model", "is an encoder, which reads whole texts: encode, then logits"});
  if (parts.empty()) problems.push_back({"parts", "there is none; at least one"});
  std::vector<index_t> seen;
  std::vector<HeadStudy::Impl::Run> runs;
  for (std::size_t n = 0; n < parts.size() && !impl_->is_encoder(); ++n) {
    const std::string where = fmt::format("parts[{}]", n);
    const auto count = static_cast<index_t>(impl_->sequences.size());
    const index_t sequence = parts[n].sequence;
    if (sequence < 0 || sequence >= count ||
        !impl_->sequences[static_cast<std::size_t>(sequence)].is_used) {
      problems.push_back({where + ".sequence",
                          fmt::format("{}; no such sequence ({} were made)", sequence, count)});
      continue;
    }
    if (std::find(seen.begin(), seen.end(), sequence) != seen.end())
      problems.push_back(
          {where + ".sequence", fmt::format("{} has a part already; one for each", sequence)});
    seen.push_back(sequence);
    const Impl::Sequence& at = impl_->sequences[static_cast<std::size_t>(sequence)];
    runs.push_back({.stack = "decoder",
                    .ids = &parts[n].ids,
                    .position = at.length,
                    .sequence = sequence,
                    .about = at.about});
    impl_->check_ids(where + ".ids", parts[n].ids, at.length, impl_->description().position_limit,
                     problems);
  }
  Taps::Impl* const watch = resolved(taps, impl_->model, problems);
  HeadStudy::Impl* study = nullptr;
  if (runs.size() == parts.size())  // else a sequence does not exist, or this model has none
    study = resolved(heads, *impl_, runs, problems);
  refuse(kFunction, std::move(problems));
  return Forward(*impl_, parts, rows, {watch, study}).run();
}

}  // namespace glasshead
