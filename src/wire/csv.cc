// Matrices as CSV: one as a spreadsheet wants it, several as a list of their numbers.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

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

struct Matrix {
  const Section* section;
  const Table* table;
};

std::vector<Matrix> matrices_in(const Document& document, bool has_repeated) {
  std::vector<Matrix> found;
  for (const Section& section : document.sections)
    for (const Table& table : section.tables)
      if (!table.rows.empty() && (has_repeated || !table.is_repeated))
        found.push_back({&section, &table});
  return found;
}

// The tap; of two runs of one tap, as beside a mistake, also which.
std::string name_of(const Matrix& one, const std::vector<Matrix>& all) {
  const auto is_alike = [&](const Matrix& other) {
    return other.table != one.table && other.table->tap == one.table->tap &&
           other.table->head == one.table->head;
  };
  if (std::none_of(all.begin(), all.end(), is_alike)) return one.table->tap;
  const Section& section = *one.section;
  return one.table->tap + " " + (section.title == one.table->tap ? section.remark : section.title);
}

std::string label_at(const std::vector<std::string>& labels, std::size_t n) {
  return n < labels.size() ? csv_field(labels[n]) : fmt::format("{}", n);
}

std::string to_matrix(const Table& table) {
  const bool has_labels = !table.row_labels.empty();
  std::string out;
  if (!table.column_labels.empty()) {
    for (std::size_t j = 0; j < table.column_labels.size(); ++j)
      out += (j > 0 || has_labels ? "," : "") + csv_field(table.column_labels[j]);
    out += "\r\n";
  }
  for (std::size_t n = 0; n < table.rows.size(); ++n) {
    if (has_labels) out += csv_field(table.row_labels[n]);
    for (std::size_t j = 0; j < table.rows[n].size(); ++j)
      out += (j > 0 || has_labels ? "," : "") + number_field(table.rows[n][j]);
    out += "\r\n";
  }
  return out;
}

std::string to_list(const std::vector<Matrix>& all) {
  std::string out = "matrix,head,row,column,value\r\n";
  for (const Matrix& one : all) {
    const Table& table = *one.table;
    const std::string start = csv_field(name_of(one, all)) + "," +
                              (table.head < 0 ? "" : fmt::format("{}", table.head)) + ",";
    for (std::size_t n = 0; n < table.rows.size(); ++n) {
      const std::string row = n < table.row_labels.size() || n >= table.row_index.size()
                                  ? label_at(table.row_labels, n)
                                  : fmt::format("{}", table.row_index[n]);
      for (std::size_t j = 0; j < table.rows[n].size(); ++j)
        out += start + row + "," + label_at(table.column_labels, j) + "," +
               number_field(table.rows[n][j]) + "\r\n";
    }
  }
  return out;
}

}  // namespace

std::string to_csv(const Document& document) {
  const std::vector<Matrix> shown = matrices_in(document, false);
  if (shown.empty()) return {};
  return shown.size() == 1 ? to_matrix(*shown[0].table) : to_list(matrices_in(document, true));
}

}  // namespace glasshead::wire
