// A view's document, whole or as what changed since the one answered last: of some thousand cells
// an edit moves some hundred, and a page that holds the rest need not be told it again.
//
//   "sections":[{"number":2,"title":...,"tables":[null,{"cells":[[1,0,{"text":"0.3302",...}]],
//     "sums":[...],"row_notes":[...]}]}]
//
// A table in which nothing changed is null; a cell is its row, its column and its new members (but
// for its id); sums and row_notes stand there if any of them changed; a table of long rows that
// changed is {"whole":{...}}. The document's own texts are always all there.
#pragma once

#include "wire/document.h"
#include "wire/json_writer.h"

namespace glasshead::wasm {

// Whether `now` has the tables of `before`, of the same shapes and names.
bool has_same_form(const wire::Document& now, const wire::Document& before);

void write_changes(wire::JsonWriter& json, const wire::Document& now, const wire::Document& before);

}  // namespace glasshead::wasm
