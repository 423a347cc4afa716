#include "wire/pasted_words.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "wire/case_json.h"
#include "wire/decimal.h"

namespace glasshead::wire {
namespace {

constexpr std::string_view kMinus = "\u2212", kInfinity = "\u221e", kDot = "\u00b7";
constexpr int kMostDecimals = 17;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void replace(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at))
    text.replace(at, from.size(), to), at += to.size();
}

// The digits after the point, fewer or more by the exponent: 2 of 1.25, 6 of 1.25e-4, 0 of 1.25e2.
int digits_after_point(std::string_view number) {
  const std::size_t exponent = std::min(number.find_first_of("eE"), number.size());
  const std::size_t point = std::min(number.find('.'), exponent);
  auto digits = static_cast<double>(exponent - std::min(point + 1, exponent));
  if (exponent < number.size()) digits -= parse_double(number.substr(exponent + 1)).value_or(0);
  return static_cast<int>(std::clamp(digits, 0.0, static_cast<double>(kMostDecimals)));
}

std::string why_not(std::string_view word) {
  if (word.empty()) return "is empty";
  if (word.find("...") != std::string_view::npos || word.find("\u2026") != std::string_view::npos)
    return "... stands for numbers that were left out; print all of them "
           "(numpy.set_printoptions(threshold=sys.maxsize), "
           "torch.set_printoptions(profile='full'))";
  if (word.find(kDot) != std::string_view::npos)
    return "found '" + excerpt(word) + "'; a hidden weight is written 0, a hidden score -inf";
  if (has_decimal_comma(word))
    return "found '" + excerpt(word) +
           "', a decimal comma; a point is needed: " + std::string(word.substr(0, word.find(','))) +
           "." + std::string(word.substr(word.find(',') + 1));
  return "found '" + excerpt(word) + "', which is no number";
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\v\f";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  text = text.substr(first, text.find_last_not_of(kBlank) - first + 1);
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
      text.back() == text.front())
    text = text.substr(1, text.size() - 2);
  return text;
}

bool is_name(std::string_view word) {
  if (word.starts_with(kMinus) || word.starts_with(kInfinity) || word.starts_with(kDot))
    return false;
  if (word == "..." || word == "\u2026") return false;
  return word.empty() ||
         (!is_digit(word[0]) && word[0] != '.' && word[0] != '-' && word[0] != '+' &&
          !parse_double(word) && word != "NaN" && word != "Infinity");
}

bool has_decimal_comma(std::string_view word) {
  if (!word.empty() && (word[0] == '-' || word[0] == '+')) word.remove_prefix(1);
  const std::size_t comma = word.find(',');
  if (comma == 0 || comma >= word.size() - 1 || word.empty()) return false;
  const auto are_digits = [](std::string_view part) {
    return std::all_of(part.begin(), part.end(), is_digit);
  };
  return are_digits(word.substr(0, comma)) && are_digits(word.substr(comma + 1));
}

bool add_number(std::string_view word, Pasted& to, std::string& what) {
  std::string text(word);
  if (to.texts.size() >= kMostPastedNumbers) {
    what = "more than " + std::to_string(kMostPastedNumbers) +
           " numbers; a file (.npy, .safetensors) holds them better";
    return false;
  }
  replace(text, kMinus, "-");
  replace(text, kInfinity, "inf");
  replace(text, "\u2032", "");  // the mark of a digit that was moved, in our own tables
  // As JSON, JavaScript and NumPy write them.
  for (const auto& [written, read] :
       {std::pair("NaN", "nan"), std::pair("Infinity", "inf"), std::pair("-Infinity", "-inf"),
        std::pair("Inf", "inf"), std::pair("-Inf", "-inf")})
    if (text == written) text = read;
  const std::optional<double> value = parse_double(text);
  if (!value) {
    what = why_not(trimmed(word));
    return false;
  }
  if (const int digits = digits_after_point(text); std::isfinite(*value) && digits > 0)
    to.decimals = std::max(to.decimals.value_or(0), digits);
  to.tensor.values.push_back(*value);
  to.texts.push_back(std::move(text));
  return true;
}

}  // namespace glasshead::wire
