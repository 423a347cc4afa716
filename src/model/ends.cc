#include "model/ends.h"

#include <algorithm>

#include "base/math.h"
#include "core/context_impl.h"
#include "model/block.h"
#include "nn/rows.h"

namespace glasshead::model {
namespace {

// The learned position of each row: tokens count up from the text's first one, but those that are
// not counted stand before it.
std::vector<index_t> learned_positions(const Embedding& e, std::span<const index_t> ids,
                                       const std::vector<Span>& spans) {
  std::vector<index_t> at(ids.size());
  for (const Span& span : spans) {
    index_t next = e.first_position + span.position;
    for (index_t i = 0; i < span.rows; ++i) {
      const auto row = static_cast<std::size_t>(span.row + i);
      at[row] = e.uncounted && ids[row] == *e.uncounted ? e.first_position - 1 : next++;
    }
  }
  return at;
}

void add_row(const std::vector<float>& table, index_t at, const View<float, 2>& x, index_t row) {
  const float* const from = table.data() + at * x.shape[1];
  for (index_t e = 0; e < x.shape[1]; ++e) x(row, e) += from[e];
}

}  // namespace

void embed_rows(const Description& model, const EmbeddingWeights& weights, const Tokens& tokens,
                Workspace& work, const View<float, 2>& x, const Context& context) {
  const Embedding& e = model.embedding;
  const auto rows = static_cast<index_t>(tokens.ids.size());
  const bool is_projected = e.is_projected;
  const View<float, 2> y = is_projected ? work.embedded.rows(rows, e.width) : x;
  const std::vector<index_t> at =
      e.positions > 0 ? learned_positions(e, tokens.ids, tokens.spans) : std::vector<index_t>();
  context.impl().pool.run(rows, [&](index_t row, int) {
    const auto n = static_cast<std::size_t>(row);
    float* const to = y.data + row * y.strides[0];
    weights.tokens.row(tokens.ids[n], {to, static_cast<std::size_t>(e.width)});
    if (e.scale != 1)
      for (index_t d = 0; d < e.width; ++d) to[d] = static_cast<float>(to[d] * e.scale);
    if (e.token_types > 0)
      add_row(weights.token_types, tokens.segments.empty() ? 0 : tokens.segments[n], y, row);
    if (e.positions > 0) add_row(weights.positions, at[n], y, row);
  });
  if (e.norm) apply_norm(*e.norm, weights.norm, y, y, context);
  if (is_projected) weights.projection.apply(y, x, context);
}

void logits_of(const Description& model, const HeadWeights& weights, const View<const float, 2>& x,
               Workspace& work, const View<float, 2>& logits, const Context& context) {
  const Head& head = model.head;
  const index_t rows = x.shape[0];
  View<const float, 2> in = x;
  if (head.scale != 1) {
    const View<float, 2> scaled = work.chosen.rows(rows, x.shape[1]);
    for (index_t r = 0; r < rows; ++r)
      for (index_t e = 0; e < x.shape[1]; ++e)
        scaled(r, e) = static_cast<float>(x(r, e) * head.scale);
    in = scaled;
  }
  if (head.transform) {
    const View<float, 2> y = work.head.rows(rows, weights.transform.out());
    weights.transform.apply(in, y, context);
    nn::activate_rows(y, head.transform->activation, context);
    apply_norm(head.transform->norm, weights.transform_norm, y, y, context);
    in = y;
  }
  weights.logits.apply(in, logits, context);
  if (head.softcap == 0 && !head.has_bias) return;
  context.impl().pool.run(rows, [&](index_t r, int) {
    for (index_t n = 0; n < logits.shape[1]; ++n) {
      float& logit = logits(r, n);
      if (head.has_bias) logit += weights.bias[static_cast<std::size_t>(n)];
      if (head.softcap > 0)
        logit = static_cast<float>(head.softcap * math::tanh(logit / head.softcap));
    }
  });
}

}  // namespace glasshead::model
