// What `glasshead inspect` says of a model, of the families and of the known configurations.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "glasshead/tensor.h"

namespace glasshead::cli {

// `path_or_name`: see model_facts. Without a context: the length the
// model was made for.
std::string model_report(const std::string& path_or_name, std::optional<index_t> context,
                         bool is_json);

// The places of a run that --tap may name, with their shapes.
std::string places_report(const std::string& path_or_name, bool is_json);

// "0-4, 6-10, 12": runs of neighbours.
std::string ranges(const std::vector<index_t>& numbers);

// A Markdown table of the families that can be loaded; with is_json, the same for scripts.
std::string families_report(bool is_json);

// The names that stand for published configurations.
std::string models_report(bool is_json);

}  // namespace glasshead::cli
