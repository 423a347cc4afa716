// docs/mistakes.md: the table with numbers computed on one case.
#include <string>
#include <vector>

#include "doctor/catalogue.h"
#include "doctor/comparison.h"
#include "doctor/mistake_document.h"
#include "wire/document_tables.h"
#include "wire/print.h"
#include "wire/render.h"

namespace glasshead::doctor {
namespace {

std::string label(const wire::Case& c, index_t row) {
  const auto at = static_cast<std::size_t>(row);
  return at < c.query_labels.size() ? wire::markdown_escape(c.query_labels[at])
                                    : std::to_string(row);
}

// "B 0.1978 0.4011 · Σ 0.5989 ✗"
std::string weights_line(const wire::Case& c, const wire::Table& table, std::size_t row) {
  std::string line = label(c, table.row_index[row]);
  const wire::RowSum& sum = table.sums[row];
  if (sum.is_empty) return line + " empty";
  for (const wire::Cell& cell : table.rows[row]) line += " " + wire::marked(cell);
  if (!sum.is_ok) line += " (Σ " + sum.text + " ✗)";
  return line;
}

std::string out_line(const wire::Case& c, const wire::Table& table, std::size_t row) {
  std::string line = label(c, table.row_index[row]) + " (";
  for (std::size_t j = 0; j < table.rows[row].size(); ++j)
    line += (j > 0 ? ", " : "") + table.rows[row][j].text;
  return line + ")";
}

// The rows that differ from the right run, as `make` prints them; "right" for those that do not.
template <class Make>
std::string differing_rows(const wire::Table& table, const TraceTensor& wrong,
                           const TraceTensor& right, const Make& make) {
  std::string text, same;
  for (std::size_t n = 0; n < table.rows.size(); ++n) {
    if (is_same_row(wrong, right, 0, table.row_index[n])) {
      same += (same.empty() ? "" : " ") + make(n).substr(0, make(n).find(' '));
      continue;
    }
    text += (text.empty() ? "" : "; ") + make(n);
  }
  if (!text.empty() && !same.empty()) text += "; " + same + " right";
  return text;
}

std::string numbers(const MistakenRun& run, const wire::Case& c) {
  if (run.fit == Fit::stops) return "stops: " + run.stops_because;
  const std::string hidden = why_hidden(run);
  if (!hidden.empty()) return hidden;
  const wire::Document document = mistake_document(run, c, {});
  const wire::Table& weights = document.sections.at(0).tables.at(0);
  const wire::Table& out = document.sections.at(2).tables.at(0);
  std::string text = differing_rows(weights, weights_used(run.wrong), weights_used(run.right),
                                    [&](std::size_t n) { return weights_line(c, weights, n); });
  text = text.empty() ? "weights right" : "weights " + text;
  const std::string outs = differing_rows(out, attention_out(run.wrong), attention_out(run.right),
                                          [&](std::size_t n) { return out_line(c, out, n); });
  return text + ". Output " + (outs.empty() ? "right" : outs);
}

std::string same_as(const Mistake& mistake) {
  std::string hidden, others;
  for (const Coincidence& same : mistake.coincidences()) {
    if (std::string_view(same.id) == "right")
      hidden += std::string(hidden.empty() ? "" : "; ") + same.when;
    else
      others += std::string("Gives the numbers of `") + same.id + "` when " + same.when + ".\n";
  }
  std::string text;
  if (!hidden.empty()) text += "Cannot be seen when " + hidden + ".\n";
  text += others;
  return text.empty() ? text : text + "\n";
}

std::string entry(const Mistake& mistake, const wire::Case& c) {
  std::string text = "## `" + id_with_parameter(mistake) + "`: " + mistake.title + "\n\n";
  text += std::string("What is done: ") + mistake.done + ".\n\n";
  text += std::string("Tell-tale: ") + mistake.tell_tale + ".\n\n";
  std::vector<Problem> problems;
  const std::optional<MistakenRun> run = run_mistake(mistake.id, c, problems);
  const std::string name = *mistake.parameter == '\0' ? ""
                                                      : std::string(" with ") + mistake.parameter +
                                                            " = " + mistake.default_parameter;
  text += "On `" + c.name + "`" + name + ": " +
          (run ? numbers(*run, c) : "does not apply: " + problems.front().what) + ".\n\n";
  text += std::string("```python\n") + mistake.cause + "   # as it is written\n" +
          mistake.fix_code + "   # " + mistake.fix + "\n```\n\n";
  return text + same_as(mistake);
}

// A cell of a table: no end of it, no line's end.
std::string code_cell(const char* code) {
  std::string text;
  for (const char* c = code; *c != '\0'; ++c)
    text += *c == '|' ? std::string("\\|") : std::string(1, *c);
  return "`" + text + "`";
}

constexpr const char* kDoctorsColumns =
    "| id | what is done | as it is written | as it should be |\n|:--|:--|:--|:--|\n";

std::string doctors_row(const Fault& fault, const Words& words) {
  return std::string("| `") + fault.id +
         (*words.parameter == '\0' ? "" : std::string(":") + words.parameter) + "` | " +
         wire::markdown_escape(words.done) + " | " + code_cell(words.cause) + " | " +
         code_cell(words.fix_code) + ": " + wire::markdown_escape(words.fix) + " |\n";
}

// What the doctor knows beside the mistakes above: entries without a traced run.
std::string doctors_page() {
  std::string text =
      "## Told by `glasshead doctor`\n\nThe doctor knows all of the above, and these, which need "
      "tensors that have the structure: heads, tiles, windows, positions.\n\n";
  text += kDoctorsColumns;
  for (const Fault* fault : catalogue())
    if (find_mistake(fault->id) == nullptr) text += doctors_row(*fault, words_of(*fault));
  text +=
      "\nWhere the queries of a call stand behind cached keys, it has other words for these:\n\n";
  text += kDoctorsColumns;
  for (const Fault* fault : catalogue())
    if (fault->with_cache.title != nullptr) text += doctors_row(*fault, fault->with_cache);
  text +=
      "\nNot among them, since q, k and v are taken as they are after their projections and out as "
      "it is before the next one:\n"
      "`projection-bias-missing` and `out-projection-missing`. That every row of a head is off by "
      "one vector, as where v's\nbias is lost, is said; k's bias shifts a row's scores alike, so "
      "that lse alone shows its loss.\n";
  return text;
}

}  // namespace

std::string mistakes_markdown(const wire::Case& c) {
  std::string text =
      "# Mistakes\n\n"
      "What people get wrong when they write attention, what it does to the numbers, and how to "
      "tell. Each is an\nedit of the list of steps, so that `glasshead trace CASE --mistake ID` "
      "shows it on any case, beside the right run.\nThe numbers here are those of the case " +
      ("`" + c.name + "`") + ".\n\nMade by `glasshead trace " + c.name +
      " --mistake list --format md` from the table in `src/doctor/mistakes.cc`; not written by "
      "hand.\n\n| id | what is done |\n|:--|:--|\n";
  for (const Mistake& mistake : mistakes())
    text += "| `" + id_with_parameter(mistake) + "` | " + std::string(mistake.done) + " |\n";
  text += "\nThe right run, for comparison:\n\n";
  const Trace right = wire::run_case(c);
  const wire::AttentionPart part = shown_part(right, right);
  wire::TableSource source;
  source.tap = "weights";
  source.symbol = "A";
  source.value = &weights_used(right);
  source.kind = wire::TableKind::weights;
  source.part = &part;
  source.row_labels = c.query_labels;
  source.column_labels = c.key_labels;
  const std::vector<wire::Table> tables = make_tables(source, c, {});
  for (const wire::Table& table : tables)
    for (std::size_t n = 0; n < table.rows.size(); ++n)
      text += "- " + weights_line(c, table, n) + "\n";
  text += "\n";
  for (const Mistake& mistake : mistakes()) text += entry(mistake, c);
  return text + doctors_page();
}

}  // namespace glasshead::doctor
