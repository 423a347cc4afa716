#include "cli/head_document.h"

#include <algorithm>

#include <fmt/format.h>

#include "wire/decimal.h"
#include "wire/display.h"
#include "wire/print.h"

namespace glasshead::cli {
namespace {

// Keys, or coordinates, of a matrix that is shown whole.
constexpr index_t kSmallMatrix = wire::kLongRow;

std::string shared_words(const ModelHead& head) {
  const index_t share = head.heads / head.kv_heads;
  if (share == 1) return "with keys and values of its own";
  const index_t first = head.kv_head * share;
  return fmt::format("reads key/value head {} of {}, as heads {} to {} do", head.kv_head,
                     head.kv_heads, first, first + share - 1);
}

std::string place_words(const ModelHead& head) {
  return fmt::format("{} · head {} of {}, {} · query {}: {} · all counted from 0", head.place,
                     head.at.head, head.heads, shared_words(head), head.at.query,
                     wire::escape_controls(head.shown.query_labels[0]));
}

wire::Table row_table(const std::string& tap, const std::string& name,
                      const std::vector<double>& row, const wire::DocumentOptions& options) {
  wire::Table table;
  table.tap = tap;
  table.name = name;
  table.row_index = {0};
  table.shape = {1, static_cast<index_t>(row.size())};
  const bool is_scientific = wire::needs_scientific(row, options.print.decimals);
  std::vector<wire::Cell>& cells = table.rows.emplace_back();
  for (const double x : row) {
    wire::Cell& cell = cells.emplace_back();
    cell.exact = x;
    cell.text = wire::print_number(x, options.print.decimals, is_scientific);
  }
  return table;
}

bool is_large(const wire::Table& table) {
  return std::any_of(table.shape.begin(), table.shape.end(),
                     [](index_t extent) { return extent > kSmallMatrix; });
}

// Of what the head was given the query's row stands first, also as it was before it was normed and
// turned; matrices that would fill screens are left to --full.
void arrange_given(wire::Section& given, const ModelHead& head,
                   const wire::DocumentOptions& options) {
  if (!head.q_before.empty())
    given.tables.insert(given.tables.begin(),
                        row_table("q_before", "q before its position", head.q_before, options));
  if (options.print.is_full) return;
  std::string left_out;
  for (wire::Table& table : given.tables) {
    if (table.tap == "q" || table.tap == "q_before") continue;
    table.is_repeated = table.tap == "W_O" || is_large(table);
    if (table.is_repeated) left_out += (left_out.empty() ? "" : ", ") + table.tap;
  }
  if (!left_out.empty())
    given.lines.push_back(left_out + ": --full shows them, --steps NAME one of them");
}

std::string error_words(const HeadComparison& found) {
  return fmt::format(
      "the model computed this head in f32: its weights differ from these by about {}, its out "
      "by about {}",
      wire::print_number(found.weights, 1, true), wire::print_number(found.out, 1, true));
}

}  // namespace

void add_head(wire::Document& document, const ModelHead& head, const Trace& trace,
              const wire::DocumentOptions& options, bool is_own) {
  document.preamble.insert(document.preamble.begin(), place_words(head));
  for (wire::Section& section : document.sections) {
    if (section.title == "given") arrange_given(section, head, options);
    if (section.title == "projected")
      section.remark = "what W_O makes of it: the head's share of what attention adds";
  }
  if (!is_own) return;
  const HeadComparison found = compare(head, trace);
  document.checks.push_back({"model-run", "the model's own run agrees", found.agrees,
                             found.agrees ? "" : error_words(found)});
  document.notes.push_back(error_words(found));
  document.note_taps.push_back("weights");
}

void write_head(wire::JsonWriter& json, const ModelHead& head, bool is_own) {
  json.key("model").begin_object();
  json.key("place").value(head.place).key("head").value(head.at.head);
  json.key("heads").value(head.heads).key("kv_head").value(head.kv_head);
  json.key("kv_heads").value(head.kv_heads).key("query").value(head.at.query);
  if (!head.q_before.empty()) json.key("q_before").values(std::span<const double>(head.q_before));
  if (is_own) {
    const HeadComparison found = compare(head, wire::run_case(head.shown));
    json.key("weights").values(std::span<const double>(head.weights));
    json.key("out").values(std::span<const double>(head.out));
    json.key("weights_differ_by").value(found.weights).key("out_differs_by").value(found.out);
    json.key("agrees").value(found.agrees);
  }
  json.end_object();
}

}  // namespace glasshead::cli
