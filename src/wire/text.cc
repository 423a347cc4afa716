// Documents as text for a terminal (rules R7, R8).
#include <algorithm>

#include <fmt/format.h>

#include "wire/display.h"
#include "wire/render.h"

namespace glasshead::wire {
namespace {

using Lines = std::vector<std::string>;

constexpr int kIndent = 2, kColumnGap = 2, kLabelGap = 4, kTab = 4, kHang = 5;
constexpr int kNarrowestPitch = 5;  // so that one-digit scores stand under their labels
constexpr int kTitleWidth = 7;      // "project", "softmax", "weights"
constexpr int kShapeColumn = 52;    // where the shape of the projections stands

int width_of(const Lines& lines) {
  int width = 0;
  for (const std::string& line : lines) width = std::max(width, display_width(line));
  return width;
}

// A printed number in two halves that meet at the decimal point.
struct Halves {
  std::string whole, fraction;
};

class Writer {
 public:
  explicit Writer(const TextOptions& options) : options_(options) {}

  std::string write(const Document& document);

 private:
  std::string show(std::string_view text) const {
    return options_.is_ascii ? to_ascii(text) : std::string(text);
  }
  std::string shown_cell(const Cell& cell) const { return show(marked(cell)); }

  Halves halves(const Cell& cell) const {
    const std::size_t point = cell.text.find('.');
    if (point == std::string::npos || cell.is_hidden) return {shown_cell(cell), {}};
    return {show(cell.text.substr(0, point)), show(marked(cell).substr(point))};
  }

  Lines aligned(const std::vector<const Cell*>& cells, const std::string& header) const;
  std::vector<int> column_widths(const Table& table) const;
  static int pitch_of(const Table& table, int width);
  Lines table_lines(const Table& table, bool has_labels, int first_gap, std::size_t begin,
                    std::size_t end, bool has_sums) const;
  Lines whole_table(const Table& table) const;
  Lines long_table(const Table& table) const;
  Lines compact(const Section& section) const;
  Lines softmax(const Section& section, index_t head) const;
  Lines softmax_heads(const Section& section) const;
  std::string heading(const Section& section) const;
  void put_plain(const Section& section);
  void put_beside(const std::vector<const Section*>& group);
  void put(std::string line);
  void put(const Lines& lines) {
    for (const std::string& line : lines) put(line);
  }

