#include "wire/document_tables.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "wire/display.h"

namespace glasshead::wire {
namespace {

// Matrix number `m` of a [heads, ...] or [batch, heads, ...] tensor.
struct Leading {
  index_t b = 0, h = 0;
  std::string words;
  index_t head_id = -1;  // for test ids
};

Leading leading_of(const std::vector<index_t>& shape, index_t m) {
  Leading leading;
  const std::size_t rank = shape.size();
  if (rank < 3) return leading;
  const index_t heads = shape[rank - 3];
  leading.h = m % heads;
  leading.b = m / heads;
  leading.head_id = m;
  if (rank > 3 && shape[0] > 1) leading.words = fmt::format("row of text {}, ", leading.b);
  leading.words += fmt::format("head {}", leading.h);
  return leading;
}

std::vector<Cell> plain_row(const TableSource& source, const Case& c, index_t m, index_t i,
                            const PrintOptions& print, bool is_scientific) {
  std::vector<Cell> cells;
  const std::span<const double> row = row_of(*source.value, m, i);
  const auto first = static_cast<std::size_t>(row.data() - source.value->values.data());
  cells.reserve(row.size());
  for (std::size_t j = 0; j < row.size(); ++j) {
    Cell cell;
    cell.exact = row[j];
    if (source.kind == TableKind::given) cell.text = given_text(c, source.tap, first + j);
    if (cell.text.empty()) cell.text = print_number(row[j], print.decimals, is_scientific);
    cells.push_back(std::move(cell));
  }
  return cells;
}

void hide(std::vector<Cell>& cells, const TableSource& source, const Leading& leading, index_t i) {
  if (!source.part || !source.part->plan) return;
  const MaskPlan& plan = *source.part->plan;
  for (std::size_t j = 0; j < cells.size(); ++j) {
    const Reasons reasons = plan.reasons(leading.b, leading.h, i, static_cast<index_t>(j));
    if (reasons.is_empty()) continue;
    cells[j].is_hidden = true;
    cells[j].exact = 0;
    cells[j].text = source.kind == TableKind::scores ? "−∞" : "·";
    cells[j].reason = reason_words(reasons);
  }
}

std::vector<char> hidden_marks(const TableSource& source, const Leading& leading, index_t i) {
  if (!source.part || !source.part->plan) return {};
  return hidden_row(*source.part->plan, leading.b, leading.h, i);
}

// The key's number stands beside its label.
void label_long_row(Table::LongRow& row, const TableSource& source, index_t m, index_t i,
                    const PrintOptions& print) {
  for (Table::LongEntry& entry : row.top) {
    const auto key = static_cast<std::size_t>(entry.key);
    if (key < source.column_labels.size()) entry.label = shown_label(source.column_labels[key]);
    if (source.scores)
      entry.score = print_number(row_of(*source.scores, m, i)[key], print.decimals);
  }
}

void add_row(Table& table, const TableSource& source, const Case& c, const Leading& leading,
             index_t m, index_t i, const PrintOptions& print, bool is_scientific) {
  const std::span<const double> row = row_of(*source.value, m, i);
  const bool is_pairs = source.kind == TableKind::scores || source.kind == TableKind::exps ||
                        source.kind == TableKind::weights;
  const bool is_long = is_pairs && !print.is_full && static_cast<index_t>(row.size()) > kLongRow;
  table.row_index.push_back(source.first_row + i);
  if (is_long && source.kind == TableKind::weights) {
    PrintedLongRow printed = print_long_weights_row(row, hidden_marks(source, leading, i), print,
                                                    sink_share(source.part, m, i));
    label_long_row(printed.row, source, m, i, print);
    table.long_rows.push_back(std::move(printed.row));
    table.sums.push_back(printed.sum);
  } else if (is_long) {
    Table::LongRow printed =
        print_long_row(row, hidden_marks(source, leading, i), print.decimals, is_scientific);
    label_long_row(printed, source, m, i, print);
    table.long_rows.push_back(std::move(printed));
  } else if (source.kind == TableKind::weights) {
    PrintedRow printed = print_weights_row(row, hidden_marks(source, leading, i), print,
                                           sink_share(source.part, m, i));
    hide(printed.cells, source, leading, i);
    table.rows.push_back(std::move(printed.cells));
    table.sums.push_back(printed.sum);
  } else {
    std::vector<Cell> cells = plain_row(source, c, m, i, print, is_scientific);
    hide(cells, source, leading, i);
    table.rows.push_back(std::move(cells));
  }
}

// Rule R2 for weights made without softmax; those of a softmax are written out, however small.
bool are_scientific_weights(const TableSource& source, const PrintOptions& print) {
  const std::vector<double>& values = source.value->values;
  if (!needs_scientific(values, print.decimals)) return false;
  if (std::any_of(values.begin(), values.end(), [](double x) { return std::fabs(x) > 1; }))
    return true;
  const Matrices matrices = matrices_of(source.value->shape);
  for (index_t m = 0; m < matrices.count; ++m)
    for (index_t i = 0; i < matrices.rows; ++i)
      if (row_adds_to_one(
              sum_of_row(row_of(*source.value, m, i)) + sink_share(source.part, m, i).value_or(0),
              matrices.columns + 1))
        return false;
  return true;
}

// A large matrix as numbers for a picture.
void add_map(Table& table, const TableSource& source, const Leading& leading, index_t m,
             const Matrices& matrices) {
  table.map_rows = matrices.rows;
  table.map_columns = matrices.columns;
  table.map.reserve(static_cast<std::size_t>(matrices.rows * matrices.columns));
  for (index_t i = 0; i < matrices.rows; ++i) {
    const std::span<const double> row = row_of(*source.value, m, i);
    const std::vector<char> hidden = hidden_marks(source, leading, i);
    for (std::size_t j = 0; j < row.size(); ++j)
      table.map.push_back(
          !hidden.empty() && hidden[j] != 0 ? std::numeric_limits<double>::quiet_NaN() : row[j]);
  }
}

}  // namespace

Matrices matrices_of(const std::vector<index_t>& shape) {
  Matrices matrices{1, 1, 1};
  const std::size_t rank = shape.size();
  if (rank > 0) matrices.columns = shape[rank - 1];
  if (rank > 1) matrices.rows = shape[rank - 2];
  for (std::size_t axis = 0; axis + 2 < rank; ++axis) matrices.count *= shape[axis];
  return matrices;
}

std::span<const double> row_of(const TraceTensor& value, index_t matrix, index_t row) {
  const Matrices matrices = matrices_of(value.shape);
  const index_t offset = (matrix * matrices.rows + row) * matrices.columns;
  return std::span(value.values)
      .subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(matrices.columns));
}

