#include <algorithm>
#include <atomic>

#include <fmt/format.h>

#include "base/fail.h"
#include "glasshead/model.h"
#include "model/ends.h"
#include "model/session_impl.h"

namespace glasshead {
namespace {

using model::Point;
using model::Span;

KvCache empty_cache(const model::Attention& a) {
  return KvCache({.batch = 1, .kv_heads = a.kv_heads, .d_k = a.d_k, .d_v = a.d_v});
}

// One text after another.
std::vector<Span> spans_of(const std::vector<Session::Text>& texts) {
  std::vector<Span> spans;
  index_t row = 0;
  for (const Session::Text& text : texts) {
    const auto length = static_cast<index_t>(text.ids.size());
    spans.push_back({.place = static_cast<index_t>(spans.size()), .row = row, .rows = length});
    row += length;
  }
  return spans;
}

}  // namespace

Taps::Impl* resolved(Taps* taps, const Model& model, std::vector<Problem>& problems) {
  if (taps == nullptr) return nullptr;
  taps->impl().resolve(model, problems);
  return &taps->impl();
}

HeadStudy::Impl* resolved(HeadStudy* heads, const Session::Impl& session,
                          const std::vector<HeadStudy::Impl::Run>& texts,
                          std::vector<Problem>& problems) {
  if (heads == nullptr) return nullptr;
  HeadStudy::Impl& study = heads->impl();
  const auto at = static_cast<std::size_t>(study.options.sequence);
  if (at >= texts.size()) {
    problems.push_back({"heads", fmt::format("the study looks at text {} of a call, which has {}",
                                             at, texts.size())});
    return nullptr;
  }
  HeadStudy::Impl::Run run = texts[at];
  run.session = session.serial;
  run.changes = session.change_count;
  study.check(run, problems);
  if (problems.empty()) study.begin(run);
  return &study;
}

void refuse(const char* function, std::vector<Problem> problems) {
  if (!problems.empty()) fail(ErrorKind::option, function, std::move(problems));
}

namespace {

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> count = 0;
  return ++count;
}

}  // namespace

Session::Impl::Impl(const Model& from, const SessionOptions& given, const Context& where)
    : model(from), options(given), context(&where), serial(next_serial()) {
  if (options.rows_at_once < 1)
    fail(ErrorKind::option, "Session", "rows_at_once",
         fmt::format("{}; 1 or more", options.rows_at_once));
  if (description().encoder) encoder_calls = layer_calls(*description().encoder, weights().encoder);
  if (!description().decoder) return;
  decoder_calls = layer_calls(*description().decoder, weights().decoder);
  for (const model::Layer& layer : description().decoder->layers) {
    self.push_back(empty_cache(layer.self));
    if (layer.cross) cross.push_back(empty_cache(*layer.cross));
  }
  if (is_decoder()) add({});
}

Session::Impl::Sequence& Session::Impl::at(const char* function, index_t sequence) {
  const auto count = static_cast<index_t>(sequences.size());
  if (sequence < 0 || sequence >= count || !sequences[static_cast<std::size_t>(sequence)].is_used)
    fail(ErrorKind::option, function, "sequence",
         fmt::format("{}; no such sequence ({} were made)", sequence, count));
  return sequences[static_cast<std::size_t>(sequence)];
}

index_t Session::Impl::add(Sequence sequence) {
  if (sequence.memory >= 0) ++readers[static_cast<std::size_t>(sequence.memory)];
  if (sequence.keys == 0) sequence.keys = fork_keys(0);
  for (std::size_t n = 0; n < sequences.size(); ++n)
    if (!sequences[n].is_used) {
      sequences[n] = sequence;
      return static_cast<index_t>(n);
    }
  sequences.push_back(sequence);
  return static_cast<index_t>(sequences.size()) - 1;
}

// The caches of all layers number their sequences alike.
index_t Session::Impl::fork_keys(index_t keys) {
  index_t made = 0;
  if (!free_keys.empty()) {
    made = free_keys.back();
    for (KvCache& cache : self) cache.fork(keys, made);
    free_keys.pop_back();
    return made;
  }
  for (KvCache& cache : self) made = cache.fork(keys);
  return made;
}

void Session::Impl::truncate(Sequence& sequence, index_t length) {
  for (KvCache& cache : self) cache.truncate(sequence.keys, length);
  sequence.length = length;
}

