// How tokens are spelled in vocabulary files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glasshead::text {

inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581, SentencePiece's space

std::optional<std::uint8_t> byte_of(std::string_view token);  // "<0xNN>"
bool is_smiles_symbol(std::string_view token);
// Some token that is no mark like [CLS] has an ASCII capital: the vocabulary is of cased text.
bool has_upper_case(const std::vector<std::string>& tokens);
// Lines end in LF or CRLF; the last may have no end.
std::vector<std::string> lines(std::string_view text);

}  // namespace glasshead::text
