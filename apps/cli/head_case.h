// One head of a model, at one of its tokens, as a worked example: q, k and v as a run of the model
// had them, with the mask, scale, softcap and bias that attend was asked for.
//
//   const ModelHead head = head_at(model, {.layer = 9, .head = 6, .query = 12}, texts);
//   Trace trace = wire::run_case(head.shown);       // every step in f64
//   compare(head, trace).weights                    // how far the run's f32 weights are from it
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "glasshead/model.h"
#include "glasshead/trace.h"
#include "model/head.h"
#include "wire/case.h"

namespace glasshead::cli {

struct HeadPlace {
  index_t layer = 0, head = 0;
  index_t query = 0;        // which of the tokens that ask
  bool is_cross = false;    // cross-attention: the keys are those of the text read
  bool is_encoder = false;  // of an encoder-decoder: a layer of its encoder
};

// Token ids, and what they are called.
struct HeadTokens {
  std::vector<index_t> ids;
  std::vector<std::string> labels;  // as many
};
struct HeadTexts {
  HeadTokens read;     // the text; of an encoder-decoder, what the encoder reads
  HeadTokens written;  // of an encoder-decoder: the decoder's, the first token included
};

struct ModelHead {
  wire::Case shown;      // one query, one head; inputs q, k, v and W_O, the head's rows of it
  std::string place;     // "decoder.9.self"
  index_t heads = 0;     // query heads of the layer
  index_t kv_heads = 0;  // which heads / kv_heads of them share one of
  index_t kv_head = 0;   // the one that this head reads
  HeadPlace at;          // as asked for
  // The run's own numbers, f32.
  std::vector<double> q_before;  // [d_k] before the norm and the turn; empty: there is neither
  std::vector<double> weights;   // [keys]
  std::vector<double> out;       // [d_v]
};

// As model/head.h says.
model::HeadLayers layers_for(const Model& model, const HeadPlace& place);
index_t heads_of(const Model& model, const HeadPlace& place);

// Runs the model once. `place` must be one of the model's. Throws what a session throws.
ModelHead head_at(const Model& model, const HeadPlace& place, const HeadTexts& texts);

// The run's f32 numbers beside the trace's, made from the same q, k and v.
struct HeadComparison {
  double weights = 0, out = 0;  // the largest differences
  // No number is further away than rounding to f32 can move it (tests/core/error_bound.h derives
  // the bound, for the order that attend adds in).
  bool agrees = true;
};
HeadComparison compare(const ModelHead& head, const Trace& trace);

}  // namespace glasshead::cli
