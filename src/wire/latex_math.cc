// A section's formula and matrices in displays that fit a page: a matrix is cut by columns and rows
// where it doesn't.
#include <algorithm>

#include <fmt/format.h>

#include "wire/display.h"
#include "wire/latex.h"
#include "wire/render.h"

namespace glasshead::wire {
namespace {

// LaTeX's article at 10pt: lines of 345pt, 43 of them to a page. A digit takes 5pt, a letter of a
// formula up to 9pt, a column's spaces 10pt, a matrix's row 12pt.
constexpr std::size_t kLineWidth = 340, kDigitWidth = 5, kLetterWidth = 7, kColumnSpace = 10;
constexpr std::size_t kPageRows = 36;

// A printed number in mathematics.
std::string math_cell(const Cell& cell) {
  if (cell.is_blank) return "\\underline{\\hspace{2em}}";
  if (cell.text == "·") return "\\cdot";
  if (cell.text == "−∞") return "-\\infty";
  if (cell.text == "inf") return "\\infty";
  if (cell.text == "nan" || cell.text == "same") return "\\text{" + cell.text + "}";
  return cell.moved != 0 ? cell.text + "'" : cell.text;
}

// About how wide a formula is set: a command is one sign, unless its argument is its text.
std::size_t formula_width(const std::string& formula) {
  std::size_t signs = 0;
  for (std::size_t n = 0; n < formula.size(); ++n) {
    if (std::string_view("{}^_&").find(formula[n]) != std::string_view::npos) continue;
    if (formula[n] == '\\') {
      const std::size_t begin = n + 1;
      while (n + 1 < formula.size() && formula[n + 1] >= 'A' && formula[n + 1] <= 'z' &&
             formula[n + 1] != '_' && formula[n + 1] != '^' && formula[n + 1] != '\\')
        ++n;
      if (formula.compare(begin, n + 1 - begin, "text") == 0) continue;
    }
    ++signs;
  }
  return signs * kLetterWidth;
}

std::size_t column_width(const Table& table, std::size_t j) {
  constexpr std::size_t kBlankDigits = 4;
  std::size_t digits = 0;
  for (const auto& row : table.rows)
    digits =
        std::max(digits, row[j].is_blank ? kBlankDigits
                                         : static_cast<std::size_t>(display_width(marked(row[j]))));
  return digits * kDigitWidth + kColumnSpace;
}

struct Range {
  std::size_t begin, end;
};

// The columns in blocks, each of which fits a line beside `left`; one column at least.
std::vector<Range> column_blocks(const Table& table, std::size_t left) {
  std::vector<Range> blocks;
  std::size_t width = 0;
  for (std::size_t j = 0; j < table.rows[0].size(); ++j) {
    const std::size_t more = column_width(table, j);
    if (blocks.empty() || left + width + more > kLineWidth) {
      blocks.push_back({j, j});
      width = 0;
    }
    blocks.back().end = j + 1;
    width += more;
  }
  return blocks;
}

std::vector<Range> row_blocks(const Table& table) {
  std::vector<Range> blocks;
  for (std::size_t begin = 0; begin < table.rows.size(); begin += kPageRows)
    blocks.push_back({begin, std::min(begin + kPageRows, table.rows.size())});
  return blocks;
}

std::string matrix(const Table& table, Range rows, Range columns) {
  std::string out = "\\begin{bmatrix}";
  for (std::size_t n = rows.begin; n < rows.end; ++n) {
    if (n > rows.begin) out += "\\\\";
    for (std::size_t j = columns.begin; j < columns.end; ++j)
      out += (j > columns.begin ? "&" : "") + math_cell(table.rows[n][j]);
  }
  return out + "\\end{bmatrix}";
}

// What a matrix is called: a symbol, or the table's own name.
std::string name_of(const Table& table) {
  const std::string& name = !table.symbol.empty() ? table.symbol
                            : !table.name.empty() ? table.name
                                                  : table.tap;
  std::string left = name.size() == 1 ? name : "\\text{" + latex_escape(name) + "}";
  if (!table.leading.empty()) left += "_{\\text{" + latex_escape(table.leading) + "}}";
  return left;
}

std::string range_words(const char* what, Range range, index_t first) {
  const index_t begin = first + static_cast<index_t>(range.begin);
  const index_t end = first + static_cast<index_t>(range.end);
  return end == begin + 1 ? fmt::format("{} {}", what, begin)
                          : fmt::format("{}s {}--{}", what, begin, end - 1);
}

// Aligned lines, put together in displays of at most a page.
class Displays {
 public:
  void add(const std::string& line, std::size_t rows) {
    if (all_.empty() || rows_ + rows > kPageRows) {
      all_.emplace_back();
      rows_ = 0;
    }
    all_.back() += (all_.back().empty() ? "" : "\\\\\n") + line;
    rows_ += rows;
  }
  std::vector<std::string> finish() {
    for (std::string& lines : all_) lines = "\\begin{aligned}\n" + lines + "\n\\end{aligned}\n";
    return std::move(all_);
  }

 private:
  std::vector<std::string> all_;
  std::size_t rows_ = 0;  // of the last
};

// On one line, or where it is too long for that, each of its equations on one.
void add_formula(Displays& displays, std::string formula) {
  constexpr std::string_view kNext = ",\\quad ";
  while (formula_width(formula) > kLineWidth) {
    const std::size_t next = formula.find(kNext);
    if (next == std::string::npos) break;
    displays.add("&" + formula.substr(0, next + 1), 2);
    formula.erase(0, next + kNext.size());
  }
  displays.add("&" + formula, 2);
}

void add_table(Displays& displays, const Table& table, const std::string& left) {
  const std::vector<Range> rows = row_blocks(table);
  std::vector<Range> columns = column_blocks(table, formula_width(left));
  if (rows.size() == 1 && columns.size() == 1) {
    displays.add(left + "=" + matrix(table, rows[0], columns[0]), table.rows.size());
    return;
  }
  const std::string name = name_of(table);
  columns = column_blocks(table, 2 * kLetterWidth);
  for (const Range& some_rows : rows)
    for (const Range& some : columns) {
      std::string which;
      if (rows.size() > 1) which = range_words("row", some_rows, table.row_index.front());
      if (columns.size() > 1) which += (which.empty() ? "" : ", ") + range_words("column", some, 0);
      // The heading stays with its matrix.
      displays.add(
          "&" + name + "\\quad\\text{" + which + "}\\\\\n&\\quad " + matrix(table, some_rows, some),
          some_rows.end - some_rows.begin + 1);
    }
}

}  // namespace

std::vector<std::string> latex_displays(const Section& section) {
  std::vector<const Table*> shown;
  for (const Table& table : section.tables)
    if (!table.is_repeated && !table.rows.empty()) shown.push_back(&table);
  if (shown.empty()) return {};
  Displays displays;
  std::string formula = section.latex;
  const bool is_beside = shown.size() == 1 && !formula.empty() && shown[0]->name.empty() &&
                         shown[0]->rows.size() <= kPageRows &&
                         column_blocks(*shown[0], formula_width(formula)).size() == 1;
  if (is_beside) {  // the formula stands for the matrix's name
    const std::size_t equals = formula.find('=');
    formula.insert(equals == std::string::npos ? 0 : equals, "&");
    add_table(displays, *shown[0], formula);
    return displays.finish();
  }
  if (!formula.empty()) add_formula(displays, formula);
  for (const Table* table : shown) add_table(displays, *table, name_of(*table) + "&");
  return displays.finish();
}

}  // namespace glasshead::wire
