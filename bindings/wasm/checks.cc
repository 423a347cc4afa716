// The checks of a case's document; of them the page's own module leaves out the fused path.
#include "wasm/calls.h"
#include "wasm/written.h"

namespace glasshead::wasm {

std::optional<std::string> checks(Request& request, Session& session) {
  const wire::DocumentOptions options = document_options(request);
  const EditedCase* edited = session.read(request);
  if (edited == nullptr) return std::nullopt;
  request.problems() = edited->refused();
  if (!request.problems().empty()) return std::nullopt;
  return written([&](wire::JsonWriter& json) {
    json.begin_object().key("checks").begin_array();
    for (const wire::CheckLine& check : edited->document(options.print.decimals).checks) {
      json.begin_object().key("id").value(check.id).key("text").value(check.text);
      json.key("ok").value(check.is_ok).key("detail").value(check.detail).end_object();
    }
    json.end_array().end_object();
  });
}

}  // namespace glasshead::wasm
