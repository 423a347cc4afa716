// The worked examples of the tutorials: every quantity within 8 ulp of f64 (golden/README.md,
// "seeds").
#pragma once

#include "conformance/golden.h"
#include "conformance/report.h"

namespace glasshead::conformance {

FolderReport run_seeds(const Golden& golden, const Selection& selection);

}  // namespace glasshead::conformance
