// Every head of a model at a glance, seen while a text is read: what each attends to on average,
// pictures of its weights, and on request all that is needed to make any weight of it again.
//
//   HeadStudy heads({.cell = 64, .keeps_rows = true});
//   session.forward({{.ids = ids}}, LogitRows::none, nullptr, &heads);
//   for (const HeadMetrics& one : heads.metrics())         // every layer and head
//     if (one.induction > 0.5) look_at(one.layer, one.head);
//   heads.weights("decoder.9.self", 6, {0, 256, 0, 256});  // any block, exactly
//
// The numbers are made from the scores and exponentials of the very pass that computes the result,
// tile by tile: no [n, n] matrix is kept, nothing is computed twice, and no bit of the result
// changes. Their own bits do not depend on threads, instruction set, or the parts in which a text
// is read (SessionOptions::rows_at_once).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "glasshead/context.h"
#include "glasshead/model.h"
#include "glasshead/tensor.h"
#include "glasshead/tensor_file.h"

namespace glasshead {

struct HeadStudyOptions {
  // Of each head two pictures of its weights, in cells of cell x cell pairs: the mean and the
  // largest weight. 64: a text of 4,096 tokens becomes 64 x 64. 0: no pictures.
  index_t cell = 64;
  // Keep q, k and each row's max and sum, for weights(): 4 bytes times (heads + kv_heads)·d_k for
  // each token and layer. And each row's own numbers, for rows(): 48 bytes times heads.
  bool keeps_rows = false;
  // Of the texts of a call, which one is looked at (its place in the call, as for Taps).
  index_t sequence = 0;
};

// What one head does with a text of n tokens, w[i, j] its weight of query i on key j (0 where
// hidden). id[i] are the tokens.
//
//   first      mean over all i of w[i, 0]: the attention sink (Xiao et al. 2023)
//   previous   mean over i >= 1 of w[i, i-1]
//   self       mean over all i of w[i, i]
//   entropy    mean over all i of -sum_j w[i, j] ln w[i, j], in nats; 0 ln 0 = 0
//   distance   mean over all i of sum_j w[i, j] |i - j|, in tokens (Vig and Belinkov 2019, 4.2)
//   induction  mean over the i whose token came before (some i' < i has id[i'] = id[i]) of
//              sum of w[i, j] over 1 <= j <= i with id[j-1] = id[i]: what stood behind the token's
//              earlier occurrences (Olsson et al. 2022, "prefix matching")
//
// NaN where no query counts: previous of one token, induction of a text without a repetition, and
// of cross-attention, whose keys are another text's, all but first and entropy. A row that reads
// nothing counts as weights of 0; a row that is NaN makes NaN.
//
// Weights are those of attention_weights but for rounding: each number is within
// (200 + n / 16) · 2^-24 of its value for these weights, relative to 1 (first, previous, self,
// induction), ln n (entropy) and n (distance).
struct HeadMetrics {
  std::string attention;  // "decoder.9.self", "encoder.0.self", "decoder.2.cross"
  index_t layer = 0, head = 0;
  double first = 0, previous = 0, self = 0, entropy = 0, distance = 0, induction = 0;
};

// Queries [query_begin, query_end) and keys [key_begin, key_end) of one head.
struct PairRange {
  index_t query_begin = 0, query_end = 0;
  index_t key_begin = 0, key_end = 0;
};

// Looks at one text from its first token on, in one or more runs that follow each other
// (Session::forward adds to it; an encoder reads a text in one run; Session::read and then forward
// show both halves of an encoder-decoder). It goes on while a text is written, too
// (GenerateOptions::heads), each token that is read again being one more row and key: the study is
// then, to the bit, that of one run over all of them. A run that does not go on where the study
// ended, of another session, under other changes, or of an encoder-decoder about another text, is
// refused (OptionError).
class HeadStudy {
 public:
  explicit HeadStudy(const HeadStudyOptions& options = {});
  ~HeadStudy();
  HeadStudy(HeadStudy&&) noexcept;
  HeadStudy& operator=(HeadStudy&&) noexcept;

  // Every head of every attention that has been seen, in the order of computation.
  std::vector<HeadMetrics> metrics() const;

  // For a file, of every attention that has been seen:
  //   "decoder.9.self.metrics"   [heads, 6] f64, in the order of HeadMetrics
  //   "decoder.9.self.mean_map"  [heads, ceil(queries / cell), ceil(keys / cell)] f32
  //   "decoder.9.self.max_map"   the same of the largest weights
  // Both pictures count every pair of a cell, hidden ones as 0, as WeightMaps does
  // (attention_weights.h); the last cells are cut off where the matrix ends.
  NamedTensors results() const;

  // What metrics() is the mean of, row by row: the numbers of query i, at position i of the text,
  // in the order of HeadMetrics, [heads, queries, 6]. NaN where i does not count (previous of 0,
  // induction of a token that had not come before). Each mean is, to the bit, the sum of the others
  // in order, divided by their number. Needs keeps_rows. Throws OptionError.
  //   generate(session, prompt, {.heads = &heads});
  //   heads.rows("decoder.9.self");  // from prompt.size() on: of the tokens that were written
  Tensor<double, 3> rows(const std::string& attention) const;

  // The weights of some pairs of one head, [queries, keys], to the bit those that a Tap of
  // "decoder.9.self.weights" keeps. Needs keeps_rows. Throws OptionError with everything that is
  // wrong: an attention that was not seen, a head there is not, pairs beyond the text.
  Tensor<float, 2> weights(const std::string& attention, index_t head, const PairRange& pairs,
                           const Context& context = default_context()) const;

  // Of the memory it holds: what is kept, and the room for the tiles of a run, which stays for the
  // next one (for at most 256 rows of one layer).
  index_t bytes() const;

  struct Impl;  // the library's own
  Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace glasshead
