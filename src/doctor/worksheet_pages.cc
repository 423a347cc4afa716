// Sheet and key as documents: the same tables, with blanks or with answers.
#include <cmath>
#include <numeric>

#include "doctor/worksheet.h"
#include "doctor/worksheet_search.h"
#include "wire/by_hand.h"
#include "wire/decimal.h"
#include "wire/print.h"

namespace glasshead::doctor {
namespace {

using wire::Cell;
using wire::Section;
using wire::Table;

constexpr const char* kBlank = "____";
constexpr double kWhole = 1e-9;  // 2^s by exp(s·ln 2) is whole but for rounding

index_t rows_of(const TraceTensor& t, std::size_t matrices) {
  const index_t columns = t.shape.back() * static_cast<index_t>(matrices);
  return columns == 0 ? 0 : static_cast<index_t>(t.values.size()) / columns;
}

std::string fraction_text(index_t over, index_t under) {
  const index_t common = std::gcd(over, under);
  if (under == common) return std::to_string(over / common);
  return std::to_string(over / common) + "/" + std::to_string(under / common);
}

class Pages {
 public:
  Pages(const Worksheet& sheet, bool has_answers)
      : sheet_(sheet), options_(sheet.options), has_answers_(has_answers) {}

  wire::Document build();

 private:
  bool has_heads(const std::string& tap) const {
    return options_.level == 3 && tap != "X" && tap != "concat" && tap != "projected" &&
           tap.rfind("W_", 0) != 0;
  }
  // q, k, v of two heads stand side by side before they are split.
  const TraceTensor& value(const std::string& tap) const { return sheet_.trace.at(tap); }
  bool is_hidden(index_t i, index_t j) const {
    return options_.level == 2 && (j > i || j == options_.tokens - 1);
  }

  std::string number_text(double x) const {
    if (options_.has_fractions && std::fabs(x - std::floor(x + 0.5)) < kWhole)
      x = std::floor(x + 0.5);
    return wire::print_number(x, options_.decimals);
  }
  std::string weight_text(std::size_t at, index_t columns) const {
    if (!options_.has_fractions) return number_text(value("weights").values[at]);
    const auto row = at / static_cast<std::size_t>(columns);
    const auto whole = [](double x) { return static_cast<index_t>(std::floor(x + 0.5)); };
    return fraction_text(whole(value("exp").values[at]), whole(value("row_sum").values[row]));
  }

  Cell cell(const std::string& tap, std::size_t at, index_t i, index_t j, index_t columns,
            bool is_blanked) const;
  Table table(const std::string& tap, const std::string& name, index_t head, bool is_blanked) const;
  void add_tables(Section& section, const std::string& tap, const std::string& name,
                  bool is_blanked) const;
  void add_given(wire::Document& document) const;
  void add_stage(wire::Document& document, const Stage& stage) const;
  void add_key_lines(wire::Document& document) const;
  void add_by_hand(wire::Document& document) const;
  std::string task() const;
  std::string scale_line() const;

