// JSON text (RFC 8259) cut into its tokens. // and /* */ comments count as white space, and a byte
// order mark at the start is passed over.
//
//   JsonTokens tokens("{\"a\": 1.50}");
//   tokens.next();    // begin_object, then string "a", colon, number "1.50", end_object, end
//
// Text is hostile: nothing is read beyond it, and nothing recurses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace glasshead::wire {

enum class JsonTokenKind : std::uint8_t {
  begin_object,
  end_object,
  begin_array,
  end_array,
  colon,
  comma,
  string,
  number,
  literal_true,
  literal_false,
  literal_null,
  end,    // of the text
  wrong,  // no token: see JsonTokens::what_is_wrong
};

struct JsonToken {
  JsonTokenKind kind = JsonTokenKind::end;
  // Of a string what it says, escapes resolved, valid UTF-8; of any other token the text itself.
  // Valid until the next token is asked for.
  std::string_view text;
};

class JsonTokens {
 public:
  explicit JsonTokens(std::string_view text);

  JsonToken next();

  // Where the last token begins: "line 3, column 14", columns in bytes.
  std::string where() const;
  const std::string& what_is_wrong() const { return what_is_wrong_; }  // of a wrong token

 private:
  bool skip_space();
  bool skip_comment();
  JsonToken string();
  bool escape();
  bool unicode_escape();
  bool four_digits(std::uint32_t& value);
  JsonToken number();
  JsonToken word();
  JsonToken one(JsonTokenKind kind);
  JsonToken wrong(std::string what);

  bool is_at(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool is_at_digit() const { return at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; }

  std::string_view text_;
  std::size_t at_ = 0, begin_ = 0;
  std::string unescaped_;
  std::string what_is_wrong_;
};

}  // namespace glasshead::wire
