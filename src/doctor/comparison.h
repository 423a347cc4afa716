// The wrong run against the right one: what is hidden where, which rows are the same.
#pragma once

#include <string>

#include "doctor/mistakes.h"
#include "wire/document_build.h"

namespace glasshead::doctor {

// The first attention of `run`, its plan hiding the pairs to be shown as hidden: those of weight 0
// that the run's own scores hide, or that the right mask hides.
wire::AttentionPart shown_part(const Trace& run, const Trace& right);

// Row `row` of matrix `matrix` differs by no more than rounding: 16 units in the last place, the
// two runs' errors together (8 each, as for any plain f64 run).
bool is_same_row(const TraceTensor& a, const TraceTensor& b, index_t matrix, index_t row);
bool is_same(const TraceTensor& a, const TraceTensor& b);

// Why weights and output are those of the right run, in a sentence; empty when they are not.
std::string why_hidden(const MistakenRun& run);

}  // namespace glasshead::doctor
