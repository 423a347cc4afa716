#include "wire/pasted.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "wire/case_json.h"
#include "wire/pasted_words.h"

namespace glasshead::wire {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\v\f";

bool is_blank(char c) { return kBlanks.find(c) != std::string_view::npos; }

// ---- lists ----

// "weights = np.array(" -> 18, where the lists begin; what stands before them is no list.
std::optional<std::size_t> lists_begin(std::string_view text, bool& is_called) {
  const std::size_t bracket = text.find_first_of("[(");
  if (bracket == std::string_view::npos) return std::nullopt;
  const std::string_view before = trimmed(text.substr(0, bracket));
  const bool are_words = std::all_of(before.begin(), before.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '=' || c == ' ';
  });
  if (!are_words || (!before.empty() && before[0] >= '0' && before[0] <= '9')) return std::nullopt;
  is_called = text[bracket] == '(' && !before.empty() && before.back() != '=';
  return is_called ? bracket + 1 : bracket;
}

class Lists {
 public:
  Lists(std::string_view text, Pasted& to) : text_(text), to_(to) {}

  // Empty, or what is wrong.
  std::string read(bool is_called) {
    for (at_ = 0; at_ < text_.size() && !is_done_; ++at_) {
      const char c = text_[at_];
      std::string what;
      if (c == '[' || c == '(')
        what = open();
      else if (c == ']' || c == ')')
        what = close();
      else if (c != ',' && !is_blank(c))
        what = word();
      if (!what.empty()) return what;
    }
    if (!is_done_) return "a list does not end: ] is missing";
    const std::string_view rest = trimmed(text_.substr(at_));
    const bool is_end = rest.empty() || rest == ";" || rest == "," ||
                        (is_called && (rest[0] == ')' || rest[0] == ','));
    if (!is_end) return "after the lists stands '" + excerpt(rest) + "'";
    to_.tensor.shape = extents_;
    return {};
  }

 private:
  std::string open() {
    if (counts_.size() == kMostPastedAxes)
      return "lists stand more than " + std::to_string(kMostPastedAxes) + " deep";
    if (depth_of_numbers_ != 0 && counts_.size() >= depth_of_numbers_)
      return "numbers and lists stand side by side";
    if (!counts_.empty()) ++counts_.back();
    counts_.push_back(0);
    return {};
  }

  std::string close() {
    if (counts_.empty()) return "] without [";
    const std::size_t axis = counts_.size() - 1;
    if (counts_.back() == 0) return "a list is empty";
    if (depth_of_numbers_ == 0) depth_of_numbers_ = counts_.size();
    if (extents_.size() < depth_of_numbers_) extents_.resize(depth_of_numbers_, -1);
    index_t& extent = extents_[axis];
    if (extent >= 0 && extent != counts_.back())
      return "one list has " + std::to_string(counts_.back()) + " entries, those before it " +
             std::to_string(extent);
    extent = counts_.back();
    counts_.pop_back();
    is_done_ = counts_.empty();
    return {};
  }

  std::string word() {
    const std::size_t end = std::min(text_.find_first_of("[](),", at_), text_.size());
    std::size_t stop = at_;
    while (stop < end && !is_blank(text_[stop])) ++stop;
    const std::string_view found = text_.substr(at_, stop - at_);
    at_ = stop - 1;
    if (counts_.empty()) return "found '" + excerpt(found) + "' before the lists";
    std::string what;
    add_number(trimmed(found), to_, what);
    if (!what.empty()) return what;
    if (depth_of_numbers_ == 0) depth_of_numbers_ = counts_.size();
    if (counts_.size() != depth_of_numbers_) return "numbers and lists stand side by side";
    ++counts_.back();
    return {};
  }

  std::string_view text_;
  Pasted& to_;
  std::size_t at_ = 0;
  std::vector<index_t> counts_;   // entries so far of the lists that are open
  std::vector<index_t> extents_;  // by axis; -1: not yet known
  std::size_t depth_of_numbers_ = 0;
  bool is_done_ = false;
};

// ---- rows of cells ----

using Row = std::vector<std::string_view>;

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool has_words(std::string_view cell) {
  const std::string_view word = trimmed(cell);
  return std::any_of(word.begin(), word.end(), is_blank);
}

// ; between columns, as spreadsheets write CSV where commas are decimal; otherwise between rows.
bool are_columns_at_semicolons(const std::vector<std::string_view>& lines) {
  if (lines.size() < 2) return false;
  bool has_any = false;
  for (const std::string_view line : lines) {
    const std::vector<std::string_view> cells = split(line, ';');
    has_any = has_any || (cells.size() > 1 && !trimmed(cells[1]).empty());
    for (const std::string_view cell : cells)
      if (has_words(cell) || cell.find('\t') != std::string_view::npos) return false;
  }
  return has_any;
}

Row words(std::string_view line) {
  Row row;
  std::size_t begin = 0;
  while (begin < line.size()) {
    const std::size_t end = std::min(line.find_first_of(" ,\t\r\v\f", begin), line.size());
    if (end > begin) row.push_back(trimmed(line.substr(begin, end - begin)));
    begin = end + 1;
  }
  return row;
}

Row cells(std::string_view line, char at) {
  Row row;
  for (const std::string_view cell : split(line, at)) row.push_back(trimmed(cell));
  if (row.size() > 1 && row.back().empty()) row.pop_back();
  return row;
}

