// The one block that runs every family: the layers of a stack over rows of f32, as the description
// says. A pass may hold rows of several texts, of different lengths, one after another: matrices
// and norms go over all rows at once, attention over each text's own keys.
#pragma once

#include <vector>

#include "glasshead/attention.h"
#include "glasshead/context.h"
#include "glasshead/head_study.h"
#include "glasshead/kv_cache.h"
#include "model/changes.h"
#include "model/description.h"
#include "model/watch.h"
#include "model/weights.h"
#include "model/workspace.h"

namespace glasshead::model {

// What attend is asked for in one layer.
struct LayerCalls {
  AttentionOptions self, cross;
};
std::vector<LayerCalls> layer_calls(const Stack& stack, const StackWeights& weights);

struct StackRun {
  const char* name;  // "encoder", "decoder"
  const Stack& stack;
  const StackWeights& weights;
  const std::vector<LayerCalls>& calls;  // [layers]
  std::vector<KvCache>* self = nullptr;  // [layers] keys before these rows, to which theirs are
                                         // added; null: a text's rows attend to each other
  const std::vector<KvCache>* cross = nullptr;  // [layers] of the texts read
  const std::vector<Span>& spans;
  Workspace& work;
  const Context& context;
  Taps::Impl* taps = nullptr;        // null: nobody looks
  HeadStudy::Impl* heads = nullptr;  // the same
  const Changes* changes = nullptr;  // null: nothing is changed
};

// x [rows, d_model], in place. The final norm is not included.
void run_layers(const StackRun& run, const View<float, 2>& x);

// y = norm(x), y may be x.
void apply_norm(const Norm& norm, const NormWeights& weights, const View<const float, 2>& x,
                const View<float, 2>& y, const Context& context);

}  // namespace glasshead::model
