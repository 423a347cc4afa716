// Published configurations by name, as their config.json would have it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace glasshead::model {

// nullopt: no configuration of this name.
std::optional<std::string> known_config(const std::string& name);

// A .safetensors file without tensors.
std::span<const std::byte> no_tensors();

}  // namespace glasshead::model
