// Whether a case fits together: nn's check, and core's, with their findings under the case's own
// field paths.
#include <array>

#include <fmt/format.h>

#include "wire/case_builder.h"

namespace glasshead::wire {

void check_case(const Case& c, CaseReader& read) {
  nn::Shapes shapes;
  for (const auto& [tap, tensor] : c.inputs) shapes[tap] = tensor.shape;
  for (const Problem& problem : nn::check(c.network, shapes)) {
    const auto path = c.paths.find(problem.where);
    read.problem(path == c.paths.end() ? problem.where : path->second, problem.what);
  }
}

}  // namespace glasshead::wire
