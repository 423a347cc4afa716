// A document as JSON, glasshead.document/1, for a page: every string that people see and every
// number behind one as the text that reads back the same, so that the page lays out and never
// rounds, formats or compares.
//
//   write_document_json(writer, document);   // {"name":...,"sections":[{"tables":[...]}]}
#pragma once

#include "wire/document.h"
#include "wire/json_writer.h"

namespace glasshead::wire {

// Members of a cell: text (with its mark), exact, and where they apply hidden (the reason), moved,
// was (the text before a change), direction (-1, 0, 1; with was).
void write_document_json(JsonWriter& json, const Document& document);

// "0.3302384506733431", "nan", "inf", "-inf": what data-exact holds.
std::string exact_text(double x);

}  // namespace glasshead::wire
