// Text from a hostile file, fit to be shown: quoted, control characters and broken UTF-8 escaped,
// cut when long.
#pragma once

#include <string>
#include <string_view>

namespace glasshead::formats {

std::string shown(std::string_view text);

}  // namespace glasshead::formats
