#include "wire/matrix_text.h"

#include <algorithm>
#include <utility>

#include "wire/decimal.h"

namespace glasshead::wire {
namespace {

std::vector<std::string> split(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    if (end > begin) parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

constexpr double kMostDecimals = 17;  // more than a double has

// The digits after the point, fewer or more by the exponent: 2 of 1.25, 6 of 1.25e-4, 0 of 1.25e2.
int digits_after_point(const std::string& number) {
  const std::size_t exponent = std::min(number.find_first_of("eE"), number.size());
  const std::size_t point = std::min(number.find('.'), exponent);
  auto digits = static_cast<double>(exponent - std::min(point + 1, exponent));
  if (exponent < number.size()) digits -= parse_double(number.substr(exponent + 1)).value_or(0);
  return static_cast<int>(std::clamp(digits, 0.0, kMostDecimals));
}

constexpr std::size_t kMostAxes = 4;
constexpr index_t kUnknown = -1;
constexpr std::string_view kBetween = " ,\t\r\n";

// Numbers that were given as text, one after another.
struct Numbers {
  const std::string& where;
  std::string_view needed;
  std::optional<int>& decimals;
  std::vector<Problem>& problems;
  std::vector<double> values;

  bool add(const std::string& word) {
    const std::optional<double> value = parse_double(word);
    if (!value) {
      problems.push_back({where, "found '" + word + "'; " + std::string(needed) +
                                     " are needed, rows separated by ; or as lists in brackets"});
      return false;
    }
    values.push_back(*value);
    if (const int digits = digits_after_point(word); digits > 0)
      decimals = std::max(decimals.value_or(0), digits);
    return true;
  }

  std::optional<TraceTensor> tensor(const std::vector<index_t>& shape) const {
    if (!values.empty()) return TraceTensor{shape, values};
    problems.push_back({where, "is empty; " + std::string(needed) + " are needed"});
    return std::nullopt;
  }
};

// What stands in the brackets, where NumPy and torch write "array([...])" and "tensor([...])"
// around them; nullopt where there is something else.
std::optional<std::string> without_call(const std::string& text) {
  const std::size_t begin = text.find('['), end = text.rfind(']');
  if (end == std::string::npos) return text;
  std::string before;
  for (const char c : text.substr(0, begin))
    if (kBetween.find(c) == std::string_view::npos) before += c;
  if (before.empty()) return text;
  if (!before.ends_with("array(") && !before.ends_with("tensor(")) return text;
  const std::string list = text.substr(begin, end + 1 - begin);
  if (list.find('(') != std::string::npos) return std::nullopt;
  return list;
}

}  // namespace

bool is_nested(std::string_view text) {
  return text.find('[') != std::string_view::npos && text.find(';') == std::string_view::npos;
}

std::optional<TraceTensor> parse_matrix(const std::string& where, const std::string& text,
                                        std::string_view needed, std::optional<int>& decimals,
                                        std::vector<Problem>& problems) {
  Numbers numbers{where, needed, decimals, problems, {}};
  index_t rows = 0, columns = 0;
  for (const std::string& row : split(text, ";\n")) {
    const std::vector<std::string> words = split(row, " ,\t\r[]");
    if (words.empty()) continue;
    const auto count = static_cast<index_t>(words.size());
    if (rows > 0 && count != columns) {
      problems.push_back({where, "row " + std::to_string(rows) + " has " + std::to_string(count) +
                                     " numbers, the rows before it have " +
                                     std::to_string(columns)});
      return std::nullopt;
    }
    columns = count;
    ++rows;
    for (const std::string& word : words)
      if (!numbers.add(word)) return std::nullopt;
  }
  return numbers.tensor({rows, columns});
}

std::optional<TraceTensor> parse_nested(const std::string& where, const std::string& text,
                                        std::string_view needed, std::optional<int>& decimals,
                                        std::vector<Problem>& problems) {
  const auto refuse = [&](const std::string& what) {
    problems.push_back({where, what + "; [[1, 0], [0.5, 0.5]] is two rows of two"});
    return std::nullopt;
  };
  const std::optional<std::string> list = without_call(text);
  if (!list) return refuse("found more than one list in brackets");
  Numbers numbers{where, needed, decimals, problems, {}};
  std::vector<index_t> shape, open;  // extents of the lists that were closed; of the open ones
  std::size_t depth = 0;             // at which the numbers stand; 0: not known
  for (std::size_t at = 0; at < list->size();) {
    const char c = (*list)[at];
    if (c == '[') {
      if (open.empty() && !shape.empty())  // a second list behind the first: rows of one
        return parse_nested(where, "[" + *list + "]", needed, decimals, problems);
      open.push_back(0);
      if (open.size() > kMostAxes) return refuse("more than 4 brackets deep");
      if (depth > 0 && open.size() > depth) return refuse("a list stands beside numbers");
      shape.resize(std::max(shape.size(), open.size()), kUnknown);
      ++at;
    } else if (c == ']') {
      if (open.empty()) return refuse("a bracket is closed that was not opened");
      index_t& extent = shape[open.size() - 1];
      if (extent != kUnknown && extent != open.back())
        return refuse("a list of " + std::to_string(open.back()) + " beside one of " +
                      std::to_string(extent));
      extent = open.back();
      open.pop_back();
      if (!open.empty()) ++open.back();
      ++at;
    } else if (kBetween.find(c) != std::string_view::npos) {
      ++at;
    } else {
      const std::size_t end = std::min(list->find_first_of("[] ,\t\r\n", at), list->size());
      if (depth == 0) depth = open.size();
      if (open.empty() || depth != open.size()) return refuse("numbers stand beside a list");
      if (!numbers.add(list->substr(at, end - at))) return std::nullopt;
      ++open.back();
      at = end;
    }
  }
  if (!open.empty()) return refuse("a bracket is not closed");
  if (depth > 0 && depth != shape.size()) return refuse("a list is empty");
  return numbers.tensor(shape);
}

}  // namespace glasshead::wire
