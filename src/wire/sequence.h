// Names of the rows and keys of every tap. A case that is run piece by piece (fed rows, generated
// tokens) has runs of one row each, "step.1.", "step.2.", ..., whose rows and keys stand further on
// in one sequence: they are named by position and token, counted from the start of it.
//
//   Sequence sequence(c, trace);
//   sequence.queries("step.1.weights")   // {"3 chases"}
//   sequence.keys("step.1.weights")      // {"0 cat", "1 chases", "2 mouse", "3 chases"}
//   sequence.first_row("step.1.weights") // 3
#pragma once

#include <string>
#include <vector>

#include "wire/case.h"

namespace glasshead::wire {

class Sequence {
 public:
  Sequence(const Case& c, const Trace& trace);
  // Of a case that is one run.
  explicit Sequence(const Case& c) : case_(c), tokens_(c.query_labels) {}

  // The run a tap belongs to: 0 for "weights", 2 for "step.2.weights".
  static index_t run_of(const std::string& tap);
  // The tap without the name of its run: "step.2.weights" -> "weights".
  static std::string without_run(const std::string& tap);

  // Where the run's row 0 stands in the sequence.
  index_t first_row(const std::string& tap) const;
  // Whether the run holds this row of the sequence.
  bool has_row(const std::string& tap, index_t row) const {
    const index_t first = first_row(tap);
    return row >= first && row < first + static_cast<index_t>(query_tokens(tap).size());
  }
  std::vector<std::string> queries(const std::string& tap) const;
  std::vector<std::string> keys(const std::string& tap) const;

  // The tokens alone, without positions: of one row of the sequence, of the run's rows, its keys.
  std::string token(index_t row) const;
  std::vector<std::string> query_tokens(const std::string& tap) const;
  std::vector<std::string> key_tokens(const std::string& tap) const;

  index_t runs() const { return runs_; }

 private:
  std::vector<std::string> placed(index_t begin, index_t end) const;

  const Case& case_;
  std::vector<std::string> tokens_;  // of all rows, the generated ones too
  index_t prompt_ = 0;               // rows of run 0
  index_t runs_ = 1;
};

}  // namespace glasshead::wire