  const TextOptions& options_;
  std::string out_;
};

void Writer::put(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out_ += line + "\n";
}

// One column: decimal points below one another, everything else flush right.
Lines Writer::aligned(const std::vector<const Cell*>& cells, const std::string& header) const {
  int whole_width = 0, fraction_width = 0, bare_width = display_width(header);
  for (const Cell* cell : cells) {
    const Halves h = halves(*cell);
    if (h.fraction.empty()) {
      bare_width = std::max(bare_width, display_width(h.whole));
    } else {
      whole_width = std::max(whole_width, display_width(h.whole));
      fraction_width = std::max(fraction_width, display_width(h.fraction));
    }
  }
  const int width = std::max(whole_width + fraction_width, bare_width);
  Lines lines{pad_left(header, width)};
  for (const Cell* cell : cells) {
    const Halves h = halves(*cell);
    lines.push_back(h.fraction.empty()
                        ? pad_left(h.whole, width)
                        : pad_left(h.whole + pad_right(h.fraction, fraction_width), width));
  }
  return lines;
}

// Columns [begin, end) of a table; the first line holds the headers.
Lines Writer::table_lines(const Table& table, bool has_labels, int first_gap, std::size_t begin,
                          std::size_t end, bool has_sums) const {
  Lines lines(table.rows.size() + 1);
  int label_width = 0;
  for (const std::string& label : table.row_labels)
    label_width = std::max(label_width, display_width(show(label)));
  if (has_labels) {
    lines[0] = std::string(static_cast<std::size_t>(kIndent + label_width), ' ');
    for (std::size_t n = 0; n < table.rows.size(); ++n)
      lines[n + 1] =
          std::string(kIndent, ' ') +
          pad_right(table.row_labels.empty() ? "" : show(table.row_labels[n]), label_width);
  }
  for (std::size_t j = begin; j < end; ++j) {
    std::vector<const Cell*> cells;
    for (const auto& row : table.rows) cells.push_back(&row[j]);
    const Lines column =
        aligned(cells, table.column_labels.empty() ? "" : show(table.column_labels[j]));
    const int width = display_width(column[0]);
    const int cells_wide = j == begin ? width + first_gap : pitch_of(table, width);
    for (std::size_t n = 0; n < lines.size(); ++n) lines[n] += pad_left(column[n], cells_wide);
  }
  if (has_sums && !table.sums.empty()) {
    std::vector<Cell> texts(table.sums.size());
    std::vector<const Cell*> cells;
    for (std::size_t n = 0; n < texts.size(); ++n) {
      texts[n].text = table.sums[n].text;
      cells.push_back(&texts[n]);
    }
    const Lines column = aligned(cells, show("Σ"));
    for (std::size_t n = 0; n < lines.size(); ++n) {
      lines[n] += std::string(kColumnGap, ' ') + column[n];
      if (n > 0 && !table.sums[n - 1].is_empty)
        lines[n] += " " + show(table.sums[n - 1].is_ok ? "✓" : "✗");
    }
  }
  if (!table.row_notes.empty())
    for (std::size_t n = 1; n < lines.size(); ++n)
      if (end == table.rows[n - 1].size()) lines[n] += "    " + show(table.row_notes[n - 1]);
  if (lines[0].find_first_not_of(' ') == std::string::npos) lines.erase(lines.begin());
  return lines;
}

// What a column takes beside its left neighbour.
int Writer::pitch_of(const Table& table, int width) {
  return table.column_labels.empty() ? width + kColumnGap
                                     : std::max(width + kColumnGap, kNarrowestPitch);
}

std::vector<int> Writer::column_widths(const Table& table) const {
  std::vector<int> widths;
  const std::size_t columns = table.rows.empty() ? 0 : table.rows[0].size();
  for (std::size_t j = 0; j < columns; ++j) {
    std::vector<const Cell*> cells;
    for (const auto& row : table.rows) cells.push_back(&row[j]);
    const std::string header = table.column_labels.empty() ? "" : show(table.column_labels[j]);
    widths.push_back(display_width(aligned(cells, header)[0]));
  }
  return widths;
}

// A whole table under its heading, wrapped by blocks of columns.
Lines Writer::whole_table(const Table& table) const {
  if (!table.long_rows.empty()) return long_table(table);
  Lines all;
  const std::vector<int> widths = column_widths(table);
  const std::size_t columns = widths.size();
  int label_width = 0, sum_width = 0;
  for (const std::string& label : table.row_labels)
    label_width = std::max(label_width, display_width(show(label)));
  for (const RowSum& sum : table.sums) sum_width = std::max(sum_width, display_width(sum.text));
  if (sum_width > 0) sum_width += kColumnGap + 2;  // " ✓"
  std::size_t begin = 0;
  do {
    // As many columns as fit, but one at least. Notes may run over: they are sentences.
    std::size_t end = begin;
    int width = kIndent + label_width;
    for (; end < columns; ++end) {
      width += end == begin ? widths[end] + kLabelGap : pitch_of(table, widths[end]);
      const int last = end + 1 == columns ? sum_width : 0;
      if (end > begin && width + last > options_.width) break;
    }
    const Lines block = table_lines(table, true, kLabelGap, begin, end, end == columns);
    all.insert(all.end(), block.begin(), block.end());
    begin = end;
  } while (begin < columns);
  return all;
}

// Rule R7: weight, key number, key, q·k.
Lines Writer::long_table(const Table& table) const {
  Lines all;
  for (std::size_t n = 0; n < table.long_rows.size(); ++n) {
    const Table::LongRow& row = table.long_rows[n];
    const std::string label = table.row_labels.empty() ? fmt::format("{}", table.row_index[n])
                                                       : show(table.row_labels[n]);
    all.push_back(std::string(kIndent, ' ') + "query " + label);
    std::vector<const Cell*> cells;
    for (const Table::LongEntry& entry : row.top) cells.push_back(&entry.cell);
    if (row.other_count > 0 && !row.others.text.empty()) cells.push_back(&row.others);
    Cell sum;
    if (!table.sums.empty()) {
      sum.text = table.sums[n].text;
      cells.push_back(&sum);
    }
    const Lines column = aligned(cells, table.symbol == "A" ? "w" : "");
    const bool has_scores = !row.top.empty() && !row.top[0].score.empty();
    int label_width = 3;
    for (const Table::LongEntry& entry : row.top)
      label_width = std::max(label_width, display_width(show(entry.label)));
    all.push_back("    " + column[0] + "    key   " + pad_right("", label_width) +
                  (has_scores ? pad_left(show("q·k"), 10) : ""));
    for (std::size_t k = 0; k < row.top.size(); ++k) {
      const Table::LongEntry& entry = row.top[k];
      all.push_back("    " + column[k + 1] + pad_left(fmt::format("{}", entry.key), 7) + "   " +
                    pad_right(show(entry.label), label_width) + pad_left(show(entry.score), 10));
    }
    std::size_t next = row.top.size() + 1;
    if (row.other_count > 0 && !row.others.text.empty())
      all.push_back("    " + column[next++] + fmt::format("       others ({})", row.other_count));
    if (!table.sums.empty())
      all.push_back("    " + column[next].substr(0, column[next].find_last_not_of(' ') + 1) + " " +
                    show(table.sums[n].is_empty ? ""
                         : table.sums[n].is_ok  ? "✓ Σ"
                                                : "✗ Σ"));
  }
  return all;
}

// Small matrices beside one another, their names above their middles.
Lines Writer::compact(const Section& section) const {
  // Names of rows stand once, on the left: they must be those of every matrix.
  for (const Table& table : section.tables)
    if (table.row_labels != section.tables.front().row_labels ||
        table.row_index != section.tables.front().row_index)
      return {};
  Lines all;
  int label_width = 0;
  bool has_labels = false;
  for (const Table& table : section.tables)
    for (const std::string& label : table.row_labels) {
      label_width = std::max(label_width, display_width(show(label)));
      has_labels = true;
    }
  for (const Table& table : section.tables) {
    Lines block =
        table_lines(table, false, 0, 0, table.rows.empty() ? 0 : table.rows[0].size(), false);
    const int width = width_of(block);
    const int centre = width / 2;
    const int label_part = has_labels ? kIndent + label_width + 3 : kIndent + kLabelGap;
    const int start = all.empty() ? label_part : width_of(all) + kTab;
    if (start + width > options_.width && !all.empty()) return {};
    if (all.size() < block.size() + 1) all.resize(block.size() + 1);
    all[0] = pad_right(all[0], start + centre) + show(table.name);
    for (std::size_t n = 0; n < block.size(); ++n) {
      std::string& line = all[n + 1];
      if (line.empty() && n < table.row_labels.size())
        line = std::string(kIndent, ' ') + show(table.row_labels[n]);
      line = pad_right(line, start) + block[n];
    }
    for (std::string& line : all) line = pad_right(line, start + width);
  }
  return all;
}

// "A   max 0.7071   exp  0.4931  1   sum 1.4931": one line a row; empty if it would not fit.
Lines Writer::softmax(const Section& section, index_t head) const {
  const Table *max = nullptr, *exp = nullptr, *sink = nullptr, *sum = nullptr;
  for (const Table& table : section.tables) {
    if (table.is_repeated || table.head != head) continue;
    if (table.name == "max") max = &table;
    if (table.name == "sum") sum = &table;
    if (table.name == "sink") sink = &table;
    if (table.name == "exp") exp = &table;
  }
  if (!max || !sum) return {};
  const auto column_of = [&](const Table& table) {
    std::vector<const Cell*> cells;
    for (const auto& row : table.rows) cells.push_back(&row[0]);
    return aligned(cells, "");
  };
  const Lines maxima = column_of(*max), sums = column_of(*sum);
  const Lines sinks = sink ? column_of(*sink) : Lines();
  int exp_width = 0, label_width = 0;
  for (std::size_t n = 0; exp && n < exp->rows.size(); ++n)
    for (const Cell& cell : exp->rows[n])
      if (!cell.is_hidden) exp_width = std::max(exp_width, display_width(shown_cell(cell)));
  for (const std::string& label : max->row_labels)
    label_width = std::max(label_width, display_width(show(label)));
  Lines lines;
  for (std::size_t n = 0; n < max->rows.size(); ++n) {
    std::string line =
        std::string(kIndent, ' ') +
        pad_right(max->row_labels.empty() ? "" : show(max->row_labels[n]), label_width) +
        "   max " + maxima[n + 1];
    if (exp && n < exp->rows.size()) {
      line += "   exp";
      for (const Cell& cell : exp->rows[n])
        line += "  " + pad_left(cell.is_hidden ? "" : shown_cell(cell), exp_width);
      line += "  ";
    }
    if (sink) line += "   sink " + sinks[n + 1];
    lines.push_back(line + "   sum " + sums[n + 1]);
  }
  return width_of(lines) <= options_.width ? lines : Lines{};
}

// The same for every head; empty if one would not fit.
Lines Writer::softmax_heads(const Section& section) const {
  Lines all;
  for (const Table& table : section.tables) {
    if (table.name != "max") continue;
    const Lines lines = softmax(section, table.head);
    if (lines.empty()) return {};
    if (!table.leading.empty()) all.push_back("  " + show(table.leading));
    all.insert(all.end(), lines.begin(), lines.end());
  }
  return all;
}

std::string Writer::heading(const Section& section) const {
  std::string line = section.number > 0 ? fmt::format("{} ", section.number) : std::string();
  const bool is_beside = section.layout == Section::Layout::beside;
  line += is_beside ? section.title : pad_right(section.title, kTitleWidth);
  std::string rest = section.formula;
  if (!section.remark.empty()) rest += (rest.empty() ? "" : "  ") + section.remark;
  if (section.layout == Section::Layout::compact)
    return pad_right(show(line + "   " + rest), kShapeColumn - kTab + 2) + "  " +
           show(section.shape);
  if (!section.shape.empty()) rest += (is_beside ? " " : "  ") + section.shape;
  return show(line + "   " + rest);
}

void Writer::put_plain(const Section& section) {
  const bool has_shown = std::any_of(section.tables.begin(), section.tables.end(),
                                     [](const Table& table) { return !table.is_repeated; });
  if (section.number == 0 && !has_shown && section.lines.empty()) return;
  if (section.number > 0 || !section.title.empty()) put(heading(section));
  Lines special;
  if (section.layout == Section::Layout::compact) special = compact(section);
  if (section.layout == Section::Layout::softmax) special = softmax_heads(section);
  put(special);
  for (const Table& table : section.tables) {
    if (!special.empty() || table.is_repeated) continue;
    std::string name = table.name;
    if (!table.leading.empty()) name += (name.empty() ? "" : " ") + table.leading;
    if (!name.empty()) put("  " + show(name));
    put(whole_table(table));
  }
  const std::string indent(section.title.empty() ? 0 : kIndent, ' ');
  for (const std::string& line : section.lines) {
    if (section.wraps_lines)
      put(wrapped(indent + show(line), options_.width, kHang, show("→")));
    else
      put(indent + show(line));
  }
}

// Consecutive sections of one shape side by side, as many as the width allows.
void Writer::put_beside(const std::vector<const Section*>& group) {
  for (std::size_t first = 0; first < group.size();) {
    std::string headings;
    std::vector<Lines> tables(group[first]->tables.size());
    Lines notes;
    std::size_t next = first;
    for (; next < group.size(); ++next) {
      const Section& section = *group[next];
      if (section.tables.size() != tables.size()) break;
      const bool is_first = next == first;
      int end = display_width(headings);
      for (const Lines& lines : tables) end = std::max(end, width_of(lines));
      const int start = is_first ? 0 : (end + 2 * kTab - 1) / kTab * kTab;
      int reach = start + display_width(heading(section));
      std::vector<Lines> blocks;
      for (const Table& table : section.tables) {
        blocks.push_back(is_first
                             ? whole_table(table)
                             : table_lines(table, false, kColumnGap, 0,
                                           table.rows.empty() ? 0 : table.rows[0].size(), false));
        reach = std::max(reach, start + width_of(blocks.back()));
        if (!is_first && blocks.back().size() != tables[blocks.size() - 1].size())
          reach = options_.width + 1;  // the first was wrapped: no room beside it
      }
      if (!is_first && reach > options_.width) break;
      headings = pad_right(headings, start) + heading(section);
      for (std::size_t t = 0; t < blocks.size(); ++t) {
        tables[t].resize(std::max(tables[t].size(), blocks[t].size()));
        for (std::size_t n = 0; n < blocks[t].size(); ++n)
          tables[t][n] = pad_right(tables[t][n], start) + blocks[t][n];
      }
      notes.insert(notes.end(), section.lines.begin(), section.lines.end());
    }
    put(headings);
    for (std::size_t t = 0; t < tables.size(); ++t) {
      if (!group[first]->tables[t].leading.empty())
        put("  " + show(group[first]->tables[t].leading));
      put(tables[t]);
    }
    for (const std::string& line : notes) put("  " + show(line));
    first = std::max(next, first + 1);
  }
}

std::string Writer::write(const Document& document) {
  if (!document.title.empty()) put(show(document.title));
  for (const std::string& line : document.preamble) put(show(line));
  for (std::size_t at = 0; at < document.sections.size();) {
    std::vector<const Section*> group;
    while (at < document.sections.size() && document.sections[at].layout == Section::Layout::beside)
      group.push_back(&document.sections[at++]);
    if (group.empty())
      put_plain(document.sections[at++]);
    else
      put_beside(group);
  }
  std::string checks;
  for (const CheckLine& check : document.checks)
    checks += (checks.empty() ? "" : "   ") + check.text + " " + (check.is_ok ? "✓" : "✗") +
              (check.detail.empty() ? "" : " " + check.detail);
  if (!checks.empty()) put(show("checks  " + checks));
  for (const std::string& line : document.footnotes) put(show(line));
  for (const std::string& line : document.notes) put(show("note  " + line));
  return std::move(out_);
}

}  // namespace

std::string to_text(const Document& document, const TextOptions& options) {
  return Writer(options).write(document);
}

}  // namespace glasshead::wire
