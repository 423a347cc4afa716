// What stands around the steps of a document: title, preamble, checks, footnotes, notes, and the
// small sentences of its sections.
#pragma once

#include <string>
#include <vector>

#include "wire/document_build.h"
#include "wire/sequence.h"

namespace glasshead::wire {

void describe(Document& document, const Case& c, const Trace& trace,
              const std::vector<AttentionPart>& parts, const DocumentOptions& options);
void add_checks(Document& document, const Trace& trace, const std::vector<AttentionPart>& parts);
void add_footnotes(Document& document, const Case& c, const Sequence& sequence);
// Leaves only the sections and tables that are named (by title or tap); empty: all stay.
void keep_steps(Document& document, const std::vector<std::string>& names);

// An identity, the same numbers as a projection that is shown anyway, or what an earlier run made.
bool stands_elsewhere(const std::string& tap, const TraceTensor& input, const Trace& trace);
// One number a row -> a matrix of one column.
TraceTensor as_column(const TraceTensor& value, const AttentionPart& part);
// Few enough keys and coordinates that "0.3302·(1,0) + 0.6698·(0,1)" can be read.
bool explains_out(const TraceTensor& weights, const TraceTensor& v);

std::string plural_reason(const std::string& reason);  // "keys after the query"
std::string projection_latex(const std::string& letter, const Step& step);
std::string latex_name(const std::string& tap);  // "W_Q" -> "W_Q", "block.0.x" -> "\text{...}"
// "mouse → chases"
std::string next_token_line(const Case& c, const std::string& row, double token);

}  // namespace glasshead::wire
