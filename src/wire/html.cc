// Documents as one HTML page: no scripts, nothing fetched.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "wire/decimal.h"
#include "wire/document_build.h"
#include "wire/render.h"

namespace glasshead::wire {
namespace {

// Light and dark by the reader's setting; contrast at least 4.5:1 in both; hidden cells are
// hatched, so colour is never the only sign.
constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--soft:#59636e;--line:#d1d9e0;--band:#f6f8fa;--heat:230,159,0;--bad:#b3261e}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--paper:#0d1117;--soft:#9aa5b1;--line:#3d444d;--band:#161b22;--heat:190,120,0;--bad:#ff8b82}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:76rem;margin:0 auto;padding:1.5rem 1rem 3rem}
h1{font-size:1.5rem;margin:0 0 .25rem}
h2{font-size:1.05rem;margin:0 0 .35rem}
h2 .formula{font-weight:400;margin-left:.6rem;white-space:pre-wrap}
p{margin:.2rem 0}
.soft,.shape{color:var(--soft)}
section{border-top:1px solid var(--line);padding:.8rem 0;margin-top:.8rem}
.steps{display:flex;flex-wrap:wrap;gap:0 2.5rem}
.steps section{flex:0 1 auto}
.tables{display:flex;flex-wrap:wrap;gap:1rem 2rem;align-items:flex-start}
.scroll{overflow-x:auto;max-width:100%}
table{border-collapse:collapse;font:15px/1.4 ui-monospace,Menlo,Consolas,monospace;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--soft);font-family:system-ui,sans-serif;padding-bottom:.15rem}
th{font-weight:600;text-align:right;padding:.2rem .6rem;background:var(--band)}
th[scope=row]{text-align:left}
td{text-align:right;padding:.2rem .6rem;border:1px solid var(--line);min-width:2.2rem;white-space:nowrap}
td.w{background:rgba(var(--heat),calc(var(--w,0)*.55))}
td.hidden{color:var(--soft);background:repeating-linear-gradient(135deg,var(--band) 0 5px,var(--paper) 5px 10px)}
td.blank{min-width:5rem;color:transparent}
td.note{text-align:left;border:0}
td.sum{border:0;padding-left:.9rem}
.bad{color:var(--bad);font-weight:700}
)";

std::string class_of(const Table& table, const Cell& cell) {
  if (cell.is_hidden) return " class=\"hidden\"";
  if (cell.is_blank) return " class=\"blank\"";
  return table.sums.empty() ? "" : " class=\"w\"";
}

// "weights, query B, key A, 0.3302"
std::string spoken(const Table& table, std::size_t n, std::size_t j, const Cell& cell) {
  std::string words = leaf_of(table.tap);
  if (!table.leading.empty()) words += ", " + table.leading;
  words += ", row ";
  words += table.row_labels.empty() ? fmt::format("{}", table.row_index[n]) : table.row_labels[n];
  words += ", column ";
  words += table.column_labels.empty() ? fmt::format("{}", j) : table.column_labels[j];
  return words + ", " + marked(cell);
}

std::string exact_text(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x < 0 ? "-inf" : "inf";
  return shortest(x);
}

std::string cell_html(const Table& table, std::size_t n, std::size_t j) {
  const Cell& cell = table.rows[n][j];
  std::string out = "<td data-testid=\"" + xml_escape(cell_id(table, n, static_cast<index_t>(j))) +
                    "\"" + class_of(table, cell);
  if (cell.is_hidden) {
    const std::string why = cell.reason.empty() ? std::string() : ": " + cell.reason;
    out += " aria-label=\"" + xml_escape("hidden" + why) + "\" title=\"" +
           xml_escape("hidden" + why) + "\"";
  } else if (cell.is_blank) {
    out += " aria-label=\"" + xml_escape(spoken(table, n, j, {})) + "blank\"";
  } else {
    out += " data-exact=\"" + exact_text(cell.exact) + "\"";
    if (cell.moved != 0) out += fmt::format(" data-moved=\"{}\"", cell.moved);
    if (!table.sums.empty() && cell.exact >= 0 && cell.exact <= 1)
      out += " style=\"--w:" + fixed(cell.exact, 3) + "\"";
    out += " aria-label=\"" + xml_escape(spoken(table, n, j, cell)) + "\"";
  }
  return out + ">" + xml_escape(marked(cell)) + "</td>";
}

std::string sum_html(const Table& table, std::size_t n) {
  const RowSum& sum = table.sums[n];
  const std::string id = xml_escape(row_sum_id(table, n));
  std::string out = "<td class=\"sum\" data-testid=\"" + id + "\" data-exact=\"" +
                    exact_text(sum.exact) + "\">" + xml_escape(sum.text);
  if (!sum.is_empty)
    out += " <span data-testid=\"" + id + "-ok\"" + (sum.is_ok ? ">✓" : " class=\"bad\">✗") +
           "</span>";
  return out + "</td>";
}

std::string caption_of(const Table& table) {
  std::string name = table.name;
  if (!table.leading.empty()) name += (name.empty() ? "" : ", ") + table.leading;
  if (name.empty()) return {};
  return "<caption>" + xml_escape(name) + "</caption>";
}

