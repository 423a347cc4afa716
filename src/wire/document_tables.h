// Tensors of a trace as tables of cells: one Table per matrix of a tensor of higher rank.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "wire/document_build.h"

namespace glasshead::wire {

enum class TableKind {
  plain,   // rules R2, R3
  given,   // an input: digits as the case writes them
  scores,  // hidden pairs are "−∞"
  exps,    // hidden pairs are "·"
  weights  // rules R3, R4, R6, with a Σ column; without a part nothing is hidden
};

struct TableSource {
  std::string tap;
  std::string name;
  std::string symbol;
  const TraceTensor* value = nullptr;
  TableKind kind = TableKind::plain;
  const AttentionPart* part = nullptr;  // whose mask hides pairs; null: none
  const TraceTensor* scores = nullptr;  // q·k shown beside the entries of long rows
  std::vector<std::string> row_labels;  // as given; used when there is one per row
  std::vector<std::string> column_labels;
  index_t first_row = 0;          // where row 0 stands in its sequence
  bool are_rows_queries = false;  // --query picks among them
};

std::vector<Table> make_tables(const TableSource& source, const Case& c,
                               const DocumentOptions& options);

// The matrices of a tensor of any rank: how many, and the shape of each. Rank 1 is one row.
struct Matrices {
  index_t count = 0, rows = 0, columns = 0;
};
Matrices matrices_of(const std::vector<index_t>& shape);
std::span<const double> row_of(const TraceTensor& value, index_t matrix, index_t row);

}  // namespace glasshead::wire
