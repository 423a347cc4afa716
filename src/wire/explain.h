// One weight's whole derivation, a line for each key of a row:
//
//   A: q·k = 0·1 + 1·0 = 0 → ·0.7071 = 0 → allowed (A is not after B) → exp(0 − 0.7071) = 0.4931
//      → 0.4931/1.4931 ≈ 0.3302
#pragma once

#include <string>
#include <vector>

#include "wire/document_build.h"
#include "wire/json_writer.h"

namespace glasshead::wire {

// One query row's derivation: a line for each key shown.
struct ExplainedRow {
  std::string prefix;           // of the attention: "", "block.0."
  std::optional<index_t> head;  // none: it has no heads
  index_t query = 0;            // counted from the start of the whole sequence
  std::string label;
  std::vector<index_t> keys;
  std::vector<std::string> lines;  // one per key
  index_t others = 0;              // keys of a long row that are not shown
};

// Every attention, head and query that the options leave; of long rows the heaviest keys.
std::vector<ExplainedRow> explain(const Case& c, const Trace& trace,
                                  const DocumentOptions& options);
std::vector<std::string> explain_lines(const Case& c, const Trace& trace,
                                       const DocumentOptions& options);
Document explain_document(const Case& c, const Trace& trace, const DocumentOptions& options);
// glasshead.explain/1: the rows as above.
void write_explain_json(const Case& c, const Trace& trace, const DocumentOptions& options,
                        const JsonWriter::Sink& sink);

}  // namespace glasshead::wire
