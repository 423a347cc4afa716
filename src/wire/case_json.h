// JSON text as a flat tree that keeps every number as it was written ("0.50", not 0.5), so that
// inputs print as given. Used for reading cases.
//
//   std::optional<JsonTree> tree = JsonTree::parse(text, problems);
//   JsonValue x = tree->root().find("X");
//   x.kind(); x.size(); x.first().text();
//
// Text is hostile: sizes and depth are limited, nothing recurses on the input, and a number that no
// double can hold is kept as text, so that all of them can be reported by field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "glasshead/error.h"

namespace glasshead::wire {

enum class JsonKind : std::uint8_t { null, boolean, number, string, array, object };

// Limits of one text. A case that needs more belongs into tensor files.
inline constexpr std::size_t kMaxCaseBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMaxCaseValues = 10'000'000;
// The deepest field of the format, blocks[0].attention.bias[0].dense[h][i][j], lies 8 deep.
inline constexpr std::size_t kMaxCaseDepth = 24;

class JsonTree;

// A value of the tree, or of nothing (a field that isn't there). Valid while its tree lives.
class JsonValue {
 public:
  JsonValue() = default;
  JsonValue(const JsonTree* tree, std::uint32_t node) : tree_(tree), node_(node) {}

  explicit operator bool() const { return tree_ != nullptr; }
  JsonKind kind() const;
  bool is(JsonKind kind_) const { return tree_ != nullptr && kind() == kind_; }
  std::string_view text() const;  // of a number or a string; "true" or "false" of a boolean
  std::string_view key() const;   // of a member of an object
  std::size_t size() const;       // elements or members
  JsonValue first() const;        // of an array or object; false when empty
  JsonValue next() const;         // the sibling after this one; false when last
  JsonValue find(std::string_view key) const;  // a member; false when absent or not an object

 private:
  const JsonTree* tree_ = nullptr;
  std::uint32_t node_ = 0;
};

class JsonTree {
 public:
  // nullopt, and a problem with the field path it happened at, if `text` isn't JSON (with // and
  // /* */ comments) or exceeds a limit.
  static std::optional<JsonTree> parse(std::string_view text, std::vector<Problem>& problems);

  JsonValue root() const { return {this, 0}; }

 private:
  friend class JsonValue;
  friend class JsonTreeBuilder;
  struct Node {
    JsonKind kind = JsonKind::null;
    std::uint32_t text = 0, text_size = 0;  // in text_
    std::uint32_t key = 0, key_size = 0;    // in text_
    std::uint32_t child = 0, next = 0;      // 0: none, as node 0 is the root
    std::uint32_t count = 0;
  };
  std::vector<Node> nodes_;
  std::string text_;
};

// "an array", "a string", "the number 3", ...: for messages.
std::string describe(JsonValue value);
// Text for a message: cut to 40 bytes at a character's edge, control characters escaped.
std::string excerpt(std::string_view text);

}  // namespace glasshead::wire
