// glasshead.worksheet/1.
#include "doctor/worksheet.h"
#include "doctor/worksheet_search.h"
#include "wire/json_writer.h"

namespace glasshead::doctor {
namespace {

using wire::JsonWriter;

// A tensor of any rank as nested arrays.
void write_tensor(JsonWriter& json, const TraceTensor& t, std::size_t axis, std::size_t& next) {
  json.begin_array();
  for (index_t n = 0; n < t.shape[axis]; ++n) {
    if (axis + 1 < t.shape.size())
      write_tensor(json, t, axis + 1, next);
    else
      json.value(t.values[next++]);
  }
  json.end_array();
}

void write_tensor(JsonWriter& json, const TraceTensor& t) {
  std::size_t next = 0;
  write_tensor(json, t, 0, next);
}

void write_question(JsonWriter& json, const Worksheet& sheet) {
  const WorksheetOptions& options = sheet.options;
  json.key("schema").value("glasshead.worksheet/1");
  // A seed may be more than a JSON number holds.
  json.key("seed").value(std::to_string(options.seed));
  json.key("level").value(options.level);
  json.key("tokens").value(options.tokens);
  json.key("decimals").value(options.decimals);
  json.key("has_fractions").value(options.has_fractions);
  json.key("labels").values(sheet.exercise.query_labels);
  json.key("mask").value(options.level == 2 ? "causal and padding" : "none");
  json.key("heads").value(options.level == 3 ? 2 : 1);
  json.key("scale").value(number(*find_step(paper_steps(sheet.exercise), "scaled"), "scale", 1));
  json.key("given").begin_object();
  for (const auto& [tap, tensor] : sheet.exercise.inputs) {
    json.key(tap);
    write_tensor(json, tensor);
  }
  for (const Stage& stage : stages(options)) {
    if (is_blank(options, stage)) continue;
    json.key(stage.tap);
    write_tensor(json, sheet.trace.at(stage.tap));
  }
  json.end_object();
  json.key("blanks").begin_array();
  for (const Stage& stage : stages(options))
    if (is_blank(options, stage)) json.value(stage.tap);
  json.end_array();
}

void write_answers(JsonWriter& json, const Worksheet& sheet) {
  json.key("answers").begin_object();
  for (const Stage& stage : stages(sheet.options)) {
    if (!is_blank(sheet.options, stage)) continue;
    json.key(stage.tap);
    write_tensor(json, sheet.trace.at(stage.tap));
  }
  json.end_object();
  json.key("result").value(sheet.result);
  json.key("wrong").begin_array();
  for (const WrongAnswer& answer : sheet.wrong) {
    json.begin_object();
    json.key("row").value(answer.row);
    json.key("printed").values(answer.values);
    json.key("mistakes").values(answer.ids);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::string worksheet_json(const Worksheet& sheet, bool has_answers) {
  std::string text;
  {
    JsonWriter json([&](std::string_view piece) { text.append(piece); });
    json.begin_object();
    write_question(json, sheet);
    if (has_answers) write_answers(json, sheet);
    json.end_object();
  }
  return text + "\n";
}

}  // namespace glasshead::doctor
