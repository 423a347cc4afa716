// The two ends of a model: token ids to rows, and rows to logits.
#pragma once

#include <span>
#include <vector>

#include "glasshead/context.h"
#include "model/description.h"
#include "model/watch.h"
#include "model/weights.h"
#include "model/workspace.h"

namespace glasshead::model {

struct Tokens {
  std::span<const index_t> ids;       // [rows], each in [0, vocab)
  std::span<const index_t> segments;  // [rows], or empty: 0
  const std::vector<Span>& spans;
};
// x[r] = project(norm(scale·table[ids[r]] + segment + position)), whatever of these the description
// has.
void embed_rows(const Description& model, const EmbeddingWeights& weights, const Tokens& tokens,
                Workspace& work, const View<float, 2>& x, const Context& context);

// logits [rows, vocab] of the last layer's normed rows x [rows, d_model].
void logits_of(const Description& model, const HeadWeights& weights, const View<const float, 2>& x,
               Workspace& work, const View<float, 2>& logits, const Context& context);

}  // namespace glasshead::model
