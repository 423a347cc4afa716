// Documents as Markdown: pipe tables, or $$ blocks.
#include <fmt/format.h>

#include "wire/latex.h"
#include "wire/render.h"

namespace glasshead::wire {
namespace {

std::string pipe_row(const std::vector<std::string>& fields) {
  std::string line = "|";
  for (const std::string& field : fields) line += " " + field + " |";
  return line + "\n";
}

std::string sum_text(const RowSum& sum) {
  return sum.is_empty ? sum.text : sum.text + (sum.is_ok ? " ✓" : " ✗");
}

std::string corner(const Table& table) {
  return table.column_labels.empty()                 ? " "
         : table.sums.empty() || table.symbol == "A" ? "query ＼ key"
                                                     : "row ＼ word";
}

std::string table_name(const Table& table) {
  std::string name = table.name;
  if (!table.leading.empty()) name += (name.empty() ? "" : ", ") + table.leading;
  return name;
}

std::string long_table(const Table& table) {
  std::string out;
  for (std::size_t n = 0; n < table.long_rows.size(); ++n) {
    const Table::LongRow& row = table.long_rows[n];
    const std::string label = table.row_labels.empty() ? fmt::format("{}", table.row_index[n])
                                                       : markdown_escape(table.row_labels[n]);
    out += "Query **" + label + "**\n\n| value | key | token | q·k |\n|--:|--:|:--|--:|\n";
    for (const Table::LongEntry& entry : row.top)
      out += pipe_row({marked(entry.cell), fmt::format("{}", entry.key),
                       markdown_escape(entry.label), entry.score});
    if (row.other_count > 0)
      out += pipe_row({marked(row.others), "", fmt::format("others ({})", row.other_count), ""});
    if (!table.sums.empty()) out += pipe_row({sum_text(table.sums[n]), "", "Σ", ""});
    out += "\n";
  }
  return out;
}

std::string table_text(const Table& table) {
  if (!table.long_rows.empty()) return long_table(table);
  if (table.rows.empty()) return {};
  std::vector<std::string> header{corner(table)};
  std::string rule = "|:--|";
  for (std::size_t j = 0; j < table.rows[0].size(); ++j) {
    header.push_back(table.column_labels.empty() ? fmt::format("{}", j)
                                                 : markdown_escape(table.column_labels[j]));
    rule += "--:|";
  }
  if (!table.sums.empty()) header.emplace_back("Σ"), rule += "--:|";
  if (!table.row_notes.empty()) header.emplace_back(" "), rule += ":--|";
  std::string out = pipe_row(header) + rule + "\n";
  for (std::size_t n = 0; n < table.rows.size(); ++n) {
    const std::string label = table.row_labels.empty() ? fmt::format("{}", table.row_index[n])
                                                       : markdown_escape(table.row_labels[n]);
    std::vector<std::string> fields{"**" + label + "**"};
    for (const Cell& cell : table.rows[n]) fields.push_back(marked(cell));
    if (!table.sums.empty()) fields.push_back(sum_text(table.sums[n]));
    if (!table.row_notes.empty()) fields.push_back(table.row_notes[n]);
    out += pipe_row(fields);
  }
  return out + "\n";
}

std::string section_text(const Section& section, const MarkdownOptions& options) {
  const std::string title = section.number > 0 ? fmt::format("{} ", section.number) : std::string();
  std::string out = "### " + title + markdown_escape(section.title) + "\n\n";
  std::string words = markdown_escape(section.formula);
  for (const std::string* more : {&section.remark, &section.shape})
    if (!more->empty()) words += (words.empty() ? "" : " · ") + markdown_escape(*more);
  if (!words.empty()) out += words + "\n\n";
  if (options.has_math)
    for (const std::string& math : latex_displays(section)) out += "$$\n" + math + "$$\n\n";
  for (const Table& table : section.tables) {
    const bool is_in_math = options.has_math && table.long_rows.empty();
    if (table.is_repeated || is_in_math) continue;
    const std::string name = table_name(table);
    if (!name.empty()) out += "*" + markdown_escape(name) + "*\n\n";
    out += table_text(table);
  }
  for (const std::string& line : section.lines) out += markdown_escape(line) + "\n\n";
  return out;
}

}  // namespace

std::string markdown_escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else if (std::string_view("\\`*_{}[]()#+-!|>~$").find(c) != std::string_view::npos)
      out += std::string("\\") + c;
    else
      out += c;
  }
  return out;
}

std::string to_markdown(const Document& document, const MarkdownOptions& options) {
  std::string out = "## " + markdown_escape(document.title) + "\n\n";
  if (!document.question.empty()) out += markdown_escape(document.question) + "\n\n";
  for (const std::string& line : document.preamble) out += markdown_escape(line) + "\n\n";
  for (const Section& section : document.sections) {
    bool has_shown = !section.lines.empty();
    for (const Table& table : section.tables) has_shown = has_shown || !table.is_repeated;
    if (has_shown || section.number > 0) out += section_text(section, options);
  }
  std::string checks;
  for (const CheckLine& check : document.checks)
    checks += (checks.empty() ? "" : " · ") + check.text + (check.is_ok ? " ✓" : " ✗ ") +
              markdown_escape(check.detail);
  if (!checks.empty()) out += "Checks: " + checks + "\n\n";
  for (const std::string& line : document.footnotes) out += markdown_escape(line) + "\n\n";
  for (const std::string& line : document.notes) out += "> Note: " + markdown_escape(line) + "\n\n";
  out.pop_back();  // one line end at the end
  return out;
}

}  // namespace glasshead::wire
