// What the catalogue's mistakes are made of: edits of layers, matrices taken apart and put together
// again, vectors turned, attention computed over other heads.
#pragma once

#include <string>
#include <vector>

#include "nn/linear.h"
#include "port/subject.h"

namespace glasshead::port {

// The parts of the catalogue.
std::vector<Hypothesis> position_hypotheses();
std::vector<Hypothesis> attention_hypotheses();
std::vector<Hypothesis> norm_hypotheses();
std::vector<Hypothesis> matrix_hypotheses();
std::vector<Hypothesis> block_hypotheses();
std::vector<Hypothesis> end_hypotheses();

using Variants = std::vector<Variant>;
inline bool is_layer(const Subject& s) { return s.piece.part == Part::layer; }
inline bool is_embedding(const Subject& s) { return s.piece.part == Part::embedding; }
inline bool is_end(const Subject& s) { return s.piece.part == Part::end; }

// The edit, made in layers alone (in the embedding, at the end).
using Change1 = std::function<void(const Subject&)>;
using Place1 = std::function<Placed(const Subject&, const Numbers&)>;
Edit on_layers(Change1 change, Place1 place = nullptr);
Edit on_embedding(Change1 change);
Edit on_end(Change1 change);
// One variant without a parameter where `is_possible`.
Variants once(bool is_possible, Edit edit);

// A matrix with its numbers at hand.
struct Dense {
  index_t out = 0, in = 0;
  std::vector<float> w, bias;  // [out, in], [out]
  float* row(index_t o) { return w.data() + o * in; }
};
Dense dense(const nn::Linear& linear);
nn::Linear linear(const Dense& dense);
void edit(nn::Linear& linear, const std::function<void(Dense&)>& change);

// Rows of an attention's packed input, by what they make.
struct Stretch {
  index_t begin = 0, end = 0;
};
Stretch q_rows(const model::Attention& a);
Stretch k_rows(const model::Attention& a);
Stretch v_rows(const model::Attention& a);

// x [heads, tokens, d], not turned: turned as `how` says, token i standing at i + offset.
FileTensor turned(const FileTensor& x, const model::Rotary& how, double offset = 0);
// Each row of the last axis normed.
FileTensor normed(const FileTensor& x, const model::Norm& norm, const model::NormWeights& weights);
// a + factor·b, of one shape.
FileTensor sum(const FileTensor& a, const FileTensor& b, double factor);
FileTensor with_shape(FileTensor x, std::vector<index_t> shape);

// Self-attention over the layer's q, k, v, query head h reading key/value head `source(h)`: its out
// is put in place, and weights and lse are said to be seen where they are looked at.
Placed attention_over(const Subject& s, const Numbers& numbers,
                      const std::function<index_t(index_t)>& source);

std::string shown(double x);  // a parameter: "10000", "1e-06"

}  // namespace glasshead::port
