// What `glasshead inspect` says of a model, of the families and of the known configurations.
#pragma once

#include <optional>
#include <string>

#include "glasshead/tensor.h"

namespace glasshead::cli {

// `path_or_name`: see model_facts. Without a context: the length the
// model was made for.
std::string model_report(const std::string& path_or_name, std::optional<index_t> context,
                         bool is_json);

// A Markdown table of the families that can be loaded; with is_json, the same for scripts.
std::string families_report(bool is_json);

// The names that stand for published configurations.
std::string models_report(bool is_json);

}  // namespace glasshead::cli
