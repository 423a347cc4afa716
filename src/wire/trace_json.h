// The JSON form of a trace, glasshead.trace/1: every number as a double that reads back the same,
// and the strings that people see.
//
//   write_trace_json(c, options, [&](std::string_view piece) { file.append(piece); });
//
// Written step by step as the numbers are made: the memory used is that of the run itself (a few
// tensors), whatever the number of steps. Members: schema, case, labels, steps, inputs, then for
// every attention scale and mask {kind, allowed, reason} and its taps in the order computed
// (after weights: row_sum, the weights' own sums, and empty_rows), shapes, printed, checks. The
// tap row_sum of the softmax, the sum of the exponentials, is called exp_sum here. With a prefix
// ("block.0.") so are these.
// Later runs of a case that is run piece by piece have labels of their own: "step.1.labels" {row,
// q, k}, row being where the run's row stands in the whole sequence. Hidden scores are null, their
// reason stands in mask.reason ("causal+padding" when both hide); leading axes of size 1 are
// dropped.
#pragma once

#include <functional>
#include <vector>

#include "wire/document_build.h"
#include "wire/json_writer.h"

namespace glasshead::wire {

void write_trace_json(const Case& c, const DocumentOptions& options, const JsonWriter::Sink& sink);
// The same of another list of steps over the case's inputs (an edited one); `more` writes further
// members at the end.
void write_trace_json(const Case& c, const DocumentOptions& options, const std::vector<Step>& list,
                      const std::function<void(JsonWriter&)>& more, const JsonWriter::Sink& sink);

}  // namespace glasshead::wire
