// One head of a model as its layer has it, for whoever shows its arithmetic: what attend is asked
// for, and the matrices before and behind it.
//
//   const HeadFacts head = facts_of(model, {.layer = 9, .head = 6});
//   head.attention + ".q"                            // what a Tap of its q is called
//   query_of(model, place, row);                     // q before the head's norm and turn
#pragma once

#include <string>
#include <vector>

#include "glasshead/attention.h"
#include "glasshead/model.h"
#include "glasshead/tensor.h"

namespace glasshead::model {

struct HeadPlace {
  index_t layer = 0, head = 0;
  bool is_cross = false;    // cross-attention: the keys are those of the text read
  bool is_encoder = false;  // of an encoder-decoder: a layer of its encoder
};

// What there is to choose from where `place` is: its layers, and the most heads that one has.
struct HeadLayers {
  index_t count = 0;
  index_t most_heads = 0;
};
HeadLayers layers_for(const Model& model, const HeadPlace& place);
index_t heads_of(const Model& model, const HeadPlace& place);  // of place.layer

struct HeadFacts {
  std::string attention;     // "decoder.9.self"
  std::string input;         // the tap of the rows that its q is made of: "decoder.9.self.norm"
  index_t heads = 0;         // query heads of the layer
  index_t kv_heads = 0;      // which heads / kv_heads of them share one of
  index_t kv_head = 0;       // the one that this head reads
  bool is_turned = false;    // q and k are normed or turned between their matrix and attend
  AttentionOptions options;  // of attend, for this head alone
};
// `place` must be one of the model's, here and below.
HeadFacts facts_of(const Model& model, const HeadPlace& place);

// W_O's rows that this head's out is multiplied by: [d_v, d_model].
Tensor<float, 2> output_rows(const Model& model, const HeadPlace& place);

// Of a row that enters self-attention, [d_model], what the matrix makes the head's q of: [d_k],
// before its norm and its turn.
std::vector<float> query_of(const Model& model, const HeadPlace& place, std::vector<float> row);

}  // namespace glasshead::model
