// An attention that somebody looks at: taps of its scores, weights and row states, and studies of
// its heads.
#pragma once

#include "glasshead/attention.h"
#include "glasshead/head_study.h"
#include "glasshead/kv_cache.h"
#include "glasshead/model.h"
#include "model/watch.h"

namespace glasshead::model {

// What attend is asked for over one text's rows of a pass.
struct LookedAt {
  const char* stack;
  index_t layer;
  bool is_cross;
  const Span& span;
  View<float, 4> q, k, v, out;  // [1, heads, rows, d]; of cross-attention without k and v
  const KvCache* cache;         // all its keys, those of these rows among them; null: k and v are
  index_t sequence;             // of the cache
  const AttentionOptions& options;

  Place at(Point self, Point cross) const { return {stack, layer, is_cross ? cross : self}; }
  index_t keys() const { return cache != nullptr ? cache->length(sequence) : k.shape[2]; }
};

// Who looks at this text; null: nobody.
struct Lookers {
  Taps::Impl* taps = nullptr;
  HeadStudy::Impl* heads = nullptr;
};

// attend over these rows, seen by those. state: room for max and sum, [1, heads, rows].
void attend_seen(const LookedAt& call, const RowState& state, const Lookers& by,
                 const Context& context);

}  // namespace glasshead::model
