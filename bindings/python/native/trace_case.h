// The case behind a trace: one that is written as a person writes it, or one made of arrays.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "glasshead/attention.h"
#include "python/native/array.h"
#include "wire/case.h"

namespace glasshead::python {

// What Python gives to change a case, as the command's flags of these names do.
struct CaseEdit {
  std::vector<std::string> set, hide;
  std::optional<std::string> mask;
  std::optional<double> scale;
  std::optional<std::string> empty_row;  // "zero", "error"
};

// A case, and how the page shows it (wire/lesson.h).
struct ShownCase {
  wire::Case shown;
  std::string text;   // as it was before the edit
  std::string start;  // the page's address; empty: as the text has it
};

// Throws FormatError with every problem of the text, OptionError with those of the edit.
ShownCase read_case(const std::string& text, const std::string& name, const CaseEdit& edit);

struct CaseArrays {
  const Array &q, &k, &v;                                    // of one batch entry: rank 2 to 4
  const std::vector<std::string>&query_labels, &key_labels;  // empty: 0, 1, 2, ...
};

// Numbers are copied, those of masks and biases too. Throws with everything that is wrong;
// `problems` are those found before.
wire::Case case_of(const CaseArrays& arrays, const AttentionOptions& options,
                   const std::string& name, const std::string& title,
                   std::vector<Problem> problems);

}  // namespace glasshead::python
