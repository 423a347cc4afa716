#include "wire/command_line.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string_view>

#include "wire/case_builder.h"
#include "wire/decimal.h"

namespace glasshead::wire {
namespace {

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

// One word of a POSIX shell.
std::string quoted(const std::string& text) {
  const bool is_plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_word({&c, 1}) || std::string_view("/:,=+").find(c) != std::string_view::npos;
  });
  if (is_plain) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

// What names the row or key `n` on a command line: its label, or its index; "" if neither does.
std::string name_of(const std::vector<std::string>* labels, index_t n) {
  std::string why_not, index = std::to_string(n);
  if (labels == nullptr || labels->empty()) return index;
  const std::string& label = (*labels)[static_cast<std::size_t>(n)];
  if (is_word(label) && find_row(*labels, label, why_not) == n) return label;
  return find_row(*labels, index, why_not) == n ? index : "";
}

class Line {
 public:
  Line(const Case& c, std::vector<Problem>& problems) : c_(c), problems_(problems) {
    line_ = "glasshead trace " + quoted(c.name);
  }

  void add(const std::string& word) { line_ += " " + quoted(word); }
  void add(const char* flag, const std::string& value) {
    line_ += std::string(" ") + flag + " ";
    line_ += quoted(value);
  }

  void set(const Edit::Set& set) {
    std::string at;
    const auto value = std::find_if(c_.inputs.begin(), c_.inputs.end(),
                                    [&](const auto& input) { return input.first == set.matrix; });
    for (std::size_t axis = 0; axis < set.at.size(); ++axis) {
      std::string name = set.at[axis];
      if (set.is_by_index && value != c_.inputs.end()) {
        const std::size_t from_last = value->second.shape.size() - 1 - axis;
        name = name_of(axis_labels(c_, set.matrix, from_last),
                       static_cast<index_t>(std::strtoll(name.c_str(), nullptr, 10)));
      }
      if (name.empty()) no_name(set.matrix, set.at[axis]);
      at += (axis == 0 ? "" : ",") + name;
    }
    std::string values;
    for (std::size_t n = 0; n < set.values.size(); ++n)
      values += (n == 0 ? "" : ",") + (set.texts.empty() ? shortest(set.values[n]) : set.texts[n]);
    add("--set", set.matrix + (at.empty() ? "" : "[" + at + "]") + "=" + values);
  }

  void hide(index_t key) {
    const bool has_own = !c_.key_labels.empty();
    const std::string name = name_of(has_own ? &c_.key_labels : &c_.context_labels, key);
    if (name.empty()) no_name("key", std::to_string(key));
    add("--hide", name);
  }

  std::string take() { return std::move(line_); }

 private:
  void no_name(const std::string& what, const std::string& index) {
    problems_.push_back(
        {what, "index " + index + " can't be written in a command: a label is " + index + ", too"});
  }

  const Case& c_;
  std::vector<Problem>& problems_;
  std::string line_;
};

}  // namespace

std::optional<std::string> command_line(const Case& original, const Edit& edit,
                                        const std::vector<std::string>& more,
                                        std::vector<Problem>& problems) {
  Line line(original, problems);
  for (const Edit::Set& set : edit.set) line.set(set);
  for (const index_t key : edit.hide_keys) line.hide(key);
  for (const std::string& key : edit.hide) line.add("--hide", key);
  if (edit.mask) line.add("--mask", *edit.mask);
  if (edit.scale) line.add("--scale", shortest(*edit.scale));
  if (edit.empty_row) line.add("--empty-row", *edit.empty_row == EmptyRow::zero ? "zero" : "error");
  for (const std::string& word : more) line.add(word);
  if (!problems.empty()) return std::nullopt;
  return line.take();
}

}  // namespace glasshead::wire
