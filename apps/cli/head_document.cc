#include "cli/head_document.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "wire/decimal.h"
#include "wire/display.h"
#include "wire/print.h"

namespace glasshead::cli {
namespace {

constexpr index_t kSmallMatrix = wire::kLongRow;  // keys or coordinates of one that is shown whole
constexpr std::size_t kWideRow = 64;              // coordinates of a row that is shown whole
constexpr std::size_t kLargest = 8;               // of a wider row

// "4 and 5", "4 to 7"
std::string shared_words(const ModelHead& head) {
  const index_t share = head.heads / head.kv_heads;
  if (share == 1) return "has keys and values of its own";
  const index_t first = head.kv_head * share;
  return fmt::format("reads key/value head {} of {}, as heads {} {} {} do", head.kv_head,
                     head.kv_heads, first, share == 2 ? "and" : "to", first + share - 1);
}

std::string place_words(const ModelHead& head) {
  return fmt::format("query {}: {} · head {} of {} {} · counted from 0", head.at.query,
                     wire::escape_controls(head.shown.query_labels[0]), head.at.head, head.heads,
                     shared_words(head));
}

wire::Table row_table(const std::string& tap, const std::string& name,
                      const std::vector<double>& row, const ModelHead& head,
                      const wire::DocumentOptions& options) {
  wire::Table table;
  table.row_labels = wire::shown_labels(head.shown.query_labels);
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
    given.tables.insert(given.tables.begin(), row_table("q_before", "q before its position",
                                                        head.q_before, head, options));
  if (options.print.is_full) return;
  std::string left_out;
  for (wire::Table& table : given.tables) {
    if (table.tap == "q" || table.tap == "q_before") continue;
    table.is_repeated = table.tap == "W_O" || is_large(table);
    if (table.is_repeated) left_out += (left_out.empty() ? "" : ", ") + table.tap;
  }
  if (!left_out.empty())
    given.lines.push_back("left out: " + left_out + " (--full shows all, --steps NAME one)");
}

// "576 coordinates, of length 3.9512; the largest [43] 0.6461, ..."
std::string row_words(const std::vector<double>& row, int decimals) {
  std::vector<std::size_t> order(row.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const double x = std::fabs(row[a]), y = std::fabs(row[b]);
    return x != y ? x > y : a < b;
  });
  double squares = 0;
  for (const double x : row) squares += x * x;
  std::string words = fmt::format("{} coordinates, of length {}; the largest", row.size(),
                                  wire::print_alone(std::sqrt(squares), decimals));
  for (std::size_t n = 0; n < std::min(kLargest, order.size()); ++n)
    words += fmt::format("{} [{}] {}", n == 0 ? "" : ",", order[n],
                         wire::print_number(row[order[n]], decimals));
  return words;
}

// A model's width fills screens: its largest coordinates are told, and --full shows all.
void arrange_projected(wire::Section& projected, const std::vector<double>& row,
                       const wire::DocumentOptions& options) {
  projected.remark = "what W_O makes of it: the head's share of what attention adds";
  if (row.size() <= kWideRow || options.print.is_full) return;
  for (wire::Table& table : projected.tables) table.is_repeated = true;
  projected.lines.push_back(row_words(row, options.print.decimals));
  projected.wraps_lines = true;
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
      arrange_projected(section, trace.at("projected").values, options);
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
