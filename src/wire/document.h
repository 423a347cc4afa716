// The one table of strings that every printed form is made from: text, Markdown, LaTeX, HTML, SVG,
// CSV, and the "printed" part of the JSON. A document is built once from a trace; renderers lay it
// out and never round, format or compare a number.
#pragma once

#include <string>
#include <vector>

#include "glasshead/tensor.h"

namespace glasshead::wire {

// One printed number.
struct Cell {
  std::string text;        // "0.5034", "·", "−∞": without the mark below
  double exact = 0;        // the number behind it
  bool is_hidden = false;  // a masked pair
  std::string reason;      // "key after query", "padding", ...: why it is hidden
  int moved = 0;       // units of the last place moved so that the row adds to 1 (rule R4); mark ′
  std::string before;  // --diff: the old text; empty when unchanged
  int direction = 0;   // --diff: -1 ▼, 0 =, +1 ▲
};

// The Σ column of a row of weights or probabilities.
struct RowSum {
  std::string text;       // "1.0000"; "—" for a row with no allowed key
  double exact = 0;       // of the unrounded row
  bool is_ok = false;     // rule R6
  bool is_empty = false;  // no allowed key
};

struct Table {
  std::string tap;                      // "weights"; also the test id's matrix name
  std::string name;                     // "weights", "Q": heading
  std::string symbol;                   // "A": as formulas call it; empty if none
  std::vector<std::string> leading;     // "head 1": names of leading axes; empty for a plain matrix
  index_t head = -1;                    // test ids: -h<h>; -1 for a plain matrix
  std::vector<std::string> row_labels;  // escaped, cut to 8 cells
  std::vector<std::string> column_labels;  // empty: columns are coordinates and print no header
  std::vector<std::vector<Cell>> rows;
  std::vector<RowSum> sums;            // one per row, or empty
  std::vector<std::string> row_notes;  // "= 0.3302·(1,0) + 0.6698·(0,1)"; one per row, or empty
  index_t rows_in_full = 0, columns_in_full = 0;  // the matrix's own shape
  std::vector<index_t> column_index;              // rule R7 is per row: see `long_rows`
  // Rule R7: rows longer than the limit print their k largest, then "others (n-k)".
  struct LongEntry {
    index_t key;
    std::string label;
    Cell cell;
  };
  struct LongRow {
    std::vector<LongEntry> top;
    Cell others;
    index_t other_count = 0;
  };
  std::vector<LongRow> long_rows;  // instead of `rows`, one per row, when the rows are long
};

// One numbered step: a heading line and the tables that stand under it.
struct Section {
  int number = 0;       // 0: not numbered
  std::string title;    // "scores"
  std::string formula;  // "S = Q·Kᵀ"
  std::string latex;    // the same for LaTeX
  std::string shape;    // "3×3", "3×3 · 3×2 → 3×2"
  std::string remark;   // "keys after the query, 3 of 9"
  std::vector<Table> tables;
  std::vector<std::string> lines;  // plain lines instead of or below the tables
};

struct CheckLine {
  std::string id;    // "rows-sum-1"
  std::string text;  // "rows"
  bool is_ok = false;
  std::string detail;  // when it fails: which row, what sum
};

struct Document {
  std::string title;  // "three-tokens-causal · tutorial 1 · 1 head · f64 exact · 4 decimals"
  std::vector<std::string> preamble;  // "X 3×2 · W_Q = ..."
  std::vector<Section> sections;
  std::vector<CheckLine> checks;
  std::vector<std::string>
      footnotes;  // "′ moved by one unit so that the row adds to 1 (exact 0.503489843…)"
  std::vector<std::string> notes;  // what the tutorial prints and why it differs
};

}  // namespace glasshead::wire
