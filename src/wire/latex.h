// Formulas and matrices as LaTeX, for the LaTeX form and Markdown's $$ blocks.
#pragma once

#include <string>

#include "wire/document.h"

namespace glasshead::wire {

// The section's formula and its matrices as one aligned block (amsmath); empty without numbers.
std::string latex_section(const Section& section);

}  // namespace glasshead::wire
