#include "cli/values.h"

#include <charconv>
#include <system_error>
#include <type_traits>

#include "wire/decimal.h"

namespace glasshead::cli {
namespace {

template <class T>
std::optional<T> parse_whole(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <class T>
std::optional<T> parse_value(std::string_view text) {
  if constexpr (std::is_same_v<T, double>)
    return parse_number(text);
  else
    return parse_whole<T>(text);
}

template <class T>
std::optional<std::vector<T>> parse_list(const std::string& flag, std::string_view text,
                                         const char* kind, std::vector<Problem>& problems) {
  std::vector<T> values;
  for (const std::string_view part : split_at_commas(text)) {
    const std::optional<T> value = parse_value<T>(part);
    if (!value) {
      problems.push_back({flag, "found '" + std::string(part) + "' in '" + std::string(text) +
                                    "'; " + kind + " separated by commas are needed"});
      return std::nullopt;
    }
    values.push_back(*value);
  }
  return values;
}

template <class T>
std::string shortest(T value) {
  char buffer[40];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, end};
}

}  // namespace

std::optional<double> parse_number(std::string_view text) { return wire::parse_double(text); }
std::optional<index_t> parse_integer(std::string_view text) { return parse_whole<index_t>(text); }
std::optional<std::uint64_t> parse_seed(std::string_view text) {
  return parse_whole<std::uint64_t>(text);
}

std::optional<std::vector<double>> parse_numbers(const std::string& flag, std::string_view text,
                                                 std::vector<Problem>& problems) {
  return parse_list<double>(flag, text, "numbers", problems);
}

std::optional<std::vector<index_t>> parse_integers(const std::string& flag, std::string_view text,
                                                   std::vector<Problem>& problems) {
  return parse_list<index_t>(flag, text, "whole numbers", problems);
}

std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::string number_text(double value, DType type) {
  return type == DType::f64 ? shortest(value) : shortest(static_cast<float>(value));
}

std::string shape_text(const std::vector<index_t>& shape) {
  std::string text = "[";
  for (const index_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

}  // namespace glasshead::cli
