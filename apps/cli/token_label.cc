#include "cli/token_label.h"

#include <algorithm>
#include <string_view>

#include "wire/utf8.h"

namespace glasshead::cli {
namespace {

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = wire::utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

std::string token_label(const std::optional<Tokenizer>& words, index_t id) {
  if (!words || id < 0 || id >= words->size()) return std::to_string(id);
  const std::string spelled = words->token(id);
  std::string text = words->bytes_of(id);
  const bool has_space = text.starts_with(' ');
  if (has_space) text.erase(0, 1);
  if (is_ascii(text) || !is_utf8(text) || spelled.ends_with(text)) return spelled;
  return (has_space ? "Ġ" : "") + text;
}

}  // namespace glasshead::cli
