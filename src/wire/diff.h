// What a change of a case moved, what it did not, and why not.
#pragma once

#include <string>
#include <vector>

#include "wire/document_build.h"
#include "wire/json_writer.h"

namespace glasshead::wire {

struct Comparison {  // of what outlives it
  const Case &before_case, &after_case;
  const Trace &before, &after;
};

// The lines of the text form: for every attention and head the weights as before→after with ▲ ▼ =,
// the outputs that moved, and how many weights did not although the input did.
std::vector<std::string> diff_lines(const Comparison& comparison, const DocumentOptions& options);
// Of these only the last of every attention and head: how many weights stayed, and why.
std::vector<std::string> diff_summaries(const Comparison& comparison,
                                        const DocumentOptions& options);
Document diff_document(const Comparison& comparison, const DocumentOptions& options);
// glasshead.diff/1: for every tap of both, before, after, and how many entries moved.
void write_diff_json(const Comparison& comparison, const JsonWriter::Sink& sink);

}  // namespace glasshead::wire
