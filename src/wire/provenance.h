// Which numbers a number was made from, one step back: the cells a page outlines.
//
//   provenance(trace, "scores", -1, 1, 0)   // q: row 1, all columns; k: row 0, all columns
#pragma once

#include <string>
#include <vector>

#include "glasshead/trace.h"

namespace glasshead::wire {

// Cells of one matrix: a row, a column, one cell, or all of it.
struct Region {
  std::string tap;
  index_t head = -1;              // -1: a plain matrix
  index_t row = -1, column = -1;  // -1: all
};

// The cells that entry (row, column) of matrix `head` (-1: the tap has no heads) of a step was
// computed from. Empty for inputs, and for operations whose result depends on more than regions can
// say.
std::vector<Region> provenance(const Trace& trace, const std::string& tap, index_t head,
                               index_t row, index_t column);

// The entries of later steps that were computed from entry (row, column), one step on.
std::vector<Region> fed_by(const Trace& trace, const std::string& tap, index_t head, index_t row,
                           index_t column);

}  // namespace glasshead::wire
