// What a change moved, cell by cell, in a document: fills Cell::before and Cell::direction.
//
//   Moved moved = mark_moved(after, before);    // {21, 33}: of the cells of the steps counted
#pragma once

#include "wire/document.h"

namespace glasshead::wire {

struct Moved {
  index_t moved = 0, of = 0;  // cells of scores, scaled, capped, biased, weights and out
};

// Tables are matched by tap and head, rows by number. A number has moved if it differs by more than
// rounding explains (1e-12 of its size), or a pair was hidden or shown. Cells of tables that the
// earlier document lacks, or that have another shape, are left alone.
Moved mark_moved(Document& after, const Document& before);
// The same for one table.
void mark_moved(Table& after, const Table& before, Moved& moved);

// Whether two numbers are the same but for rounding: a shift of all scores leaves traces in the
// last bits of the weights.
bool is_unmoved(double a, double b);

}  // namespace glasshead::wire
