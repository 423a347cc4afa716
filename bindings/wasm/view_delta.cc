#include "wasm/view_delta.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "wire/document_json.h"

namespace glasshead::wasm {
namespace {

using wire::Cell;
using wire::Document;
using wire::JsonWriter;
using wire::RowSum;
using wire::Section;
using wire::Table;

bool are_same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

bool is_same(const Cell& a, const Cell& b) {
  return are_same_bits(a.exact, b.exact) && a.text == b.text && a.is_hidden == b.is_hidden &&
         a.is_blank == b.is_blank && a.reason == b.reason && a.moved == b.moved &&
         a.before == b.before && a.direction == b.direction;
}

bool is_same(const RowSum& a, const RowSum& b) {
  return are_same_bits(a.exact, b.exact) && a.text == b.text && a.is_ok == b.is_ok &&
         a.is_empty == b.is_empty;
}

bool has_same_form(const Table& a, const Table& b) {
  const auto is_as_wide = [](const auto& x, const auto& y) { return x.size() == y.size(); };
  return a.tap == b.tap && a.head == b.head && a.shape == b.shape && a.name == b.name &&
         a.symbol == b.symbol && a.leading == b.leading && a.is_repeated == b.is_repeated &&
         a.row_labels == b.row_labels && a.column_labels == b.column_labels &&
         a.row_index == b.row_index && a.sums.size() == b.sums.size() &&
         a.long_rows.size() == b.long_rows.size() && a.row_notes.size() == b.row_notes.size() &&
         std::equal(a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end(), is_as_wide);
}

void write_cells(JsonWriter& json, const Table& now, const Table& before) {
  json.key("cells").begin_array();
  for (std::size_t i = 0; i < now.rows.size(); ++i)
    for (std::size_t j = 0; j < now.rows[i].size(); ++j) {
      if (is_same(now.rows[i][j], before.rows[i][j])) continue;
      json.begin_array().value(i).value(j);
      wire::write_cell_json(json, now.rows[i][j], {});
      json.end_array();
    }
  json.end_array();
}

bool is_same(const Table& a, const Table& b) {
  const auto are_rows_same = [](const auto& x, const auto& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [](const Cell& p, const Cell& q) { return is_same(p, q); });
  };
  return std::equal(a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end(), are_rows_same) &&
         std::equal(a.sums.begin(), a.sums.end(), b.sums.begin(), b.sums.end(),
                    [](const RowSum& x, const RowSum& y) { return is_same(x, y); }) &&
         a.row_notes == b.row_notes && a.long_rows.empty();
}

void write_table(JsonWriter& json, const Table& now, const Table& before) {
  if (is_same(now, before)) {
    json.null();
    return;
  }
  json.begin_object();
  if (!now.long_rows.empty()) {
    wire::write_table_json(json.key("whole"), now);
  } else {
    write_cells(json, now, before);
    wire::write_sums_json(json.key("sums"), now);
    json.key("row_notes").values(now.row_notes);
  }
  json.end_object();
}

}  // namespace

bool has_same_form(const Document& now, const Document& before) {
  if (now.sections.size() != before.sections.size()) return false;
  for (std::size_t n = 0; n < now.sections.size(); ++n) {
    const auto &a = now.sections[n].tables, &b = before.sections[n].tables;
    const bool is_same =
        std::equal(a.begin(), a.end(), b.begin(), b.end(),
                   [](const Table& x, const Table& y) { return has_same_form(x, y); });
    if (!is_same) return false;
  }
  return true;
}

void write_changes(JsonWriter& json, const Document& now, const Document& before) {
  wire::write_document_json(json, now, [&](const Section& section) {
    const auto n = static_cast<std::size_t>(&section - now.sections.data());
    const Section& old = before.sections[n];
    for (std::size_t t = 0; t < section.tables.size(); ++t)
      write_table(json, section.tables[t], old.tables[t]);
  });
}

}  // namespace glasshead::wasm
