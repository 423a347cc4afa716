#include "glasshead/port.h"
#include "wire/json_writer.h"

namespace glasshead {
namespace {

void write(wire::JsonWriter& json, const PortPlace& place) {
  json.begin_object();
  json.key("name").value(place.name);
  json.key("theirs").value(place.theirs);
  json.key("layout").value(place.layout);
  json.key("right").value(place.is_right);
  json.key("error").value(place.error);
  json.key("tolerance").value(place.tolerance);
  json.key("worst").begin_object();
  json.key("index").values(place.worst);
  json.key("found").value(place.found);
  json.key("right").value(place.right);
  json.end_object();
  json.end_object();
}

void write(wire::JsonWriter& json, const PortCause& cause) {
  json.begin_object();
  json.key("name").value(cause.name());
  json.key("id").value(cause.id);
  json.key("parameter").value(cause.parameter);
  json.key("title").value(cause.title);
  json.key("done").value(cause.done);
  json.key("cause").value(cause.cause);
  json.key("fix").value(cause.fix);
  json.key("where").value(cause.where);
  json.key("error").value(cause.error);
  json.key("explains").value(cause.explains);
  json.key("by_doctor").value(cause.is_doctors);
  json.end_object();
}

}  // namespace

std::string port_json(const PortReport& report) {
  std::string text;
  wire::JsonWriter json([&](std::string_view more) { text += more; });
  json.begin_object();
  json.key("schema").value("glasshead.port/1");
  json.key("verdict").value(report.is_right()       ? "right"
                            : report.is_explained() ? "mistaken"
                                                    : "unexplained");
  json.key("explains_everything").value(report.explains_everything);
  json.key("tokens").value(report.tokens);
  json.key("arithmetic").value(name(report.arithmetic));
  json.key("tried").value(report.tried);
  json.key("places").begin_array();
  for (const PortPlace& place : report.places) write(json, place);
  json.end_array();
  json.key("findings").begin_array();
  for (const PortFinding& finding : report.findings) {
    json.begin_object();
    json.key("place");
    write(json, finding.place);
    json.key("after").value(finding.after);
    json.key("causes").begin_array();
    for (const PortCause& cause : finding.causes) write(json, cause);
    json.end_array();
    json.key("facts").values(finding.facts);
    json.end_object();
  }
  json.end_array();
  json.key("unread").values(report.notes);
  json.end_object();
  json.flush();
  return text;
}

}  // namespace glasshead
