#include "wasm/written.h"

namespace glasshead::wasm {

void write_problems(wire::JsonWriter& json, const Problems& problems) {
  json.begin_array();
  for (const Problem& problem : problems) {
    json.begin_object().key("where").value(problem.where);
    json.key("what").value(problem.what).end_object();
  }
  json.end_array();
}

wire::DocumentOptions document_options(Request& request) {
  wire::DocumentOptions options;
  options.print.decimals =
      static_cast<int>(request.integer("decimals", options.print.decimals, 0, wire::kMaxDecimals));
  return options;
}

}  // namespace glasshead::wasm
