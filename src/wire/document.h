// The one table of strings that every printed form is made from: text, Markdown, LaTeX, HTML, SVG,
// CSV. A document is built once from a trace (document_build.h); renderers lay it out and never
// round, format or compare a number.
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
  bool is_blank = false;   // of a worksheet: a place to write in; there is no number behind it
  std::string reason;      // "key after query", "padding", ...: why it is hidden
  int moved = 0;       // units of the last place moved so that the row adds to 1 (rule R4); mark ′
  std::string before;  // --diff: the old text; empty when there is no comparison
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
  std::string tap;      // "weights"; also the test id's matrix name
  std::string name;     // "Q": heading above the numbers; empty when the section's title says it
  std::string symbol;   // "A": as formulas call it; empty if none
  std::string leading;  // "head 1": which part of a tensor of higher rank; empty for a matrix
  index_t head = -1;    // test ids: -h<h>; -1 for a plain matrix
  bool is_repeated = false;  // numbers that stand elsewhere too: left out of the short forms
  std::vector<std::string> row_labels;     // escaped, cut to 8 cells; empty: rows have no names
  std::vector<std::string> column_labels;  // empty: columns are coordinates and print no header
  std::vector<index_t> row_index;          // the row's number in the whole matrix, or sequence
  index_t first_row = 0;  // where the matrix's row 0 stands in its sequence (wire/sequence.h)
  std::vector<std::vector<Cell>> rows;
  std::vector<RowSum> sums;            // one per row, or empty
  std::vector<std::string> row_notes;  // "= 0.3302·(1,0) + 0.6698·(0,1)"; one per row, or empty
  std::vector<index_t> shape;          // of the whole tensor behind it
  // Rule R7: rows longer than the limit print their k largest, then "others (n-k)".
  struct LongEntry {
    index_t key = 0;
    std::string label;
    Cell cell;
    std::string score;  // q·k of this key; empty when the table has none
  };
  struct LongRow {
    std::vector<LongEntry> top;
    Cell others;
    index_t other_count = 0;
  };
  std::vector<LongRow> long_rows;  // instead of `rows`, one per row, when the rows are long
  // Pictures of large matrices: the numbers alone, row-major, NaN where hidden; no `rows` then.
  std::vector<double> map;
  index_t map_rows = 0, map_columns = 0;
};

// One numbered step: a heading line and the tables that stand under it.
struct Section {
  enum class Layout {
    plain,    // tables one below the other
    beside,   // stands beside its neighbours of the same kind where the width allows
    compact,  // small matrices under one heading: Q K V
    softmax   // three tables of the same rows: row_max, exp, row_sum
  };
  int number = 0;       // 0: not numbered
  std::string title;    // "scores"
  std::string formula;  // "S = Q·Kᵀ"
  std::string latex;    // the same for LaTeX
  std::string shape;    // "3×3", "3×3 · 3×2 → 3×2"
  std::string remark;   // "keys after the query, 3 of 9"
  Layout layout = Layout::plain;
  std::vector<Table> tables;
  std::vector<std::string> lines;  // plain lines below the tables
  bool wraps_lines = false;        // text: those wider than the page go on below, indented
};

struct CheckLine {
  std::string id;    // "rows-sum-1"
  std::string text;  // "rows"
  bool is_ok = false;
  std::string detail;  // when it fails: which row, what sum
};

struct Document {
  std::string name;                   // "three-tokens-causal"
  std::string title;                  // "three-tokens-causal · tutorial 1 · 1 head · ..."
  std::string question;               // the case's own title, a sentence
  std::vector<std::string> preamble;  // "X 3×2 · W_Q = ..."
  std::vector<Section> sections;
  std::vector<CheckLine> checks;
  std::vector<std::string> footnotes;  // "′ moved by one unit so that the row adds to 1 (...)"
  std::vector<std::string> notes;      // what the tutorial prints and why it differs
  std::vector<std::string> note_taps;  // of each note: the numbers that it is about
};

// A cell's text with its mark: "0.5034′".
inline std::string marked(const Cell& cell) {
  return cell.moved != 0 ? cell.text + "′" : cell.text;
}

}  // namespace glasshead::wire