// "0,5 0,25": two readings, so none.
std::string two_readings(const std::vector<std::string_view>& lines) {
  bool has_comma = false, has_words_between = false;
  std::string_view first;
  for (const std::string_view line : lines) {
    Row parts;
    for (const std::string_view part : split(line, ' '))
      if (!trimmed(part).empty()) parts.push_back(trimmed(part));
    has_words_between = has_words_between || parts.size() > 1;
    for (const std::string_view part : parts) {
      if (part.find(',') == std::string_view::npos) continue;
      if (!has_decimal_comma(part)) return {};
      has_comma = true;
      if (first.empty()) first = part;
    }
  }
  if (!has_comma || !has_words_between) return {};
  return "'" + excerpt(first) +
         "' may be one number with a decimal comma or two numbers; write a point, or a blank after "
         "each comma";
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (const std::string_view line : split(text, '\n'))
    if (line.find_first_not_of(kBlanks) != std::string_view::npos) lines.push_back(line);
  return lines;
}

// Rows of cells, or what is wrong.
std::string read_rows(std::string_view text, std::vector<Row>& rows) {
  std::vector<std::string_view> lines = lines_of(text);
  const bool has_tabs = text.find('\t') != std::string_view::npos;
  if (are_columns_at_semicolons(lines)) {
    for (const std::string_view line : lines) rows.push_back(cells(line, ';'));
    return {};
  }
  if (text.find(';') != std::string_view::npos) {
    std::vector<std::string_view> parts;
    for (const std::string_view line : lines)
      for (const std::string_view part : split(line, ';'))
        if (!trimmed(part).empty()) parts.push_back(part);
    lines = std::move(parts);
  }
  if (has_tabs) {
    for (const std::string_view line : lines) rows.push_back(cells(line, '\t'));
    return {};
  }
  if (std::string what = two_readings(lines); !what.empty()) return what;
  for (const std::string_view line : lines) rows.push_back(words(line));
  return {};
}

// Takes names off the first line and the first column.
void take_names(std::vector<Row>& rows, Pasted& to) {
  const auto are_names = [](const Row& row) {
    return std::all_of(row.begin(), row.end(), is_name);
  };
  if (rows.size() > 1 && are_names(rows[0])) {
    to.column_names.assign(rows[0].begin(), rows[0].end());
    rows.erase(rows.begin());
  }
  const bool have_names = std::all_of(rows.begin(), rows.end(), [](const Row& row) {
    return row.size() > 1 && is_name(row[0]) && !row[0].empty();
  });
  if (!have_names) return;
  for (Row& row : rows) {
    to.row_names.emplace_back(row[0]);
    row.erase(row.begin());
  }
  if (to.column_names.size() == rows[0].size() + 1)  // the corner's
    to.column_names.erase(to.column_names.begin());
}

std::string read_cells(std::string_view text, Pasted& to) {
  std::vector<Row> rows;
  if (std::string what = read_rows(text, rows); !what.empty()) return what;
  if (rows.empty()) return "is empty; numbers are needed";
  take_names(rows, to);
  const std::size_t columns = rows[0].size();
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < rows[i].size(); ++j) {
      std::string what;
      if (add_number(rows[i][j], to, what)) continue;
      return "row " + std::to_string(i + 1) + ", column " + std::to_string(j + 1) + ": " + what;
    }
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].size() != columns)
      return "row " + std::to_string(i + 1) + " has " + std::to_string(rows[i].size()) +
             " numbers, the rows before it have " + std::to_string(columns);
  if (to.column_names.size() != columns) to.column_names.clear();
  to.tensor.shape = {static_cast<index_t>(rows.size()), static_cast<index_t>(columns)};
  return {};
}

// "[1 0; 0 1]": rows in brackets, as Matlab and Julia write them.
std::optional<std::string_view> rows_in_brackets(std::string_view text) {
  text = trimmed(text);
  if (!text.starts_with('[') || !text.ends_with(']')) return std::nullopt;
  text = text.substr(1, text.size() - 2);
  if (text.find(';') == std::string_view::npos) return std::nullopt;
  if (text.find_first_of("[]()") != std::string_view::npos) return std::nullopt;
  return text;
}

// "[1, 0], [0, 1]": a row each. Nullopt where there is one list, or none.
std::optional<std::string> lists_as_rows(std::string_view text) {
  text = trimmed(text);
  if (!text.starts_with('[') || !text.ends_with(']')) return std::nullopt;
  index_t depth = 0;
  for (std::size_t n = 0; n + 1 < text.size(); ++n) {
    depth += text[n] == '[' ? 1 : text[n] == ']' ? -1 : 0;
    if (depth == 0) return "[" + std::string(text) + "]";
  }
  return std::nullopt;
}

std::string read_text(std::string_view text, Pasted& to) {
  if (const std::optional<std::string_view> rows = rows_in_brackets(text))
    return read_cells(*rows, to);
  bool is_called = false;
  const std::optional<std::size_t> begin = lists_begin(text, is_called);
  if (!begin) return read_cells(text, to);
  to.is_lists = true;
  return Lists(text.substr(*begin), to).read(is_called);
}

}  // namespace

std::optional<Pasted> read_pasted(std::string_view text, const std::string& where,
                                  std::vector<Problem>& problems) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::optional<std::string> rows = lists_as_rows(text);
  Pasted pasted;
  std::string what = read_text(rows ? *rows : text, pasted);
  if (what.empty()) return pasted;
  problems.push_back({where, std::move(what)});
  return std::nullopt;
}

}  // namespace glasshead::wire
