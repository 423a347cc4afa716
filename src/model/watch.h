// Looking at a run's numbers where they arise: what a Taps keeps. The layers tell it of every
// matrix they make; what nobody asked for costs a comparison.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/tile_watch.h"
#include "glasshead/attention.h"
#include "glasshead/kv_cache.h"
#include "glasshead/model.h"
#include "model/places.h"

namespace glasshead::model {

// A stretch of rows that belong to one text.
struct Span {
  index_t place = 0;  // in the call: which of its texts
  index_t row = 0;    // the first of them among the rows of the pass
  index_t rows = 0;
  index_t position = 0;  // of the first of them in its text
  index_t keys = 0;      // which sequence of the self-attention caches
  index_t memory = 0;    // which sequence of the cross-attention caches
};

// The scores of some rows, as attend is asked for them.
struct AttentionCall {
  ConstTensor<4> q;                 // [1, heads, rows, d_k]
  ConstTensor<4> k;                 // [1, kv_heads, keys, d_k]
  RowState state;                   // max and sum, [1, heads, rows]
  const AttentionOptions& options;  // with query_start where k is longer than q
};

// All keys of one sequence of a cache, in f32: [1, kv_heads, length, d_k]. Those a ring has
// forgotten are 0.
Tensor<float, 4> keys_of(const KvCache& cache, index_t sequence);

// The scores of some rows and heads, -inf where nothing is seen.
struct ScoreRows {
  index_t begin = 0, end = 0;  // rows of the span
  index_t keys = 0;
  std::vector<index_t> place_of;   // of each query head among those kept; -1: it is not
  index_t heads = 0;               // kept
  std::vector<float> values;       // [rows, heads, keys]
  void see(const SeenTile& tile);  // on any thread
};

}  // namespace glasshead::model

namespace glasshead {

struct Taps::Impl {
  // What has been seen at one place: tokens in order.
  struct Kept {
    model::Point point = model::Point::embedding;
    std::vector<const Tap*> taps;
    index_t groups = 0;  // heads that a row is divided into; 0: a plain matrix
    index_t width = 0;   // of a row
    index_t tokens = 0;
    std::vector<float> values;  // [tokens, width]
    // Of weights and scores: rows of their own lengths, [tokens kept][heads kept] one after
    // another.
    std::vector<std::vector<float>> pairs;
    std::vector<index_t> heads;
    index_t keys = 0;  // that the text has
  };

  std::vector<Tap> wanted;
  index_t sequence = 0;
  std::vector<std::string> order;    // names asked for, in the order of computation
  std::map<std::string, Kept> kept;  // by name
  const Model::Impl* of = nullptr;   // whose places they are

  // Finds the places that the taps name. Every tap that names none, or a head there is not, is a
  // problem; and taps that hold numbers of another model.
  void resolve(const Model& model, std::vector<Problem>& problems);

  bool wants(const model::Place& place) const { return kept.count(name(place)) > 0; }
  // rows [rows of the pass, n]; groups: into how many heads a row falls, 0 for none.
  void see(const model::Place& place, const View<const float, 2>& rows,
           const std::vector<model::Span>& spans, index_t groups);
  // rows of one span, from a state [1, heads, rows]
  void see_lse(const model::Place& place, const RowState& state);
  void see_weights(const model::Place& place, const model::Span& span,
                   const model::AttentionCall& call, const Context& context);
  // Room for what is asked for of a span's scores, and where it goes then.
  model::ScoreRows score_rows(const model::Place& place, const model::Span& span, index_t heads,
                              index_t keys);
  void keep_scores(const model::Place& place, const model::ScoreRows& rows);

 private:
  struct Rows {
    index_t begin = 0, end = 0;  // of a span
  };
  // The union of what the taps of a place ask for: heads in order, which become kept.heads, and a
  // stretch of positions.
  static Rows wanted_rows(Kept& kept, const model::Span& span, index_t heads);
};

}  // namespace glasshead