std::string long_html(const Table& table) {
  std::string out;
  for (std::size_t n = 0; n < table.long_rows.size(); ++n) {
    const Table::LongRow& row = table.long_rows[n];
    const std::string label =
        table.row_labels.empty() ? fmt::format("{}", table.row_index[n]) : table.row_labels[n];
    out += "<div class=\"scroll\"><table><caption>" +
           xml_escape((table.leading.empty() ? "" : table.leading + ", ") + "query " + label) +
           "</caption><thead><tr><th scope=\"col\">value</th><th scope=\"col\">key</th>"
           "<th scope=\"col\">token</th><th scope=\"col\">q·k</th></tr></thead><tbody>\n";
    for (const Table::LongEntry& entry : row.top)
      out += "<tr><td data-testid=\"" + xml_escape(cell_id(table, n, entry.key)) +
             "\" data-exact=\"" + exact_text(entry.cell.exact) + "\">" +
             xml_escape(marked(entry.cell)) + fmt::format("</td><td>{}</td>", entry.key) +
             "<td class=\"note\">" + xml_escape(entry.label) + "</td><td>" +
             xml_escape(entry.score) + "</td></tr>\n";
    if (row.other_count > 0)
      out += "<tr><td>" + xml_escape(marked(row.others)) +
             fmt::format("</td><td></td><td class=\"note\">others ({})</td><td></td></tr>\n",
                         row.other_count);
    if (!table.sums.empty())
      out += "<tr>" + sum_html(table, n) + "<td></td><td class=\"note\">Σ</td><td></td></tr>\n";
    out += "</tbody></table></div>\n";
  }
  return out;
}

std::string table_html(const Table& table) {
  if (!table.long_rows.empty()) return long_html(table);
  if (table.rows.empty()) return {};
  std::string out = "<div class=\"scroll\"><table>" + caption_of(table);
  const bool has_labels = !table.row_labels.empty();
  if (!table.column_labels.empty()) {
    out += "<thead><tr>";
    if (has_labels) out += "<td class=\"note\"></td>";
    for (const std::string& label : table.column_labels)
      out += "<th scope=\"col\">" + xml_escape(label) + "</th>";
    if (!table.sums.empty()) out += "<th scope=\"col\">Σ</th>";
    out += "</tr></thead>";
  }
  out += "<tbody>\n";
  for (std::size_t n = 0; n < table.rows.size(); ++n) {
    out += "<tr>";
    if (has_labels) out += "<th scope=\"row\">" + xml_escape(table.row_labels[n]) + "</th>";
    for (std::size_t j = 0; j < table.rows[n].size(); ++j) out += cell_html(table, n, j);
    if (!table.sums.empty()) out += sum_html(table, n);
    if (!table.row_notes.empty())
      out += "<td class=\"note\">" + xml_escape(table.row_notes[n]) + "</td>";
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string section_html(const Section& section) {
  std::string out = "<section";
  if (section.number > 0) out += fmt::format(" id=\"step-{}\"", section.number);
  out += "><h2>";
  if (section.number > 0) out += fmt::format("{} ", section.number);
  out += xml_escape(section.title);
  if (!section.formula.empty())
    out += "<span class=\"formula\">" + xml_escape(section.formula) + "</span>";
  out += "</h2>\n";
  std::string words = section.remark;
  if (!section.shape.empty()) words += (words.empty() ? "" : " · ") + section.shape;
  if (!words.empty()) out += "<p class=\"shape\">" + xml_escape(words) + "</p>\n";
  out += "<div class=\"tables\">\n";
  for (const Table& table : section.tables) out += table_html(table);
  out += "</div>\n";
  for (const std::string& line : section.lines) out += "<p>" + xml_escape(line) + "</p>\n";
  return out + "</section>\n";
}

std::string checks_html(const Document& document) {
  std::string out = "<section><h2>Checks</h2>\n";
  for (const CheckLine& check : document.checks)
    out += "<p data-testid=\"check-" + check.id + "\">" + xml_escape(check.text) +
           (check.is_ok ? " ✓" : " <span class=\"bad\">✗</span> " + xml_escape(check.detail)) +
           "</p>\n";
  for (const std::string& line : document.footnotes)
    out += "<p class=\"soft\">" + xml_escape(line) + "</p>\n";
  for (const std::string& line : document.notes) out += "<p>Note: " + xml_escape(line) + "</p>\n";
  return out + "</section>\n";
}

}  // namespace

std::string to_html(const Document& document) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>" +
      xml_escape(document.name) + " · Glasshead</title>\n<style>" + kStyle +
      "</style>\n</head>\n<body>\n<main data-ready=\"true\">\n<h1>" +
      xml_escape(document.question.empty() ? document.name : document.question) + "</h1>\n" +
      "<p>" + xml_escape(document.title) + "</p>\n";
  for (const std::string& line : document.preamble)
    out += "<p class=\"soft\">" + xml_escape(line) + "</p>\n";
  bool is_row_open = false;
  for (const Section& section : document.sections) {
    const bool is_beside = section.layout == Section::Layout::beside;
    if (is_beside && !is_row_open) out += "<div class=\"steps\">\n";
    if (!is_beside && is_row_open) out += "</div>\n";
    is_row_open = is_beside;
    out += section_html(section);
  }
  if (is_row_open) out += "</div>\n";
  if (!document.checks.empty() || !document.footnotes.empty() || !document.notes.empty())
    out += checks_html(document);
  return out + "</main>\n</body>\n</html>\n";
}

}  // namespace glasshead::wire