void Session::Impl::check_ids(const std::string& where, const std::vector<index_t>& ids,
                              index_t before, index_t limit, std::vector<Problem>& problems) const {
  const index_t vocab = description().vocab;
  if (ids.empty()) problems.push_back({where, "no ids; at least one"});
  for (std::size_t n = 0; n < ids.size(); ++n)
    if (ids[n] < 0 || ids[n] >= vocab) {
      problems.push_back({where, fmt::format("id {} (number {}); this model's are 0 to {}", ids[n],
                                             n, vocab - 1)});
      break;
    }
  const auto after = before + static_cast<index_t>(ids.size());
  if (limit > 0 && after > limit)
    problems.push_back(
        {where, fmt::format("{} tokens{}; this model has {} positions", after,
                            before > 0 ? fmt::format(" with the {} before", before) : std::string(),
                            limit)});
}

void Session::Impl::check_texts(const std::vector<Text>& texts,
                                std::vector<Problem>& problems) const {
  const index_t types = description().embedding.token_types;
  for (std::size_t n = 0; n < texts.size(); ++n) {
    const Text& text = texts[n];
    const std::string where = fmt::format("texts[{}]", n);
    check_ids(where + ".ids", text.ids, 0, description().position_limit, problems);
    if (!text.segments.empty() && text.segments.size() != text.ids.size())
      problems.push_back({where + ".segments", fmt::format("{} for {} ids; one for each, or none",
                                                           text.segments.size(), text.ids.size())});
    for (const index_t segment : text.segments)
      if (segment != 0 && (segment < 0 || segment >= types)) {
        problems.push_back(
            {where + ".segments",
             fmt::format("{}; this model has {} segments, numbered from 0", segment, types)});
        break;
      }
  }
}

void Session::Impl::see(const char* stack, Point point, const View<float, 2>& rows,
                        const std::vector<Span>& spans, Taps::Impl* taps) const {
  const bool has_both = description().encoder && description().decoder;
  const model::Place place{has_both ? stack : "", -1, point};
  if (!changes.is_empty()) changes.apply(place, rows, spans, 0);
  if (taps != nullptr) taps->see(place, rows, spans, 0);
}

// Rows before the final norm.
View<float, 2> Session::Impl::decode(const std::vector<index_t>& ids,
                                     const std::vector<Span>& spans, const Looks& looks) {
  const View<float, 2> x = work.x.rows(static_cast<index_t>(ids.size()), description().d_model);
  embed_rows(description(), weights().embedding, {ids, {}, spans}, work, x, *context);
  see("decoder", Point::embedding, x, spans, looks.taps);
  model::run_layers({.name = "decoder",
                     .stack = *description().decoder,
                     .weights = weights().decoder,
                     .calls = decoder_calls,
                     .self = &self,
                     .cross = &cross,
                     .spans = spans,
                     .work = work,
                     .context = *context,
                     .taps = looks.taps,
                     .heads = looks.heads,
                     .changes = changes_made()},
                    x);
  return x;
}

View<float, 2> Session::Impl::encode(const std::vector<Text>& texts, const Looks& looks) {
  std::vector<index_t> ids, segments;
  const std::vector<Span> spans = spans_of(texts);
  for (const Text& text : texts) {
    ids.insert(ids.end(), text.ids.begin(), text.ids.end());
    segments.insert(segments.end(), text.segments.begin(), text.segments.end());
    segments.resize(ids.size(), 0);
  }
  const model::Stack& stack = *description().encoder;
  const View<float, 2> x = work.x.rows(static_cast<index_t>(ids.size()), description().d_model);
  embed_rows(description(), weights().embedding, {ids, segments, spans}, work, x, *context);
  see("encoder", Point::embedding, x, spans, looks.taps);
  model::run_layers({.name = "encoder",
                     .stack = stack,
                     .weights = weights().encoder,
                     .calls = encoder_calls,
                     .spans = spans,
                     .work = work,
                     .context = *context,
                     .taps = looks.taps,
                     .heads = looks.heads,
                     .changes = changes_made()},
                    x);
  if (stack.has_final_norm) {
    apply_norm(stack.norm, weights().encoder.final_norm, x, x, *context);
    see("encoder", Point::final_norm, x, spans, looks.taps);
  }
  return x;
}

// --- Session ---

