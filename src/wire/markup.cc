// What HTML, SVG and CSV share: escaping and test ids.
#include <fmt/format.h>

#include "wire/document_build.h"
#include "wire/render.h"

namespace glasshead::wire {

std::string xml_escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string csv_field(std::string_view text) {
  std::string field(text);
  if (!field.empty() && std::string_view("=+-@").find(field[0]) != std::string_view::npos)
    field.insert(0, 1, '\'');
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string quoted = "\"";
  for (const char c : field) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string cell_id(const Table& table, std::size_t row, index_t column) {
  const std::string head = table.head < 0 ? std::string() : fmt::format("h{}-", table.head);
  return fmt::format("cell-{}-{}{}-{}", table.tap, head, table.row_index[row], column);
}

// A page has one matrix of attention weights as a rule; rows of others are named by their matrix.
std::string row_sum_id(const Table& table, std::size_t row) {
  const std::string matrix = table.tap == "weights" ? std::string() : table.tap + "-";
  const std::string head = table.head < 0 ? std::string() : fmt::format("h{}-", table.head);
  return fmt::format("rowsum-{}{}{}", matrix, head, table.row_index[row]);
}

}  // namespace glasshead::wire
