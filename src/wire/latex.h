// Formulas and matrices as LaTeX, for the LaTeX form and Markdown's $$ blocks.
#pragma once

#include <string>
#include <vector>

#include "wire/document.h"

namespace glasshead::wire {

// The section's formula and its matrices as aligned blocks (amsmath), each to be a display of its
// own: together they may be wider than a line or taller than a page. None without numbers.
std::vector<std::string> latex_displays(const Section& section);

}  // namespace glasshead::wire
