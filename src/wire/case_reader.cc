#include "wire/case_reader.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "wire/decimal.h"

namespace glasshead::wire {
namespace {

// How many changes of a character, or swaps of two neighbours, make `a` into `b` (optimal string
// alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> table((a.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& {
    return table[i * width + j];
  };
  for (std::size_t i = 0; i <= a.size(); ++i) at(i, 0) = i;
  for (std::size_t j = 0; j <= b.size(); ++j) at(0, j) = j;
  for (std::size_t i = 1; i <= a.size(); ++i)
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      at(i, j) = std::min({replaced, at(i - 1, j) + 1, at(i, j - 1) + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  return at(a.size(), b.size());
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// "mask" and "Mask", "W_Q" and "WQ" are one: for suggestions.
std::string folded(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (c != '_' && c != '-' && c != ' ') out += lower(c);
  return out;
}

std::string list_of(std::initializer_list<std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

}  // namespace

std::string join(const std::string& path, std::string_view field) {
  return path.empty() ? std::string(field) : fmt::format("{}.{}", path, field);
}

std::string join(const std::string& path, index_t index) {
  return fmt::format("{}[{}]", path, index);
}

std::string shape_text(const std::vector<index_t>& shape) {
  std::string text;
  for (const index_t extent : shape) {
    if (!text.empty()) text += 'x';
    text += fmt::format("{}", extent);
  }
  return text.empty() ? "a single number" : text;
}

std::optional<std::string> nearest(std::string_view name,
                                   const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongestName = 40;
  if (name.size() > kLongestName) return std::nullopt;
  const std::string wanted = folded(name);
  std::optional<std::string> best;
  std::size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(wanted, folded(candidate));
    // A third of the letters may differ: "wieghts" is "weights", "foo" is nothing.
    if (distance * 3 > std::max(wanted.size(), candidate.size())) continue;
    if (!best || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::optional<double> finite_number(std::string_view text) {
  const std::optional<double> value = parse_double(text);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return value;
}

CaseReader::CaseReader(std::vector<Problem>& problems)
    : problems_(problems), count_before_(problems.size()) {}

void CaseReader::problem(std::string where, std::string what) {
  if (problems_.size() - count_before_ >= kMostProblems)
    ++more_;
  else
    problems_.push_back({std::move(where), std::move(what)});
}

bool CaseReader::has_problem_at(const std::string& path, std::size_t count) const {
  const auto first = problems_.begin() + static_cast<std::ptrdiff_t>(count_before_);
  const auto last = problems_.begin() +
                    static_cast<std::ptrdiff_t>(std::min(count_before_ + count, problems_.size()));
  return std::any_of(first, last, [&](const Problem& problem) {
    const std::string& where = problem.where;
    return where.compare(0, path.size(), path) == 0 &&
           (where.size() == path.size() || where[path.size()] == '.' || where[path.size()] == '[');
  });
}

void CaseReader::finish() {
  if (more_ > 0) problems_.push_back({"case", fmt::format("{} more problems", more_)});
}

bool CaseReader::object(JsonValue value, const std::string& path,
                        std::initializer_list<std::string_view> fields) {
  if (!value) return false;
  if (!value.is(JsonKind::object)) {
    problem(path.empty() ? "case" : path,
            fmt::format("{} where an object belongs: {{{}}}", describe(value), list_of(fields)));
    return false;
  }
  // More members than fields and some: what they are called no longer matters.
  constexpr std::size_t kMostMembers = 200;
  if (value.size() > kMostMembers) {
    problem(path.empty() ? "case" : path,
            fmt::format("{} fields; there are only these: {}", value.size(), list_of(fields)));
    return false;
  }
  const std::vector<std::string> known(fields.begin(), fields.end());
  std::vector<std::string_view> seen;
  for (JsonValue member = value.first(); member; member = member.next()) {
    const std::string_view key = member.key();
    const std::string where = join(path, key.empty() ? "\"\"" : excerpt(key));
    if (std::find(seen.begin(), seen.end(), key) != seen.end())
      problem(where, "is there twice; a field is given once");
    else if (std::find(known.begin(), known.end(), key) == known.end()) {
      const std::optional<std::string> meant = nearest(key, known);
      problem(where, meant ? fmt::format("no such field; did you mean {}?", *meant)
                           : fmt::format("no such field; here are: {}", list_of(fields)));
    }
    seen.push_back(key);
  }
  return true;
}

bool CaseReader::list(JsonValue value, const std::string& path, std::string_view of_what) {
  if (!value) return false;
  if (value.is(JsonKind::array)) return true;
  problem(path, fmt::format("{} where a list of {} belongs", describe(value), of_what));
  return false;
}

std::optional<std::string> CaseReader::string(JsonValue value, const std::string& path) {
  if (!value) return std::nullopt;
  if (value.is(JsonKind::string)) return std::string(value.text());
  problem(path, describe(value) + " where a text belongs");
  return std::nullopt;
}

std::optional<bool> CaseReader::boolean(JsonValue value, const std::string& path) {
  if (!value) return std::nullopt;
  if (value.is(JsonKind::boolean)) return value.text() == "true";
  problem(path, describe(value) + " where true or false belongs");
  return std::nullopt;
}

std::optional<double> CaseReader::number(JsonValue value, const std::string& path) {
  if (!value) return std::nullopt;
  if (!value.is(JsonKind::number)) {
    problem(path, describe(value) + " where a number belongs");
    return std::nullopt;
  }
  const std::optional<double> number = finite_number(value.text());
  if (!number)
    problem(path, excerpt(value.text()) + " is too large: no double holds it (at most 1.797e308)");
  return number;
}

std::optional<index_t> CaseReader::integer(JsonValue value, const std::string& path, index_t least,
                                           index_t most) {
  const std::optional<double> given = number(value, path);
  if (!given) return std::nullopt;
  if (*given != std::floor(*given)) {
    problem(path, excerpt(value.text()) + " where a whole number belongs");
    return std::nullopt;
  }
  if (*given < static_cast<double>(least) || *given > static_cast<double>(most)) {
    problem(path, fmt::format("{}; it must be from {} to {}", excerpt(value.text()), least, most));
    return std::nullopt;
  }
  return static_cast<index_t>(*given);
}

std::vector<std::string> CaseReader::strings(JsonValue value, const std::string& path) {
  std::vector<std::string> out;
  if (!list(value, path, "texts")) return out;
  index_t n = 0;
  for (JsonValue element = value.first(); element; element = element.next(), ++n)
    out.push_back(string(element, join(path, n)).value_or(""));
  return out;
}

std::vector<double> CaseReader::numbers(JsonValue value, const std::string& path) {
  std::vector<double> out;
  if (!list(value, path, "numbers")) return out;
  index_t n = 0;
  for (JsonValue element = value.first(); element; element = element.next(), ++n)
    out.push_back(number(element, join(path, n)).value_or(0));
  return out;
}

std::vector<index_t> CaseReader::integers(JsonValue value, const std::string& path, index_t least,
                                          index_t most) {
  std::vector<index_t> out;
  if (!list(value, path, "whole numbers")) return out;
  index_t n = 0;
  for (JsonValue element = value.first(); element; element = element.next(), ++n)
    out.push_back(integer(element, join(path, n), least, most).value_or(least));
  return out;
}

std::optional<std::size_t> CaseReader::choice(JsonValue value, const std::string& path,
                                              std::initializer_list<std::string_view> choices) {
  const std::optional<std::string> given = string(value, path);
  if (!given) return std::nullopt;
  std::size_t n = 0;
  for (const std::string_view name : choices) {
    if (*given == name) return n;
    ++n;
  }
  const std::optional<std::string> meant =
      nearest(*given, std::vector<std::string>(choices.begin(), choices.end()));
  problem(path, fmt::format("\"{}\" is none of {}{}", excerpt(*given), list_of(choices),
                            meant ? "; did you mean " + *meant + "?" : ""));
  return std::nullopt;
}

// What reading one tensor needs to carry along.
struct CaseReader::Walk {
  GivenTensor given;
  bool may_hide = false;
  bool is_ragged = false;
};

// Levels are at most the tensor's rank, not the input's depth.
void CaseReader::fill(JsonValue value, const std::string& path, std::size_t level, Walk& walk) {
  const std::vector<index_t>& shape = walk.given.tensor.shape;
  if (level == shape.size()) {
    if (walk.may_hide && value.is(JsonKind::string) && value.text() == "-inf") {
      walk.given.tensor.values.push_back(-HUGE_VAL);
      walk.given.texts.emplace_back("-inf");
      return;
    }
    const ShapesStand stand(*this);
    double entry = 0;
    if (value.is(JsonKind::array) || value.is(JsonKind::object) || value.is(JsonKind::string))
      problem(path, describe(value) + (walk.may_hide ? " where a number or \"-inf\" belongs"
                                                     : " where a number belongs"));
    else
      entry = number(value, path).value_or(0);
    walk.given.tensor.values.push_back(entry);
    if (walk.given.texts.size() <= kMostTexts) walk.given.texts.emplace_back(value.text());
    return;
  }
  if (!value.is(JsonKind::array)) {
    walk.is_ragged = true;
    problem(path, fmt::format("{} where a list of {} numbers belongs, as in the rows before",
                              describe(value), shape[level]));
    return;
  }
  const auto size = static_cast<index_t>(value.size());
  if (size != shape[level]) {
    walk.is_ragged = true;
    const std::string what = level + 1 == shape.size() ? "numbers" : "rows";
    problem(path, fmt::format("{} {} where the first one has {}: all must be equally long", size,
                              what, shape[level]));
    return;
  }
  index_t n = 0;
  for (JsonValue element = value.first(); element; element = element.next(), ++n)
    fill(element, join(path, n), level + 1, walk);
}

std::optional<GivenTensor> CaseReader::tensor(JsonValue value, const std::string& path,
                                              int least_rank, int most_rank, bool may_hide) {
  if (!value) return std::nullopt;
  Walk walk;
  walk.may_hide = may_hide;
  std::vector<index_t>& shape = walk.given.tensor.shape;
  const char* const kinds[] = {"a number", "a list of numbers: [1, 0]",
                               "a matrix, a list of rows: [[1, 0], [0, 1]]",
                               "a list of matrices: [[[1, 0], [0, 1]], [[1, 0], [0, 1]]]"};
  for (JsonValue v = value; v.is(JsonKind::array); v = v.first()) {
    shape.push_back(static_cast<index_t>(v.size()));
    if (v.size() == 0) {
      problem(path, "is empty where numbers belong");
      return std::nullopt;
    }
  }
  const int rank = static_cast<int>(shape.size());
  if (rank < least_rank || rank > most_rank) {
    const std::string found = rank == 0   ? describe(value)
                              : rank <= 3 ? kinds[rank]
                                          : "a list nested too deep";
    problem(path, fmt::format("{} where this belongs: {}", found, kinds[least_rank]));
    return std::nullopt;
  }
  fill(value, path, 0, walk);
  if (walk.is_ragged) return std::nullopt;
  if (walk.given.texts.size() > kMostTexts) walk.given.texts.clear();
  return std::move(walk.given);
}

}  // namespace glasshead::wire
