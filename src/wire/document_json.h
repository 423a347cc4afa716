// A document as JSON, glasshead.document/1, for a page: every string that people see and every
// number behind one as the text that reads back the same, so that the page lays out and never
// rounds, formats or compares.
//
//   write_document_json(writer, document);   // {"name":...,"sections":[{"tables":[...]}]}
#pragma once

#include <functional>
#include <string>

#include "wire/document.h"
#include "wire/json_writer.h"

namespace glasshead::wire {

// Members of a cell: text (with its mark), exact, and where they apply hidden (the reason), moved,
// was (the text before a change), direction (-1, 0, 1; with was).
void write_document_json(JsonWriter& json, const Document& document);

// The same with the tables as `tables` writes them: one value for each table of the section.
using TablesWriter = std::function<void(const Section& section)>;
void write_document_json(JsonWriter& json, const Document& document, const TablesWriter& tables);

// Parts of it. `id`: the cell's test id; empty: without.
void write_cell_json(JsonWriter& json, const Cell& cell, const std::string& id);
void write_sums_json(JsonWriter& json, const Table& table);
void write_table_json(JsonWriter& json, const Table& table);

// "0.3302384506733431", "nan", "inf", "-inf": what data-exact holds.
std::string exact_text(double x);

}  // namespace glasshead::wire
