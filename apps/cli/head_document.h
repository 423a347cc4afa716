// What stands around the steps of a model's head: where it is, what the run itself computed, and
// how far that is from the trace.
#pragma once

#include "cli/head_case.h"
#include "wire/document_build.h"
#include "wire/json_writer.h"

namespace glasshead::cli {

// Adds them to a document of head.shown. `is_own`: nothing of it was edited, so that the run's
// numbers are of the same attention.
void add_head(wire::Document& document, const ModelHead& head, const Trace& trace,
              const wire::DocumentOptions& options, bool is_own);

// The member "model" of the JSON form.
void write_head(wire::JsonWriter& json, const ModelHead& head, bool is_own);

}  // namespace glasshead::cli