  const Worksheet& sheet_;
  const WorksheetOptions& options_;
  bool has_answers_;
};

Cell Pages::cell(const std::string& tap, std::size_t at, index_t i, index_t j, index_t columns,
                 bool is_blanked) const {
  Cell cell;
  if (is_blanked) {
    cell.text = kBlank;
    cell.is_blank = true;
    return cell;
  }
  cell.exact = value(tap).values[at];
  cell.text = tap == "weights" ? weight_text(at, columns) : number_text(cell.exact);
  if ((tap == "exp" || tap == "weights") && is_hidden(i, j)) {
    cell.text = "·";
    cell.exact = 0;
    cell.is_hidden = true;
    cell.reason = j > i ? "key after query" : "padding";
  }
  return cell;
}

Table Pages::table(const std::string& tap, const std::string& name, index_t head,
                   bool is_blanked) const {
  const TraceTensor& t = value(tap);
  const bool is_sum = tap == "row_sum";
  const index_t columns = is_sum ? 1 : t.shape.back();
  const index_t rows = is_sum ? options_.tokens : rows_of(t, head >= 0 ? 2 : 1);
  Table out;
  out.tap = tap;
  out.name = name;
  out.shape = {rows, columns};
  if (head >= 0) {
    out.head = head;
    out.leading = "head " + std::to_string(head);
  }
  const bool is_matrix_of_weights = tap.rfind("W_", 0) == 0;
  if (!is_matrix_of_weights) out.row_labels = sheet_.exercise.query_labels;
  if (tap == "scores" || tap == "scaled" || tap == "exp" || tap == "weights")
    out.column_labels = sheet_.exercise.key_labels;
  const index_t first = head > 0 ? head * rows * columns : 0;
  for (index_t i = 0; i < rows; ++i) {
    out.row_index.push_back(i);
    out.rows.emplace_back();
    for (index_t j = 0; j < columns; ++j)
      out.rows.back().push_back(
          cell(tap, static_cast<std::size_t>(first + i * columns + j), i, j, columns, is_blanked));
  }
  return out;
}

void Pages::add_tables(Section& section, const std::string& tap, const std::string& name,
                       bool is_blanked) const {
  if (!has_heads(tap) || value(tap).shape.size() < (tap == "row_sum" ? 2U : 3U)) {
    section.tables.push_back(table(tap, name, -1, is_blanked));
    return;
  }
  for (index_t head = 0; head < 2; ++head)
    section.tables.push_back(table(tap, name, head, is_blanked));
}

void Pages::add_given(wire::Document& document) const {
  Section given;
  given.title = "given";
  given.layout = Section::Layout::compact;
  for (const auto& [tap, tensor] : sheet_.exercise.inputs) {
    std::string name = tap;
    if (name == "q" || name == "k" || name == "v")
      name = std::string(1, static_cast<char>(name[0] - 'a' + 'A'));
    add_tables(given, tap, name, false);
  }
  if (options_.level == 3 && options_.has_fractions) given.layout = Section::Layout::plain;
  document.sections.push_back(std::move(given));
}

void Pages::add_stage(wire::Document& document, const Stage& stage) const {
  const bool is_asked = is_blank(options_, stage);
  Section section;
  section.number = static_cast<int>(document.sections.size());
  section.title = stage.title;
  section.layout = Section::Layout::beside;
  add_tables(section, stage.tap, "", is_asked && !has_answers_);
  section.shape = wire::print_number(static_cast<double>(section.tables[0].shape[0]), 0) + "×" +
                  wire::print_number(static_cast<double>(section.tables[0].shape[1]), 0);
  document.sections.push_back(std::move(section));
}

std::string Pages::scale_line() const {
  if (options_.has_fractions)
    return "Use 2ˢ for exp(s): no scale and no calculator. Write weights as fractions.";
  const double scale = sheet_.trace.steps.empty()
                           ? 1
                           : number(*find_step(paper_steps(sheet_.exercise), "scaled"), "scale", 1);
  return scale == 1 ? "Scale 1/√d_k = 1/√1 = 1." : "Scale 1/√d_k = 1/√4 = 0.5.";
}

std::string Pages::task() const {
  const std::string last = sheet_.exercise.query_labels.back();
  if (options_.level == 1)
    return "One attention head over " + std::to_string(options_.tokens) +
           " tokens. Every token may attend to every token.";
  if (options_.level == 2)
    return "One attention head over " + std::to_string(options_.tokens) + " tokens, causal, and " +
           last + " is filler: no token may attend to a later one, none to " + last + ".";
  return "Two attention heads over " + std::to_string(options_.tokens) +
         " tokens; their results stand side by side and are multiplied by W_O.";
}

// "weights B A: 0.36": where rounding every step ends on another last digit.
void Pages::add_by_hand(wire::Document& document) const {
  if (options_.has_fractions) return;
  const Trace hand = wire::run_by_hand(sheet_.exercise, {options_.decimals, false}).rounded;
  Section section;
  section.title = "by hand";
  section.remark = "rounding every step, these come out one unit off, and count as right";
  for (const Stage& stage : stages(options_)) {
    if (!is_blank(options_, stage)) continue;
    const TraceTensor& by_hand = hand.at(stage.tap);
    const TraceTensor& exact = value(stage.tap);
    const std::string tap = stage.tap;
    const index_t columns = tap == "row_sum" ? 1 : exact.shape.back();
    for (std::size_t n = 0; n < exact.values.size(); ++n) {
      const std::string wrong = number_text(by_hand.values[n]);
      const double right = wire::round_half_up(exact.values[n], options_.decimals);
      if (right == by_hand.values[n]) continue;
      const auto at = static_cast<index_t>(n);
      const index_t row = at / columns;
      const index_t token = row % options_.tokens;
      std::string line = std::string(stage.name) + " ";
      if (row >= options_.tokens || has_heads(tap))
        line += "head " + std::to_string(row / options_.tokens) + " ";
      line += sheet_.exercise.query_labels[static_cast<std::size_t>(token)] + ", column " +
              std::to_string(at % columns) + ": " + wrong + " for " + number_text(exact.values[n]);
      section.lines.push_back(line);
    }
  }
  if (!section.lines.empty()) document.sections.push_back(std::move(section));
}

// "B is (12.6, 16.8): mask forgotten"
void Pages::add_key_lines(wire::Document& document) const {
  Section wrong;
  wrong.title = "what a wrong answer means";
  wrong.remark = "row of " + sheet_.result;
  for (const WrongAnswer& answer : sheet_.wrong) {
    std::string line = sheet_.exercise.query_labels[static_cast<std::size_t>(answer.row)] + " is (";
    for (std::size_t n = 0; n < answer.values.size(); ++n)
      line += (n > 0 ? ", " : "") + answer.values[n];
    line += "): ";
    for (std::size_t n = 0; n < answer.titles.size(); ++n)
      line += (n > 0 ? ", or " : "") + answer.titles[n];
    wrong.lines.push_back(line);
  }
  document.sections.push_back(std::move(wrong));
}

wire::Document Pages::build() {
  wire::Document document;
  const std::string number = std::to_string(options_.seed);
  document.name = "worksheet-" + number;
  document.title = std::string(has_answers_ ? "Key" : "Worksheet") + " " + number + " · level " +
                   std::to_string(options_.level);
  document.preamble = {task(), scale_line()};
  std::string asked;
  const std::vector<Stage> all = stages(options_);
  for (const Stage& stage : all)
    if (is_blank(options_, stage)) asked += (asked.empty() ? "" : ", ") + std::string(stage.name);
  if (!has_answers_) {
    document.preamble.push_back(
        "Fill in the blanks (" + asked + ")" +
        (options_.has_fractions
             ? "."
             : ", to " + std::to_string(options_.decimals) +
                   " decimals. Going on with rounded numbers is fine: the last digit may differ by "
                   "one.") +
        (options_.level == 2 ? " A hidden pair gets a dot." : ""));
  }
  add_given(document);
  for (const Stage& stage : all) add_stage(document, stage);
  if (has_answers_) {
    add_by_hand(document);
    add_key_lines(document);
  }
  return document;
}

}  // namespace

wire::Document sheet_document(const Worksheet& sheet) { return Pages(sheet, false).build(); }
wire::Document key_document(const Worksheet& sheet) { return Pages(sheet, true).build(); }

}  // namespace glasshead::doctor
