#include "wire/case_json.h"

#include <algorithm>

#include <fmt/format.h>

#include "wire/json_tokens.h"

namespace glasshead::wire {

// Reads the tokens of a text into a tree.
class JsonTreeBuilder {
 public:
  JsonTreeBuilder(std::string_view text, JsonTree& tree, std::vector<Problem>& problems)
      : tokens_(text), tree_(tree), problems_(problems) {}

  // False, with a problem, if the text is not JSON or exceeds a limit.
  bool read() {
    while (true) {
      const JsonToken token = tokens_.next();
      if (token.kind == JsonTokenKind::wrong)
        return stop("not JSON: " + tokens_.where() + ": " + tokens_.what_is_wrong());
      if (next_ == Next::nothing) return token.kind == JsonTokenKind::end || unexpected(token);
      if (!take(token)) return false;
    }
  }

 private:
  struct Open {
    std::uint32_t node = 0;
    std::uint32_t last = 0;  // the child added last; 0: none yet
    std::string key;         // of the member being read
  };

  // What may come next.
  enum class Next : std::uint8_t {
    value,
    value_or_end,
    key,
    key_or_end,
    colon,
    comma_or_end,
    nothing
  };

  bool is_in_object() const { return tree_.nodes_[stack_.back().node].kind == JsonKind::object; }

  bool take(const JsonToken& token) {
    switch (next_) {
      case Next::value:
      case Next::value_or_end:
        return take_value(token);
      case Next::key:
      case Next::key_or_end:
        if (token.kind == JsonTokenKind::end_object && next_ == Next::key_or_end) return close();
        if (token.kind != JsonTokenKind::string) return unexpected(token);
        stack_.back().key = token.text;
        next_ = Next::colon;
        return true;
      case Next::colon:
        if (token.kind != JsonTokenKind::colon) return unexpected(token);
        next_ = Next::value;
        return true;
      case Next::comma_or_end:
        if (token.kind == JsonTokenKind::comma) {
          next_ = is_in_object() ? Next::key : Next::value;
          return true;
        }
        if (token.kind == (is_in_object() ? JsonTokenKind::end_object : JsonTokenKind::end_array))
          return close();
        return unexpected(token);
      case Next::nothing:
        break;
    }
    return unexpected(token);
  }

  bool take_value(const JsonToken& token) {
    switch (token.kind) {
      case JsonTokenKind::begin_object:
        return open(JsonKind::object, Next::key_or_end);
      case JsonTokenKind::begin_array:
        return open(JsonKind::array, Next::value_or_end);
      case JsonTokenKind::end_array:
        return next_ == Next::value_or_end ? close() : unexpected(token);
      case JsonTokenKind::string:
        return add_whole(JsonKind::string, token.text);
      case JsonTokenKind::number:
        return add_whole(JsonKind::number, token.text == "-0" ? "0" : token.text);
      case JsonTokenKind::literal_true:
      case JsonTokenKind::literal_false:
        return add_whole(JsonKind::boolean, token.text);
      case JsonTokenKind::literal_null:
        return add_whole(JsonKind::null, {});
      default:
        return unexpected(token);
    }
  }

  bool unexpected(const JsonToken& token) {
    const char* wanted = "a value";
    if (next_ == Next::value_or_end) wanted = "a value or ]";
    if (next_ == Next::key || next_ == Next::key_or_end) wanted = "a field's name in quotes";
    if (next_ == Next::colon) wanted = "a colon";
    if (next_ == Next::comma_or_end) wanted = is_in_object() ? "a comma or }" : "a comma or ]";
    if (next_ == Next::nothing) wanted = "nothing more";
    std::string found = "the end of the text";
    if (token.kind == JsonTokenKind::string)
      found = "the text \"" + excerpt(token.text) + "\"";
    else if (token.kind != JsonTokenKind::end)
      found = excerpt(token.text);
    return stop("not JSON: " + tokens_.where() + ": " + found + " where " + wanted +
                " should stand");
  }

  void value_is_read() { next_ = stack_.empty() ? Next::nothing : Next::comma_or_end; }

  bool add_whole(JsonKind kind, std::string_view text) {
    value_is_read();
    return add(kind, text);
  }

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

  bool open(JsonKind kind, Next next) {
    if (stack_.size() >= kMaxCaseDepth)
      return stop(fmt::format("nested more than {} deep", kMaxCaseDepth));
    if (!add(kind, {})) return false;
    stack_.push_back({static_cast<std::uint32_t>(tree_.nodes_.size() - 1), 0, {}});
    next_ = next;
    return true;
  }

  bool close() {
    stack_.pop_back();
    value_is_read();
    return true;
  }

  JsonTokens tokens_;
  JsonTree& tree_;
  std::vector<Problem>& problems_;
  std::vector<Open> stack_;
  Next next_ = Next::value;
};

std::optional<JsonTree> JsonTree::parse(std::string_view text, std::vector<Problem>& problems) {
  if (text.size() > kMaxCaseBytes) {
    problems.push_back({"case", fmt::format("{} bytes; a case has at most {} (64 MiB)", text.size(),
                                            kMaxCaseBytes)});
    return std::nullopt;
  }
  JsonTree tree;
  if (!JsonTreeBuilder(text, tree, problems).read()) return std::nullopt;
  return tree;
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
