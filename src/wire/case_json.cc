#include "wire/case_json.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace glasshead::wire {

// Receives nlohmann's parse events. Returning false stops the parse.
class JsonTreeBuilder {
 public:
  using Json = nlohmann::json;

  // `overflows`: the values, by node number, that an earlier attempt found too large for a double,
  // with their text; this attempt reads a stand-in of the same length.
  JsonTreeBuilder(JsonTree& tree, std::vector<std::pair<std::size_t, std::string>>& overflows,
                  std::vector<Problem>& problems)
      : tree_(tree), overflows_(overflows), problems_(problems) {}

  bool has_new_overflow() const { return has_new_overflow_; }
  std::size_t overflow_end() const { return overflow_end_; }

  bool null() { return add(JsonKind::null, {}); }
  bool boolean(bool value) { return add(JsonKind::boolean, value ? "true" : "false"); }
  bool number_integer(Json::number_integer_t value) {
    return add(JsonKind::number, fmt::format("{}", value));
  }
  bool number_unsigned(Json::number_unsigned_t value) {
    return add(JsonKind::number, fmt::format("{}", value));
  }
  bool number_float(Json::number_float_t, const std::string& text) {
    const std::size_t node = tree_.nodes_.size();
    for (const auto& [at, original] : overflows_)
      if (at == node) return add(JsonKind::number, original);
    return add(JsonKind::number, text);
  }
  bool string(std::string& value) { return add(JsonKind::string, value); }
  bool binary(Json::binary_t&) { return false; }  // no JSON text holds one
  bool start_object(std::size_t) { return open(JsonKind::object); }
  bool start_array(std::size_t) { return open(JsonKind::array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    stack_.back().key = name;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception& error) {
    if (error.id == 406) {  // a number that overflows: the lexer stands right behind it
      has_new_overflow_ = true;
      overflow_end_ = position;
      overflows_.emplace_back(tree_.nodes_.size(), token);
      return false;
    }
    std::string what = error.what();
    const std::size_t id_end = what.find("] ");
    if (id_end != std::string::npos) what.erase(0, id_end + 2);
    // An invalid byte is shown by nlohmann as it stands; messages are valid UTF-8.
    const bool is_ascii = std::all_of(what.begin(), what.end(),
                                      [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    if (!is_ascii) {
      std::string shown;
      for (const char c : what) {
        const auto byte = static_cast<unsigned char>(c);
        shown += byte < 0x80 ? std::string(1, c) : fmt::format("<{:02X}>", byte);
      }
      what = shown;
    }
    return stop("not JSON: " + what);
  }

 private:
  struct Open {
    std::uint32_t node = 0;
    std::uint32_t last = 0;  // the child added last; 0: none yet
    std::string key;         // of the member being read
  };

  // Where the value being read stands: "attention.mask[0]"; "case" for the whole.
  std::string path() const {
    std::string path;
    for (const Open& open : stack_) {
      const JsonTree::Node& node = tree_.nodes_[open.node];
      const bool is_inside = &open != &stack_.back();  // its last element is the next one up
      if (node.kind == JsonKind::array)
        path += fmt::format("[{}]", node.count - (is_inside ? 1 : 0));
      else if (!open.key.empty())
        path += (path.empty() ? "" : ".") + excerpt(open.key);
    }
    return path.empty() ? "case" : path;
  }

  bool stop(std::string what) {
    problems_.push_back({path(), std::move(what)});
    return false;
  }

  std::uint32_t keep(std::string_view text) {
    const std::size_t at = tree_.text_.size();
    tree_.text_ += text;
    return static_cast<std::uint32_t>(at);
  }

  bool add(JsonKind kind, std::string_view text) {
    if (tree_.nodes_.size() >= kMaxCaseValues)
      return stop(fmt::format("more than {} values in one case", kMaxCaseValues));
    const auto index = static_cast<std::uint32_t>(tree_.nodes_.size());
    JsonTree::Node node;
    node.kind = kind;
    node.text = keep(text);
    node.text_size = static_cast<std::uint32_t>(text.size());
    if (!stack_.empty()) {
      Open& parent = stack_.back();
      JsonTree::Node& parent_node = tree_.nodes_[parent.node];
      if (parent_node.kind == JsonKind::object) {
        node.key = keep(parent.key);
        node.key_size = static_cast<std::uint32_t>(parent.key.size());
      }
      (parent.last == 0 ? parent_node.child : tree_.nodes_[parent.last].next) = index;
      parent.last = index;
      ++parent_node.count;
    }
    tree_.nodes_.push_back(node);
    return true;
  }

  bool open(JsonKind kind) {
    if (stack_.size() >= kMaxCaseDepth)
      return stop(fmt::format("nested more than {} deep", kMaxCaseDepth));
    if (!add(kind, {})) return false;
    stack_.push_back({static_cast<std::uint32_t>(tree_.nodes_.size() - 1), 0, {}});
    return true;
  }

  bool close() {
    stack_.pop_back();
    return true;
  }

  JsonTree& tree_;
  std::vector<std::pair<std::size_t, std::string>>& overflows_;
  std::vector<Problem>& problems_;
  std::vector<Open> stack_;
  bool has_new_overflow_ = false;
  std::size_t overflow_end_ = 0;
};

std::optional<JsonTree> JsonTree::parse(std::string_view text, std::vector<Problem>& problems) {
  if (text.size() > kMaxCaseBytes) {
    problems.push_back({"case", fmt::format("{} bytes; a case has at most {} (64 MiB)", text.size(),
                                            kMaxCaseBytes)});
    return std::nullopt;
  }
  // nlohmann stops at a number that overflows. It is then replaced by a stand-in and the text read
  // again, so that every such number is found; each costs a pass, hence the limit.
  constexpr std::size_t kMaxOverflows = 32;
  std::vector<std::pair<std::size_t, std::string>> overflows;
  std::string copy;
  while (true) {
    JsonTree tree;
    JsonTreeBuilder builder(tree, overflows, problems);
    const std::string_view now = copy.empty() ? text : std::string_view(copy);
    const bool is_read = nlohmann::json::sax_parse(
        now.begin(), now.end(), &builder, nlohmann::json::input_format_t::json, /*strict=*/true,
        /*ignore_comments=*/true);
    if (is_read) return tree;
    if (!builder.has_new_overflow()) return std::nullopt;
    const std::size_t size = overflows.back().second.size();
    const std::size_t end = builder.overflow_end();
    if (overflows.size() > kMaxOverflows || size < 3 || end < size || end > text.size()) {
      problems.push_back({"case", "too many numbers that no double can hold, the last one " +
                                      excerpt(overflows.back().second)});
      return std::nullopt;
    }
    if (copy.empty()) copy = text;
    copy.replace(end - size, size, "0." + std::string(size - 2, '0'));
  }
}

JsonKind JsonValue::kind() const { return tree_->nodes_[node_].kind; }

std::string_view JsonValue::text() const {
  const JsonTree::Node& node = tree_->nodes_[node_];
  return std::string_view(tree_->text_).substr(node.text, node.text_size);
}

std::string_view JsonValue::key() const {
  const JsonTree::Node& node = tree_->nodes_[node_];
  return std::string_view(tree_->text_).substr(node.key, node.key_size);
}

std::size_t JsonValue::size() const { return tree_->nodes_[node_].count; }

JsonValue JsonValue::first() const {
  const std::uint32_t child = tree_->nodes_[node_].child;
  return child == 0 ? JsonValue() : JsonValue(tree_, child);
}

JsonValue JsonValue::next() const {
  const std::uint32_t sibling = tree_->nodes_[node_].next;
  return sibling == 0 ? JsonValue() : JsonValue(tree_, sibling);
}

JsonValue JsonValue::find(std::string_view key) const {
  if (!is(JsonKind::object)) return {};
  for (JsonValue member = first(); member; member = member.next())
    if (member.key() == key) return member;
  return {};
}

std::string describe(JsonValue value) {
  switch (value.kind()) {
    case JsonKind::null:
      return "null";
    case JsonKind::boolean:
      return std::string(value.text());
    case JsonKind::number:
      return "the number " + excerpt(value.text());
    case JsonKind::string:
      return "the text \"" + excerpt(value.text()) + "\"";
    case JsonKind::array:
      return value.size() == 0 ? "an empty list" : "a list";
    case JsonKind::object:
      return "an object";
  }
  return {};
}

std::string excerpt(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  std::size_t end = std::min(text.size(), kLongest);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80)
    --end;
  std::string shown;
  for (const char c : text.substr(0, end)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F)
      shown += fmt::format("\\u{:04x}", byte);
    else
      shown += c;
  }
  return end < text.size() ? shown + "…" : shown;
}

}  // namespace glasshead::wire
