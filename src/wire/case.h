// A worked example as a person writes it (schema glasshead.case/1, docs/case-format.md): tokens,
// matrices, which mask; everything else has defaults.
//
//   std::vector<Problem> problems;
//   std::optional<Case> c = parse_case(text, "three-tokens", problems);   // all problems, by field
//   path if (c) { std::vector<Step> list = case_steps(*c); Trace trace = run_case(*c); }
#pragma once

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
  std::string tap;             // "weights"
  std::vector<index_t> index;  // [1, 0]
  std::string text;            // "0.50", as printed
  double factor = 1;           // 100: printed as percent
  std::string
      kind;  // "": equals the exact value rounded; "rounding", "adjusted", "slip": it differs
  std::string note;  // why, in kind words
};

// A change of a case: what --set, --hide, --mask, --scale, --remove-scale ask for, and drills and
// claims use.
struct Edit {
  struct Set {
    std::string matrix;           // "X", "W_Q"
    std::vector<std::string> at;  // row label or index, or row and column; as many as given
    std::vector<double> values;   // one number, or a whole row
  };
  std::vector<Set> set;
  std::vector<std::string> hide;  // key labels or indices, hidden from every query
  std::optional<std::string>
      mask;  // "none", "causal", "window:L,R", "prefix:N"; replaces the case's mask
  std::optional<double> scale;
  bool is_empty() const { return set.empty() && hide.empty() && !mask && !scale; }
};

// Something the case's source says, with the check that makes it true.
struct Claim {
  std::string says;  // the sentence
  Edit with;         // checked on the case so edited
  std::string tap;
  std::vector<index_t> index;  // an entry, or a row, or the whole tap
  std::string is;  // printed digits it equals when rounded to as many decimals; or empty:
  bool is_unchanged =
      false;  // the entries named are equal, to the bit, to those of the unedited case
};

struct Drill {
  std::string question;
  Edit edit;
  std::string answer;  // the sentence that answers it
};

struct Case {
  std::string name;  // file name without .json
  std::string title;
  std::string from;                       // "tutorial 1", "ours"
  std::vector<std::string> ours;          // field paths of numbers no tutorial gives
  std::vector<std::string> query_labels;  // one per row of X (or q)
  std::vector<std::string> key_labels;    // one per key: the same, or the context's tokens
  std::vector<std::string> vocabulary;    // one per logit; may be empty
  std::vector<std::pair<std::string, TraceTensor>>
      inputs;  // tap -> numbers as given ("X", "E", "W_Q", ...)
  std::map<std::string, std::string>
      paths;  // tap -> field path in the file ("W_Q" -> "attention.W_Q")
  std::map<std::string, std::string>
      given_text;  // "X 1 0" -> "0.2": digits as written, for printing inputs
  nn::Network network;
  index_t generate = 0;  // how many tokens to append, one at a time, with a cache
  std::vector<PrintedNumber> printed;
  std::vector<Claim> claims;
  std::vector<Drill> drills;
};

// Parses and checks. nullopt, and every problem with its field path, if anything is wrong. Reads
// nothing but `text`; // and /* */ comments are allowed; an unknown field is a problem.
std::optional<Case> parse_case(std::string_view text, std::string name,
                               std::vector<Problem>& problems);

// The case with the edit applied and checked again.
std::optional<Case> edit_case(const Case& original, const Edit& edit,
                              std::vector<Problem>& problems);

// "X[B]=1,1" -> Edit::Set. A problem names what is wrong with it.
std::optional<Edit::Set> parse_set(std::string_view text, std::vector<Problem>& problems);

std::vector<Step> case_steps(const Case& c);
// Runs it, keeping every value.
Trace run_case(const Case& c);

}  // namespace glasshead::wire
