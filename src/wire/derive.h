// One number of a trace, made again from the numbers it was made of.
//
//   derive(c, trace, {"scores", -1, 1, 0}, 4)->lines     // {"q·k = 0·1 + 1·0 = 0"}
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "wire/case.h"
#include "wire/provenance.h"

namespace glasshead::wire {

// One product of a sum of products.
struct DerivedTerm {
  std::string label;                 // "0": the coordinate or key it belongs to
  std::string left, right, product;  // as printed
  std::string running;               // the sum up to here
  double exact = 0;                  // the product
  double share = 0;                  // of the largest product in size: -1 to 1
};

struct Derivation {
  std::string formula, sentence;   // of the step
  std::vector<std::string> lines;  // equations redone on their printed digits: = or ≈ (rule R5)
  std::vector<DerivedTerm> terms;  // where it is a sum of products; few enough to be read
};

// Of entry (row, column) of a step's value; `entry.row` counts from the tensor's own first row.
// nullopt where no step makes such an entry.
std::optional<Derivation> derive(const Case& c, const Trace& trace, const Region& entry,
                                 int decimals);

}  // namespace glasshead::wire
