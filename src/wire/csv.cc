// One matrix as CSV, for spreadsheets.
#include <cmath>

#include "wire/decimal.h"
#include "wire/render.h"

namespace glasshead::wire {
namespace {

std::string number_field(const Cell& cell) {
  if (cell.is_hidden) return {};
  if (std::isnan(cell.exact)) return "nan";
  if (std::isinf(cell.exact)) return cell.exact < 0 ? "-inf" : "inf";
  return shortest(cell.exact);
}

const Table* first_table(const Document& document) {
  for (const Section& section : document.sections)
    for (const Table& table : section.tables)
      if (!table.is_repeated && !table.rows.empty()) return &table;
  return nullptr;
}

}  // namespace

std::string to_csv(const Document& document) {
  const Table* table = first_table(document);
  if (!table) return {};
  const bool has_labels = !table->row_labels.empty();
  std::string out;
  if (!table->column_labels.empty()) {
    for (std::size_t j = 0; j < table->column_labels.size(); ++j)
      out += (j > 0 || has_labels ? "," : "") + csv_field(table->column_labels[j]);
    out += "\r\n";
  }
  for (std::size_t n = 0; n < table->rows.size(); ++n) {
    if (has_labels) out += csv_field(table->row_labels[n]);
    for (std::size_t j = 0; j < table->rows[n].size(); ++j)
      out += (j > 0 || has_labels ? "," : "") + number_field(table->rows[n][j]);
    out += "\r\n";
  }
  return out;
}

}  // namespace glasshead::wire
