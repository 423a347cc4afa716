#include "text/spelling.h"

#include <algorithm>
#include <cstddef>

namespace glasshead::text {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

bool are_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_bracketed(std::string_view token) {
  return token.size() > 2 && token.find(']') == token.size() - 1 && token.front() == '[';
}

}  // namespace

std::optional<std::uint8_t> byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  const int high = hex_digit(token[3]), low = hex_digit(token[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<std::uint8_t>(high * 16 + low);
}

bool is_smiles_symbol(std::string_view token) {
  if (is_bracketed(token) || token == "Br" || token == "Cl" || token == ">>") return true;
  if (token.starts_with("%(") && token.size() == 6 && token.back() == ')')
    return are_digits(token.substr(2, 3));
  if (token.starts_with('%')) return token.size() == 3 && are_digits(token.substr(1));
  constexpr std::string_view kSingle = "BNOSPFICbcnosp0123456789|().=#-+\\/:~@?>*$";
  return token.size() == 1 && kSingle.find(token.front()) != std::string_view::npos;
}

bool has_upper_case(const std::vector<std::string>& tokens) {
  return std::any_of(tokens.begin(), tokens.end(), [](const std::string& token) {
    return !is_bracketed(token) &&
           std::any_of(token.begin(), token.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  });
}

std::vector<std::string> lines(std::string_view text) {
  std::vector<std::string> result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    result.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

}  // namespace glasshead::text
