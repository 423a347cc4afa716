#include "port/edits.h"

namespace glasshead::port {

// A part of the model first, then what can look like any of them: matrices.
std::vector<const Hypothesis*> hypotheses() {
  static const std::vector<std::vector<Hypothesis>> parts{
      end_hypotheses(),   position_hypotheses(), attention_hypotheses(),
      block_hypotheses(), norm_hypotheses(),     matrix_hypotheses()};
  std::vector<const Hypothesis*> all;
  for (const std::vector<Hypothesis>& part : parts)
    for (const Hypothesis& one : part) all.push_back(&one);
  return all;
}

}  // namespace glasshead::port
