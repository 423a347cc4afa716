// Bytes in a request or an answer, which are JSON: base64 of RFC 4648, section 4.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace glasshead::wasm {

// nullopt for text that is none: another character, a length that is no multiple of 4.
std::optional<std::vector<std::byte>> from_base64(std::string_view text);
std::string to_base64(std::span<const std::byte> bytes);

}  // namespace glasshead::wasm
