#include "model/look.h"

#include <algorithm>

#include "core/tile_watch.h"
#include "model/head_study_impl.h"

namespace glasshead::model {
namespace {

// What a study keeps of a row and block until the row ends is held for so many rows at a time.
constexpr index_t kRowsAtOnce = 256;

View<float, 4> rows_of(const View<float, 4>& heads, index_t first, index_t count) {
  return {heads.data + first * heads.strides[2],
          {1, heads.shape[1], count, heads.shape[3]},
          heads.strides};
}

RowState rows_of(const RowState& state, index_t first, index_t count) {
  const auto some = [&](const MutableTensor<3>& all) {
    return View<float, 3>(static_cast<float*>(all.data) + first * all.strides[2],
                          {1, all.shape[1], count}, all.strides);
  };
  return {.max = some(state.max), .sum = some(state.sum), .lse = {}};
}

// Where the text's own positions count, they do not follow from the number of rows.
AttentionOptions placed(const LookedAt& call, index_t first) {
  AttentionOptions options = call.options;
  if (!call.is_cross) options.query_start = call.span.position + first;
  return options;
}

void attend_rows(const LookedAt& call, index_t first, const RowState& state, const TileWatch& watch,
                 const Context& context) {
  const index_t count = state.max.shape[2];
  const View<float, 4> q = rows_of(call.q, first, count), out = rows_of(call.out, first, count);
  const AttentionOptions options = placed(call, first);
  if (call.cache != nullptr)
    attend_watched(q, call.cache->input({call.sequence}), out, options, state, watch, context);
  else
    attend_watched(q, call.k, call.v, out, options, state, watch, context);
}

}  // namespace

void attend_seen(const LookedAt& call, const RowState& state, const Lookers& by,
                 const Context& context) {
  const Place scores_at = call.at(Point::self_scores, Point::cross_scores);
  const bool has_scores = by.taps != nullptr && by.taps->wants(scores_at);
  for (index_t first = 0; first < call.span.rows; first += kRowsAtOnce) {
    const index_t count = std::min(kRowsAtOnce, call.span.rows - first);
    Span span = call.span;
    span.position += first;
    span.rows = count;
    ScoreRows scores;
    if (has_scores) scores = by.taps->score_rows(scores_at, span, call.q.shape[1], call.keys());
    if (by.heads != nullptr) by.heads->start(call, span);
    const TileWatch watch = [&](const SeenTile& tile) {
      if (has_scores) scores.see(tile);
      if (by.heads != nullptr) by.heads->pass.see(tile);
    };
    const RowState of_rows = rows_of(state, first, count);
    attend_rows(call, first, of_rows, has_scores || by.heads != nullptr ? watch : nullptr, context);
    if (has_scores) by.taps->keep_scores(scores_at, scores);
    if (by.heads != nullptr) by.heads->finish(of_rows, context);
  }
  if (by.heads != nullptr) by.heads->keep(call, state);
  if (by.taps == nullptr) return;
  by.taps->see_lse(call.at(Point::self_lse, Point::cross_lse), state);
  const Place weights = call.at(Point::self_weights, Point::cross_weights);
  if (!by.taps->wants(weights)) return;
  const AttentionOptions options = placed(call, 0);
  if (call.cache == nullptr) {
    by.taps->see_weights(weights, call.span, {call.q, call.k, state, options}, context);
  } else {
    const Tensor<float, 4> k = keys_of(*call.cache, call.sequence);
    by.taps->see_weights(weights, call.span, {call.q, k, state, options}, context);
  }
}

}  // namespace glasshead::model
