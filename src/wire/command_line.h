// An edited case as a line of a shell: what prints the same numbers in a terminal.
//
//   glasshead trace three-tokens --set 'X[B,0]=1' --mask causal
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "glasshead/error.h"
#include "wire/case.h"

namespace glasshead::wire {

// `more`: further words, such as --mistake and its id. nullopt, and a problem, where an index can't
// be written because labels that are numbers stand in its way.
std::optional<std::string> command_line(const Case& original, const Edit& edit,
                                        const std::vector<std::string>& more,
                                        std::vector<Problem>& problems);

}  // namespace glasshead::wire