std::vector<Table> make_tables(const TableSource& source, const Case& c,
                               const DocumentOptions& options) {
  const Matrices matrices = matrices_of(source.value->shape);
  const bool is_scientific = source.kind != TableKind::weights &&
                             needs_scientific(source.value->values, options.print.decimals);
  PrintOptions print = options.print;
  print.is_scientific = source.kind == TableKind::weights && are_scientific_weights(source, print);
  std::vector<Table> tables;
  for (index_t m = 0; m < matrices.count; ++m) {
    const Leading leading = leading_of(source.value->shape, m);
    if (options.head && leading.head_id >= 0 && leading.h != *options.head) continue;
    Table table;
    table.tap = source.tap;
    table.name = source.name;
    table.symbol = source.symbol;
    table.leading = leading.words;
    table.head = leading.head_id;
    table.first_row = source.first_row;
    table.shape = source.value->shape;
    if (static_cast<index_t>(source.column_labels.size()) == matrices.columns)
      table.column_labels = shown_labels(source.column_labels);
    if (options.map_above > 0 &&
        (matrices.rows > options.map_above || matrices.columns > options.map_above)) {
      add_map(table, source, leading, m, matrices);
      tables.push_back(std::move(table));
      continue;
    }
    const bool has_labels = static_cast<index_t>(source.row_labels.size()) == matrices.rows &&
                            source.value->shape.size() > 1;
    const std::vector<std::string> labels = shown_labels(source.row_labels);
    std::optional<index_t> query;
    if (source.are_rows_queries && options.query) query = *options.query - source.first_row;
    for (const index_t i : shown_rows(matrices.rows, query)) {
      if (has_labels) table.row_labels.push_back(labels[static_cast<std::size_t>(i)]);
      add_row(table, source, c, leading, m, i, print, is_scientific);
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

}  // namespace glasshead::wire
