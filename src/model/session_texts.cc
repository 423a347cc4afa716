// What a session does with whole texts: embeddings, and reading what is to be written about.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/math.h"
#include "core/context_impl.h"
#include "glasshead/model.h"
#include "model/session_impl.h"

namespace glasshead {
namespace {

using model::Point;
using model::Pooling;
using model::Span;

// Of one text's rows [n, d] the mean, summed in f64 in the order of tokens, or the first row; to
// length 1 on request.
void pool_rows(const View<const float, 2>& rows, Pooling pooling, bool is_normalised,
               const View<float, 1>& out) {
  const index_t n = pooling == Pooling::first ? 1 : rows.shape[0], d = rows.shape[1];
  std::vector<double> sum(static_cast<std::size_t>(d), 0.0);
  for (index_t i = 0; i < n; ++i)
    for (index_t e = 0; e < d; ++e) sum[static_cast<std::size_t>(e)] += rows(i, e);
  double squares = 0;
  for (double& x : sum) {
    x /= static_cast<double>(n);
    squares += x * x;
  }
  const double length = is_normalised && squares > 0 ? std::sqrt(squares) : 1;
  for (index_t e = 0; e < d; ++e)
    out(e) = static_cast<float>(sum[static_cast<std::size_t>(e)] / length);
}

constexpr index_t kRowsOfTexts = 2048;  // embed goes through so many tokens together, or one text

}  // namespace

Tensor<float, 2> Session::embed(const std::vector<Text>& texts, bool normalised) {
  std::vector<Problem> problems;
  if (!impl_->is_encoder())
    problems.push_back({"model", fmt::format("is a {}; only encoders make a vector for a text",
                                             name(impl_->model.kind()))});
  if (texts.empty()) problems.push_back({"texts", "there is none; at least one"});
  impl_->check_texts(texts, problems);
  if (!problems.empty()) fail(ErrorKind::option, "Session::embed", std::move(problems));

  const model::Description& description = impl_->description();
  const bool is_normalised = normalised || description.normalises_pooled;
  Tensor<float, 2> vectors({static_cast<index_t>(texts.size()), description.d_model});
  for (std::size_t first = 0; first < texts.size();) {
    std::vector<Text> some;
    index_t tokens = 0;
    while (first + some.size() < texts.size()) {
      const auto& next = texts[first + some.size()];
      if (!some.empty() && tokens + static_cast<index_t>(next.ids.size()) > kRowsOfTexts) break;
      tokens += static_cast<index_t>(next.ids.size());
      some.push_back(next);
    }
    const View<float, 2> rows = impl_->encode(some, {});
    index_t row = 0;
    for (std::size_t n = 0; n < some.size(); ++n) {
      const auto length = static_cast<index_t>(some[n].ids.size());
      pool_rows(model::some_rows(rows, row, length), description.pooling, is_normalised,
                {vectors.data() + static_cast<index_t>(first + n) * description.d_model,
                 {description.d_model}});
      row += length;
    }
    first += some.size();
  }
  return vectors;
}

index_t Session::Impl::remember(const View<const float, 2>& rows, Taps::Impl* taps) {
  const auto unread = std::find(readers.begin(), readers.end(), 0);
  const auto text = static_cast<index_t>(unread - readers.begin());
  if (unread == readers.end()) readers.push_back(0);
  const std::vector<Span> spans{{.rows = rows.shape[0]}};
  const model::Stack& stack = *description().decoder;
  for (std::size_t n = 0; n < cross.size(); ++n) {
    const model::Attention& a = *stack.layers[n].cross;
    const model::AttentionWeights& w = weights().decoder.layers[n].cross;
    const index_t keys = a.kv_heads * a.d_k, values = a.kv_heads * a.d_v;
    const View<float, 2> kv = work.in.rows(rows.shape[0], keys + values);
    w.memory.apply(rows, kv, *context);
    const View<float, 2> k = model::columns(kv, 0, keys), v = model::columns(kv, keys, values);
    if (a.qk_norm)
      for (index_t h = 0; h < a.kv_heads; ++h) {
        const View<float, 2> one = model::columns(k, h * a.d_k, a.d_k);
        apply_norm(*a.qk_norm, w.k_norm, one, one, *context);
      }
    if (taps != nullptr) {
      taps->see({"decoder", static_cast<index_t>(n), Point::cross_k}, k, spans, a.kv_heads);
      taps->see({"decoder", static_cast<index_t>(n), Point::cross_v}, v, spans, a.kv_heads);
    }
    if (cross[n].sequences() <= text + 1) cross[n].fork(0);
    const index_t step = kv.strides[0];
    cross[n].append(text + 1,
                    View<float, 3>(k.data, {a.kv_heads, rows.shape[0], a.d_k}, {a.d_k, step, 1}),
                    View<float, 3>(v.data, {a.kv_heads, rows.shape[0], a.d_v}, {a.d_v, step, 1}));
  }
  return text;
}

index_t Session::read(const std::vector<index_t>& text, Taps* taps, HeadStudy* heads) {
  std::vector<Problem> problems;
  if (impl_->model.kind() != ModelKind::encoder_decoder)
    problems.push_back({"model", fmt::format("is a {}; only an encoder-decoder writes about a text",
                                             name(impl_->model.kind()))});
  impl_->check_ids("text", text, 0, impl_->description().position_limit, problems);
  Taps::Impl* const watch = resolved(taps, impl_->model, problems);
  const std::uint64_t about = ++impl_->texts_read;
  HeadStudy::Impl* const study =
      resolved(heads, *impl_, {{.stack = "encoder", .ids = &text, .about = about}}, problems);
  if (!problems.empty()) fail(ErrorKind::option, "Session::read", std::move(problems));
  const View<float, 2> rows = impl_->encode({{.ids = text}}, {watch, study});
  return impl_->add({.memory = impl_->remember(rows, watch), .about = about});
}

}  // namespace glasshead
