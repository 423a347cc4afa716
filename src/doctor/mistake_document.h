// A mistake as it is shown: the wrong run beside the right one, on the same numbers.
//
//   weights    wrong                      Σ           right
//     A   0.4011       ·        ·    0.4011 ✗         1       ·        ·
//     B   0.1978  0.4011        ·    0.5989 ✗    0.3302  0.6698        ·
//     C   0.2483  0.2483  0.5034′    1.0000 ✓      same
#pragma once

#include <string>

#include "doctor/mistakes.h"
#include "wire/case.h"
#include "wire/document.h"
#include "wire/document_build.h"
#include "wire/json_writer.h"

namespace glasshead::doctor {

// The first attention's weights and output, wrong and right; what is done, the tell-tale, the line
// of code to look for, the fix. A program that stops has the reason instead of numbers.
wire::Document mistake_document(const MistakenRun& run, const wire::Case& c,
                                const wire::DocumentOptions& options);

// The trace's JSON of the wrong run, with a member "mistake": id, parameter, what the table says of
// it, whether it runs, whether these inputs show it, and the right weights and out. Of a program
// that stops only schema, case and mistake.
void write_mistake_json(const MistakenRun& run, const wire::Case& c,
                        const wire::DocumentOptions& options, const wire::JsonWriter::Sink& sink);

// The whole table, with what each mistake gives on this case: docs/mistakes.md.
std::string mistakes_markdown(const wire::Case& c);

}  // namespace glasshead::doctor
