#include "wasm/forms.h"

#include "wire/render.h"

namespace glasshead::wasm {

std::optional<std::string> rendered(const wire::Document& document, const std::string& format,
                                    Problems& problems) {
  if (format == "text") return wire::to_text(document);
  if (format == "md") return wire::to_markdown(document);
  if (format == "latex") return wire::to_latex(document);
  if (format == "html") return wire::to_html(document);
  if (format == "svg") return wire::to_svg(document);
  if (format == "csv") return wire::to_csv(document);
  problems.push_back({"format", "\"" + format + "\" is none of json text md latex html svg csv"});
  return std::nullopt;
}

}  // namespace glasshead::wasm