Session::Session(const Model& model, const SessionOptions& options, const Context& context)
    : impl_(std::make_unique<Impl>(model, options, context)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

const Model& Session::model() const { return impl_->model; }

void Session::change(const std::vector<Change>& changes) {
  std::vector<Problem> problems;
  model::Changes made(changes, impl_->model, problems);
  refuse("Session::change", std::move(problems));
  impl_->changes = std::move(made);
  ++impl_->change_count;
  const model::Description& description = impl_->description();
  if (description.decoder) {
    impl_->decoder_calls = layer_calls(*description.decoder, impl_->weights().decoder);
    impl_->changes.narrow(impl_->decoder_calls);
  } else {
    impl_->encoder_calls = layer_calls(*description.encoder, impl_->weights().encoder);
    impl_->changes.narrow(impl_->encoder_calls);
  }
}

index_t Session::add() {
  if (!impl_->is_decoder())
    fail(ErrorKind::option, "Session::add", "model",
         fmt::format("is an {}; {}", name(impl_->model.kind()),
                     impl_->is_encoder() ? "it reads whole texts: encode"
                                         : "it writes about a text: read"));
  return impl_->add({});
}

index_t Session::fork(index_t sequence) {
  Impl::Sequence copy = impl_->at("Session::fork", sequence);
  copy.keys = impl_->fork_keys(copy.keys);
  return impl_->add(copy);
}

void Session::truncate(index_t sequence, index_t length) {
  Impl::Sequence& at = impl_->at("Session::truncate", sequence);
  if (length < 0 || length > at.length)
    fail(ErrorKind::option, "Session::truncate", "length",
         fmt::format("{}; the sequence has {} tokens", length, at.length));
  impl_->truncate(at, length);
}

void Session::drop(index_t sequence) {
  Impl::Sequence& at = impl_->at("Session::drop", sequence);
  impl_->truncate(at, 0);
  if (at.memory >= 0 && --impl_->readers[static_cast<std::size_t>(at.memory)] == 0)
    for (KvCache& cache : impl_->cross) cache.truncate(at.memory + 1, 0);
  impl_->free_keys.push_back(at.keys);
  at = {};
  at.is_used = false;
}

index_t Session::length(index_t sequence) const {
  return impl_->at("Session::length", sequence).length;
}

index_t Session::cache_bytes() const {
  index_t bytes = 0;
  for (const KvCache& cache : impl_->self) bytes += cache.bytes();
  for (const KvCache& cache : impl_->cross) bytes += cache.bytes();
  return bytes;
}

View<const float, 2> Session::encode(const std::vector<Text>& texts, Taps* taps, HeadStudy* heads) {
  std::vector<Problem> problems;
  if (!impl_->description().encoder)
    problems.push_back({"model", "is a decoder, which continues texts: forward"});
  if (texts.empty()) problems.push_back({"texts", "there is none; at least one"});
  impl_->check_texts(texts, problems);
  Taps::Impl* const watch = resolved(taps, impl_->model, problems);
  std::vector<HeadStudy::Impl::Run> runs;
  for (const Text& text : texts)
    runs.push_back({.stack = "encoder",
                    .ids = &text.ids,
                    .about = impl_->is_encoder() ? 0 : ++impl_->texts_read});
  HeadStudy::Impl* const study = resolved(heads, *impl_, runs, problems);
  refuse("Session::encode", std::move(problems));
  const View<float, 2> rows = impl_->encode(texts, {watch, study});
  if (watch != nullptr && impl_->is_encoder() && impl_->description().head.has_logits &&
      watch->wants({"", -1, model::Point::logits})) {
    watch->see({"", -1, model::Point::logits}, logits(rows), spans_of(texts), 0);
  }
  return rows;
}

View<const float, 2> Session::logits(const View<const float, 2>& rows) {
  const model::Description& description = impl_->description();
  std::vector<Problem> problems;
  if (!description.head.has_logits) problems.push_back({"model", "has no head that makes logits"});
  if (rows.shape[1] != description.d_model)
    problems.push_back({"rows", fmt::format("of {} numbers; {} is this model's d_model",
                                            rows.shape[1], description.d_model)});
  refuse("Session::logits", std::move(problems));
  const View<float, 2> made = impl_->work.logits.rows(rows.shape[0], description.vocab);
  logits_of(description, impl_->weights().head, rows, impl_->work, made, *impl_->context);
  return made;
}

View<const float, 2> Session::lens(const View<const float, 2>& rows) {
  const model::Stack& stack = impl_->model.impl().last_stack();
  if (!stack.has_final_norm || rows.shape[1] != impl_->description().d_model) return logits(rows);
  const model::Weights& weights = impl_->weights();
  const View<float, 2> normed = impl_->work.normed.rows(rows.shape[0], rows.shape[1]);
  apply_norm(stack.norm, (impl_->is_encoder() ? weights.encoder : weights.decoder).final_norm, rows,
             normed, *impl_->context);
  return logits(normed);
}

}  // namespace glasshead
