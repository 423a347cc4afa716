// Documents as LaTeX: amsmath alone.
#include "wire/latex.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "wire/display.h"
#include "wire/render.h"

namespace glasshead::wire {
namespace {

struct Sign {
  std::uint32_t point;
  const char* text;
};
constexpr std::array<Sign, 29> kSigns{{
    {0xb7, "\\textperiodcentered{}"},
    {0xd7, "$\\times$"},
    {0x2032, "$'$"},
    {0x2192, "$\\to$"},
    {0x221a, "$\\surd$"},
    {0x3a3, "$\\Sigma$"},
    {0x2713, "ok"},
    {0x2717, "\\textbf{no}"},
    {0x2248, "$\\approx$"},
    {0x2212, "$-$"},
    {0x221e, "$\\infty$"},
    {0x2026, "\\dots{}"},
    {0x1d40, "$^{\\top}$"},
    {0x2014, "---"},
    {0xb2, "$^2$"},
    {0x2264, "$\\le$"},
    {0x2265, "$\\ge$"},
    {0x2218, "$\\circ$"},
    {0x25b2, "$\\bigtriangleup$"},
    {0x25bc, "$\\bigtriangledown$"},
    {0x3c3, "$\\sigma$"},
    {0x3bc, "$\\mu$"},
    {0x3b5, "$\\varepsilon$"},
    {0x3b3, "$\\gamma$"},
    {0x3b2, "$\\beta$"},
    {0x3b8, "$\\theta$"},
    {0x3a6, "$\\Phi$"},
    {0x2099, "$_n$"},
    {0x2c7c, "$_j$"},
}};

std::size_t widest(const Document& document) {
  std::size_t columns = 0;
  for (const Section& section : document.sections)
    for (const Table& table : section.tables)
      if (!table.rows.empty()) columns = std::max(columns, table.rows[0].size());
  return columns;
}

std::string label_line(const Table& table) {
  std::string line;
  for (const std::string& label : table.row_labels)
    line += (line.empty() ? "Rows: " : ", ") + latex_escape(label);
  return line;
}

std::string long_rows(const Table& table) {
  std::string out;
  for (std::size_t n = 0; n < table.long_rows.size(); ++n) {
    const Table::LongRow& row = table.long_rows[n];
    const std::string label =
        table.row_labels.empty() ? fmt::format("{}", table.row_index[n]) : table.row_labels[n];
    out += "\\noindent Query " + latex_escape(label) + "\\\\\n\\begin{tabular}{rrlr}\n";
    for (const Table::LongEntry& entry : row.top)
      out += latex_escape(marked(entry.cell)) + fmt::format(" & {} & ", entry.key) +
             latex_escape(entry.label) + " & " + latex_escape(entry.score) + " \\\\\n";
    if (row.other_count > 0)
      out += latex_escape(marked(row.others)) +
             fmt::format(" & & others ({}) & \\\\\n", row.other_count);
    if (!table.sums.empty()) out += latex_escape(table.sums[n].text) + " & & $\\Sigma$ & \\\\\n";
    out += "\\end{tabular}\n\n";
  }
  return out;
}

// Columns of text stay apart.
std::string line_latex(std::string_view line) {
  std::string out;
  while (!line.empty()) {
    const std::size_t gap = std::min(line.find("  "), line.size());
    out += latex_escape(line.substr(0, gap));
    line.remove_prefix(gap);
    if (line.empty()) break;
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    out += "\\hspace*{1em}";
  }
  return out;
}

std::string section_latex(const Section& section) {
  std::string title = section.number > 0 ? fmt::format("{} ", section.number) : std::string();
  title += latex_escape(section.title);
  std::string out = title.empty() ? "\\noindent\n" : "\\paragraph{" + title + "} ";
  out += latex_escape(section.remark);
  if (!section.shape.empty())
    out += (section.remark.empty() ? "" : ", ") + latex_escape(section.shape);
  out += "\n";
  for (const std::string& math : latex_displays(section)) out += "\\[\n" + math + "\\]\n";
  for (const Table& table : section.tables) {
    if (!table.long_rows.empty() && !table.is_repeated) out += long_rows(table);
  }
  for (const Table& table : section.tables) {
    const std::string labels = label_line(table);
    if (labels.empty() || table.is_repeated || !table.long_rows.empty()) continue;
    out += "\\noindent " + labels + "\n";
    break;  // the tables of a section have the same rows
  }
  for (std::size_t n = 0; n < section.lines.size(); ++n)
    out += line_latex(section.lines[n]) + (n + 1 < section.lines.size() ? "\\newline\n" : "\n");
  return out + "\n";
}

}  // namespace

std::string latex_escape(std::string_view text) {
  std::string out;
  for (const std::uint32_t point : code_points(text)) {
    const auto sign =
        std::find_if(kSigns.begin(), kSigns.end(), [&](const Sign& s) { return s.point == point; });
    if (sign != kSigns.end()) {
      out += sign->text;
    } else if (point < 0x80 && std::string_view("#$%&_{}").find(static_cast<char>(point)) !=
                                   std::string_view::npos) {
      out += std::string("\\") + static_cast<char>(point);
    } else if (point == '\\') {
      out += "\\textbackslash{}";
    } else if (point == '~') {
      out += "\\textasciitilde{}";
    } else if (point == '^') {
      out += "\\textasciicircum{}";
    } else if (point == '<' || point == '>' || point == '|' || point == '"') {
      out += point == '<'   ? "\\textless{}"
             : point == '>' ? "\\textgreater{}"
             : point == '|' ? "\\textbar{}"
                            : "\\textquotedbl{}";
    } else if (point < 0x180) {  // what LaTeX reads without a package
      append_code_point(out, point);
    } else {
      out += fmt::format("[U+{:04X}]", point);
    }
  }
  return out;
}

std::string to_latex(const Document& document, const LatexOptions& options) {
  std::string out;
  if (options.is_standalone)
    out +=
        "\\documentclass{article}\n\\usepackage[T1]{fontenc}\n\\usepackage{amsmath}\n"
        "\\emergencystretch=3em\n\\begin{document}\n";
  const std::size_t columns = widest(document);
  constexpr std::size_t kAmsmathColumns = 10;
  if (columns > kAmsmathColumns)
    out += fmt::format("\\setcounter{{MaxMatrixCols}}{{{}}}\n", columns);
  out += "\\subsection*{" + latex_escape(document.name) + "}\n";
  if (!document.question.empty()) out += latex_escape(document.question) + "\n\n";
  out += "\\noindent " + latex_escape(document.title) + "\n\n";
  for (const std::string& line : document.preamble)
    out += "\\noindent " + latex_escape(line) + "\n\n";
  for (const Section& section : document.sections) {
    const bool has_shown = std::any_of(section.tables.begin(), section.tables.end(),
                                       [](const Table& table) { return !table.is_repeated; });
    if (section.number > 0 || has_shown || !section.lines.empty()) out += section_latex(section);
  }
  std::string checks;
  for (const CheckLine& check : document.checks)
    checks += (checks.empty() ? "" : "; ") + latex_escape(check.text) +
              (check.is_ok ? " ok" : " \\textbf{no} " + latex_escape(check.detail));
  if (!checks.empty()) out += "\\noindent Checks: " + checks + "\n\n";
  for (const std::string& line : document.footnotes)
    out += "\\noindent " + latex_escape(line) + "\n\n";
  for (const std::string& line : document.notes)
    out += "\\noindent Note: " + latex_escape(line) + "\n\n";
  if (options.is_standalone) out += "\\end{document}\n";
  return out;
}

}  // namespace glasshead::wire
