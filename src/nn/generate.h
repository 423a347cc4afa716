// Running a text piece by piece with a key/value cache: each run projects the new rows only, puts
// their keys and values after those of earlier rows, and attends over all of them. Earlier rows
// are never computed again, so they cannot change.
//
//   Generation g = generate(network, inputs, 3);      // the prompt, then two runs of one row
//   g.tokens                                          // three token ids
//   g.passes[1].at("k_cache")                         // the prompt's keys, and the new one
//
// The numbers are those of one run over all rows, to the bit: every row is computed by the same
// operations in the same order, and rows after it are hidden from it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nn/network.h"

namespace glasshead::nn {

struct Generation {
  // One trace per run: the first over all rows it was given, each later one over one row. Taps are
  // those of `steps`, and in every self-attention "k_cache" and "v_cache", [.., rows so far, size];
  // a later run's inputs "k_earlier" and "v_earlier" are the caches of the run before.
  std::vector<Trace> passes;
  std::vector<index_t> tokens;     // chosen after each run; empty when X was given, not ids
  index_t rows_projected = 0;      // over all runs: n for a text of n rows
  index_t rows_without_cache = 0;  // had every run done all rows so far: n(n+1)/2 for n single rows
};

using NamedInputs = std::vector<std::pair<std::string, TraceTensor>>;

// What keeps `network` from running with a cache, in addition to what `check` finds: q, k or v that
// are given instead of projected, dropout, and self-attention that can see later rows (it needs a
// causal mask, or a window without later keys).
std::vector<Problem> check_cached(const Network& network, const NamedInputs& inputs);

// Appends `count` >= 1 tokens to the ids, one at a time: the first run is over the prompt, then the
// most probable token (lowest index of equal ones) is appended and run alone. Needs ids and an
// unembedding. Throws ShapeError with all problems, OptionError for count < 1, an empty prompt, or
// probabilities with NaN in them.
Generation generate(const Network& network, const NamedInputs& inputs, index_t count);

// Runs the rows of X (or the ids) one at a time after a first run over `prompt` of them,
// 1 <= prompt <= n. Errors as above.
Generation run_row_by_row(const Network& network, const NamedInputs& inputs, index_t prompt);

}  // namespace glasshead::nn
