#include "server/refusal.h"

#include <string_view>

#include "wire/json_writer.h"

namespace glasshead::server {

std::string refusal_json(const Refusal& refusal, const std::vector<Problem>& problems) {
  std::string text;
  wire::JsonWriter json([&](std::string_view piece) { text += piece; });
  json.begin_object();
  json.key("code").value(refusal.code);
  json.key("message").value(refusal.message);
  if (!problems.empty()) {
    json.key("problems").begin_array();
    for (const Problem& problem : problems) {
      json.begin_object();
      json.key("where").value(problem.where).key("what").value(problem.what);
      json.end_object();
    }
    json.end_array();
  }
  json.end_object();
  json.flush();
  return text + "\n";
}

}  // namespace glasshead::server
