// One weight's whole derivation, a line for each key of a row:
//
//   A: q·k = 0·1 + 1·0 = 0 → ·0.7071 = 0 → allowed (A is not after B) → exp(0 − 0.7071) = 0.4931
//      → 0.4931/1.4931 ≈ 0.3302
#pragma once

#include <string>
#include <vector>

#include "wire/document_build.h"

namespace glasshead::wire {

// Every attention, head and query that the options leave; of long rows the heaviest keys.
std::vector<std::string> explain_lines(const Case& c, const Trace& trace,
                                       const DocumentOptions& options);
Document explain_document(const Case& c, const Trace& trace, const DocumentOptions& options);

}  // namespace glasshead::wire
