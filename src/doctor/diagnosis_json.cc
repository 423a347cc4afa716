// A diagnosis as JSON: schema "glasshead.diagnosis/1".
#include "glasshead/diagnose.h"
#include "wire/json_writer.h"

namespace glasshead {
namespace {

using wire::JsonWriter;

void write_entry(JsonWriter& json, const char* key, const Entry& entry) {
  json.key(key);
  if (entry.claim.empty()) {
    json.null();
    return;
  }
  json.begin_object();
  json.key("claim").value(entry.claim);
  json.key("index").values(std::span<const index_t>(entry.index));
  json.key("found").value(entry.found);
  json.key("right").value(entry.right);
  json.key("tolerance").value(entry.tolerance);
  json.end_object();
}

void write_mistake(JsonWriter& json, const NamedMistake& m) {
  json.begin_object();
  json.key("id").value(m.id);
  json.key("parameter").value(m.parameter);
  json.key("title").value(m.title);
  json.key("done").value(m.done);
  json.key("cause").value(m.cause);
  json.key("fix_code").value(m.fix_code);
  json.key("fix").value(m.fix);
  json.end_object();
}

void write_causes(JsonWriter& json, const Diagnosis& d) {
  json.key("causes").begin_array();
  for (const Cause& cause : d.causes) {
    json.begin_object();
    json.key("name").value(cause.name());
    json.key("mistakes").begin_array();
    for (const NamedMistake& m : cause.mistakes) write_mistake(json, m);
    json.end_array();
    json.key("worst").value(cause.worst);
    json.key("telling").value(cause.telling);
    json.key("is_close").value(cause.is_close);
    json.end_object();
  }
  json.end_array();
}

void write_rows(JsonWriter& json, const Diagnosis& d) {
  json.key("small_rows").begin_array();
  for (const RowReport& report : d.small_rows) {
    json.begin_object();
    json.key("claim").value(report.claim);
    json.key("row").value(report.row);
    json.key("is_right").value(report.is_right);
    json.key("found").values(std::span<const double>(report.found));
    json.key("right").values(std::span<const double>(report.right));
    json.end_object();
  }
  json.end_array();
}

const char* name_of(DiagnosisVerdict verdict) {
  return verdict == DiagnosisVerdict::right      ? "right"
         : verdict == DiagnosisVerdict::mistaken ? "mistaken"
                                                 : "unexplained";
}

}  // namespace

std::string diagnosis_json(const Diagnosis& d) {
  std::string text;
  JsonWriter json([&](std::string_view piece) { text.append(piece); });
  json.begin_object();
  json.key("schema").value("glasshead.diagnosis/1");
  json.key("verdict").value(name_of(d.verdict));
  json.key("arithmetic").value(name(d.arithmetic));
  json.key("rows").value(d.rows);
  json.key("rows_checked").value(d.rows_checked);
  json.key("numbers").value(d.numbers);
  json.key("wrong").value(d.wrong);
  write_entry(json, "first_wrong", d.first_wrong);
  write_entry(json, "worst", d.worst);
  json.key("worst_ulps").value(d.worst_ulps);
  json.key("plain_ulps").value(d.plain_ulps);
  write_causes(json, d);
  write_rows(json, d);
  if (!d.read.empty()) json.key("read").values(std::span<const std::string>(d.read));
  json.key("pattern").values(std::span<const std::string>(d.pattern));
  json.key("proven").values(std::span<const std::string>(d.proven));
  json.key("next").values(std::span<const std::string>(d.next));
  json.key("blind").values(std::span<const std::string>(d.blind));
  json.key("probe").value(d.probe);
  json.key("not_tried").values(std::span<const std::string>(d.not_tried));
  json.key("tried").value(d.tried);
  json.end_object();
  json.flush();
  return text;
}

}  // namespace glasshead
