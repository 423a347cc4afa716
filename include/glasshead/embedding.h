// A model's token table as geometry: which tokens lie near a word, what a - b + c is near to, which
// way it is from one word to another.
//
//   const auto king = word_vector(model, {king_id}), man = ..., woman = ...;
//   nearest_tokens(model, sum_of({{1, king}, {-1, man}, {1, woman}}), 10, {king_id, man_id, ...})
//   const double t = place_between(man, woman, nurse);        // above 0.5: nearer to woman
//
// A token's vector is its row of the table as the files hold it, quantised rows read as numbers:
// before any factor, position or norm that a model adds on the way to its first layer. All sums are
// in f64, over coordinates in order, so results are the same bits everywhere.
#pragma once

#include <vector>

#include "glasshead/model.h"
#include "glasshead/tensor.h"

namespace glasshead {

// The mean of some tokens' rows: of the one token that a word is, or of its pieces. [width of the
// table: d_model, or less where a matrix follows (ALBERT)]. Throws OptionError: no id, or an id
// outside the vocabulary.
std::vector<double> word_vector(const Model& model, const std::vector<index_t>& ids);

struct Term {
  double factor = 1;
  std::vector<double> vector;  // all of a sum have one size
};
// Σ factor · vector: king - man + woman. Throws OptionError: no term, or another size.
std::vector<double> sum_of(const std::vector<Term>& terms);

// a·b / (|a| |b|), in [-1, 1] but for rounding; 0 where a or b is 0 or not finite. Throws
// OptionError: another size.
double cosine(const std::vector<double>& a, const std::vector<double>& b);

// Where x stands on the line from a to b: (x - a)·(b - a) / |b - a|². 0 at a, 1 at b, and 0.5 if x
// is as far from a as from b. Throws OptionError: a is b, or another size.
double place_between(const std::vector<double>& a, const std::vector<double>& b,
                     const std::vector<double>& x);

struct Neighbour {
  index_t id = 0;
  double cosine = 0;
};
// The `count` tokens whose rows have the largest cosine with `vector`, largest first, of equal ones
// the lower id; but for those `left_out`. Throws OptionError: count below 1, another size, or a
// vector that is 0 or not finite: it points nowhere.
std::vector<Neighbour> nearest_tokens(const Model& model, const std::vector<double>& vector,
                                      index_t count, const std::vector<index_t>& left_out = {});

}  // namespace glasshead
