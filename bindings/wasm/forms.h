// The printed forms by name.
#pragma once

#include <optional>
#include <string>

#include "wasm/request.h"
#include "wire/document.h"

namespace glasshead::wasm {

// text, md, latex, html, svg, csv; a problem for any other.
std::optional<std::string> rendered(const wire::Document& document, const std::string& format,
                                    Problems& problems);

}  // namespace glasshead::wasm
