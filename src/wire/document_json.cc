#include "wire/document_json.h"

#include <cmath>
#include <string>

#include "wire/decimal.h"
#include "wire/render.h"

namespace glasshead::wire {
void write_cell_json(JsonWriter& json, const Cell& cell, const std::string& id) {
  json.begin_object().key("text").value(marked(cell));
  if (!id.empty()) json.key("id").value(id);
  if (cell.is_hidden)
    json.key("hidden").value(cell.reason);
  else if (!cell.is_blank)
    json.key("exact").value(exact_text(cell.exact));
  if (cell.moved != 0) json.key("moved").value(cell.moved);
  if (!cell.before.empty()) {
    json.key("was").value(cell.before);
    json.key("direction").value(cell.direction);
  }
  json.end_object();
}

namespace {

void write_sum(JsonWriter& json, const Table& table, std::size_t n) {
  const RowSum& sum = table.sums[n];
  json.begin_object().key("id").value(row_sum_id(table, n));
  json.key("text").value(sum.text).key("exact").value(exact_text(sum.exact));
  json.key("ok").value(sum.is_ok).key("empty").value(sum.is_empty).end_object();
}

void write_long_row(JsonWriter& json, const Table& table, std::size_t n) {
  const Table::LongRow& row = table.long_rows[n];
  json.begin_object().key("top").begin_array();
  for (const Table::LongEntry& entry : row.top) {
    json.begin_object().key("key").value(entry.key).key("label").value(entry.label);
    json.key("score").value(entry.score).key("cell");
    write_cell_json(json, entry.cell, cell_id(table, n, entry.key));
    json.end_object();
  }
  json.end_array().key("others");
  write_cell_json(json, row.others, {});
  json.key("other_count").value(row.other_count).end_object();
}

}  // namespace

void write_sums_json(JsonWriter& json, const Table& table) {
  json.begin_array();
  for (std::size_t n = 0; n < table.sums.size(); ++n) write_sum(json, table, n);
  json.end_array();
}

void write_table_json(JsonWriter& json, const Table& table) {
  json.begin_object().key("tap").value(table.tap).key("name").value(table.name);
  json.key("symbol").value(table.symbol).key("leading").value(table.leading);
  json.key("head").value(table.head).key("repeated").value(table.is_repeated);
  json.key("rows_named").values(table.row_labels);
  json.key("columns_named").values(table.column_labels);
  json.key("row_index").values(std::span<const index_t>(table.row_index));
  json.key("shape").values(std::span<const index_t>(table.shape));
  json.key("rows").begin_array();
  for (std::size_t n = 0; n < table.rows.size(); ++n) {
    json.begin_array();
    for (std::size_t j = 0; j < table.rows[n].size(); ++j)
      write_cell_json(json, table.rows[n][j], cell_id(table, n, static_cast<index_t>(j)));
    json.end_array();
  }
  json.end_array().key("long_rows").begin_array();
  for (std::size_t n = 0; n < table.long_rows.size(); ++n) write_long_row(json, table, n);
  write_sums_json(json.end_array().key("sums"), table);
  json.key("row_notes").values(table.row_notes).end_object();
}

namespace {

void write_section(JsonWriter& json, const Section& section, const TablesWriter& tables) {
  json.begin_object().key("number").value(section.number).key("title").value(section.title);
  json.key("formula").value(section.formula).key("shape").value(section.shape);
  json.key("remark").value(section.remark);
  const bool is_beside = section.layout == Section::Layout::beside;
  json.key("beside").value(is_beside).key("tables").begin_array();
  tables(section);
  json.end_array().key("lines").values(section.lines).end_object();
}

}  // namespace

std::string exact_text(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x < 0 ? "-inf" : "inf";
  return shortest(x);
}

void write_document_json(JsonWriter& json, const Document& document) {
  write_document_json(json, document, [&json](const Section& section) {
    for (const Table& table : section.tables) write_table_json(json, table);
  });
}

void write_document_json(JsonWriter& json, const Document& document, const TablesWriter& tables) {
  json.begin_object().key("schema").value("glasshead.document/1");
  json.key("name").value(document.name).key("title").value(document.title);
  json.key("question").value(document.question).key("preamble").values(document.preamble);
  json.key("sections").begin_array();
  for (const Section& section : document.sections) write_section(json, section, tables);
  json.end_array().key("checks").begin_array();
  for (const CheckLine& check : document.checks) {
    json.begin_object().key("id").value(check.id).key("text").value(check.text);
    json.key("ok").value(check.is_ok).key("detail").value(check.detail).end_object();
  }
  json.end_array().key("footnotes").values(document.footnotes);
  json.key("notes").values(document.notes).end_object();
}

}  // namespace glasshead::wire
