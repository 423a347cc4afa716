// A worked example as a person writes it (schema glasshead.case/1, docs/case-format.md): tokens,
// matrices, which mask; everything else has defaults.
//
//   std::vector<Problem> problems;
//   std::optional<Case> c = parse_case(text, "three-tokens", problems);  // all, by field path
//   if (c) { std::vector<Step> list = case_steps(*c); Trace trace = run_case(*c); }
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "glasshead/error.h"
#include "glasshead/trace.h"
#include "nn/network.h"

namespace glasshead::wire {

// A number as the case's source prints it.
struct PrintedNumber {
  std::string tap;             // "weights", or one of case_values.h's names: "exp_unshifted"
  std::vector<index_t> index;  // [1, 0]
  std::string text;            // "0.50", as printed
  double factor = 1;           // 100: printed as percent
  std::string kind;            // "": equals the exact value rounded. It differs:
                               //   "rounding": the source rounded between its steps
                               //   "adjusted": moved so that a row adds up
                               //   "slip": no rounding gives it
  std::string note;            // why, in kind words
};

// A change of a case: what --set, --hide, --mask, --scale, --remove-scale ask for, and drills and
// claims use.
struct Edit {
  struct Set {
    std::string matrix;              // "X", "W_Q"
    std::vector<std::string> at;     // row label or index, or row and column; as many as given
    std::vector<double> values;      // one number, or a whole row; or all of the matrix, `at` empty
    std::vector<std::string> texts;  // the values' digits as written; empty, or as many as values
    bool is_by_index = false;        // `at` holds indices alone, whatever the rows are called
    bool operator==(const Set&) const = default;
  };
  std::vector<Set> set;
  std::vector<std::string> hide;       // key labels or indices, hidden from every query
  std::vector<index_t> hide_keys;      // the same by index alone, whatever the keys are called
  std::optional<std::string> mask;     // "none", "causal", "window:L,R", "prefix:N", "padding:N",
                                       // "rows:10/11" (1: may attend); replaces the case's mask.
                                       // window: an empty side has no limit
  std::optional<double> scale;         // replaces the case's scale
  std::optional<std::string> softmax;  // "none": see Case::has_softmax; "row": the default again
  std::optional<EmptyRow> empty_row;   // what a row with no allowed key does
  std::optional<index_t> d_k;          // of a case whose q, k, v are random
  std::optional<double> correlation;   // likewise
  bool untie = false;                  // unembed with a copy of E, then changed on its own as W_U
  bool operator==(const Edit&) const = default;
  bool is_empty() const {
    return set.empty() && hide.empty() && hide_keys.empty() && !mask && !scale && !softmax &&
           !empty_row && !d_k && !correlation && !untie;
  }
};

// Something the case's source says, with the check that makes it true (case_values.h runs it).
struct Claim {
  std::string says;  // the sentence
  Edit with;         // checked on the case so edited
  std::string tap;
  std::vector<index_t> index;   // an entry, or a row, or the whole tap
  std::vector<std::string> is;  // printed digits that the numbers named equal, in row-major order,
                                // to half a unit of the last place; or empty:
  bool is_unchanged = false;    // the numbers named equal, to the bit, those of the unedited case
  std::optional<std::pair<double, double>> between;  // the numbers named lie in this range
  std::string is_refused;  // not empty: the case so edited has rows with no allowed key, and
                           // this is the first one's label
};

struct Drill {
  std::string question;
  Edit edit;
  std::string answer;  // the sentence that answers it
};

// q, k, v of independent standard normal numbers, made by the engine from a seed: same numbers on
// every machine. With correlation c every coordinate is sqrt(1-c)·z + sqrt(c)·common, one `common`
// per vector, so that any two coordinates of a vector have correlation c.
struct RandomInputs {
  std::uint64_t seed = 1;
  index_t rows = 0;  // queries, and keys
  index_t d_k = 0;   // = d_v
  double correlation = 0;
};

struct Case {
  std::string name;  // file name without .json
  std::string title;
  std::string from;                         // "tutorial 1", "ours"
  std::vector<std::string> ours;            // field paths of numbers no tutorial gives
  std::vector<std::string> query_labels;    // one per row of X (or q)
  std::vector<std::string> key_labels;      // one per key: the same, or the context's tokens
  std::vector<std::string> context_labels;  // one per row of the context; empty without one
  std::vector<std::string> hidden_keys;     // labels of the keys that an edit hid
  std::vector<std::string> vocabulary;      // one per logit; may be empty
  std::vector<std::string> axis_names;      // one per coordinate of X: "animality"; may be empty
  std::vector<std::pair<std::string, TraceTensor>>
      inputs;  // tap -> numbers as given ("X", "E", "W_Q", ...)
  std::map<std::string, std::string>
      paths;  // tap -> field path in the file ("W_Q" -> "attention.W_Q")
  // tap -> its numbers' digits as written, for printing inputs, "" where one has none. Kept for
  // inputs of up to 65,536 numbers.
  std::map<std::string, std::vector<std::string>> given_texts;
  nn::Network network;
  bool has_block_list = false;  // the file says "blocks": paths of a block start with "blocks[n]."
  // false: the weights are the scaled scores themselves, Q·Kᵀ·V without softmax; nothing can then
  // be hidden, and a mask is refused.
  bool has_softmax = true;
  // Pairs of rows whose differences (first minus second) and cosines between differences are
  // computed, instead of attention.
  std::vector<std::pair<index_t, index_t>> differences;
  std::optional<RandomInputs> random;
  // > 0: the first run is given this many rows, each later one the next row alone, with a cache of
  // k and v.
  index_t feed = 0;
  index_t generate = 0;  // how many tokens to append, one at a time, with a cache
  std::vector<PrintedNumber> printed;
  std::vector<Claim> claims;
  std::vector<Drill> drills;
};

// The digits that number n of an input, row-major, was written with; "" where it has none.
std::string_view given_text(const Case& c, const std::string& tap, std::size_t n);

// Parses and checks. nullopt, and every problem with its field path, if anything is wrong. Reads
// nothing but `text`; // and /* */ comments are allowed; an unknown field is a problem.
std::optional<Case> parse_case(std::string_view text, std::string name,
                               std::vector<Problem>& problems);

// The case with the edit applied and checked again. A problem's `where` names the part of the edit:
// "set X[B]", "hide", "mask", "scale".
std::optional<Case> edit_case(const Case& original, const Edit& edit,
                              std::vector<Problem>& problems);

// "X[B]=1,1" -> Edit::Set. A problem names what is wrong with it.
std::optional<Edit::Set> parse_set(std::string_view text, std::vector<Problem>& problems);

// The row (axis 0) or key a label or an index names: a label first, then a number counted from 0.
// nullopt, and why, if there is none or the label names several rows.
std::optional<index_t> find_row(const std::vector<std::string>& labels, std::string_view name,
                                std::string& why_not);

// The steps of one run over all rows; with `feed` and `generate` those of the first run are the
// same but for the caches.
std::vector<Step> case_steps(const Case& c);
// Runs it, keeping every value. Refuses (OptionError), naming the rows, a case whose empty_row is
// EmptyRow::error and which has rows with no allowed key. With `feed` or `generate` (nn/generate.h)
// the taps of later runs stand behind those of the first, called "step.1.weights", then
// "step.2.weights" and so on: one query row each; "step.1.k_cache" holds the keys of all rows so
// far. Inputs that later runs share keep their names.
Trace run_case(const Case& c);

}  // namespace glasshead::wire
