#include "wire/json_tokens.h"

#include <algorithm>
#include <utility>

#include "wire/utf8.h"

namespace glasshead::wire {
namespace {

// A byte for a message: "'x'", or "byte <C3>" where it is no printable ASCII.
std::string shown_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x20 && byte < 0x7F) return std::string("'") + c + "'";
  constexpr std::string_view kHex = "0123456789ABCDEF";
  return std::string("byte <") + kHex[byte >> 4] + kHex[byte & 15] + ">";
}

bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

JsonTokens::JsonTokens(std::string_view text) : text_(text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
}

std::string JsonTokens::where() const {
  const std::string_view before = text_.substr(0, begin_);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  return "line " + std::to_string(line) + ", column " + std::to_string(begin_ - line_start + 1);
}

JsonToken JsonTokens::wrong(std::string what) {
  what_is_wrong_ = std::move(what);
  return {JsonTokenKind::wrong, text_.substr(begin_, 0)};
}

JsonToken JsonTokens::one(JsonTokenKind kind) {
  ++at_;
  return {kind, text_.substr(begin_, 1)};
}

JsonToken JsonTokens::next() {
  if (!skip_space()) return wrong("a comment that does not end");
  begin_ = at_;
  if (at_ >= text_.size()) return {JsonTokenKind::end, {}};
  switch (text_[at_]) {
    case '{':
      return one(JsonTokenKind::begin_object);
    case '}':
      return one(JsonTokenKind::end_object);
    case '[':
      return one(JsonTokenKind::begin_array);
    case ']':
      return one(JsonTokenKind::end_array);
    case ':':
      return one(JsonTokenKind::colon);
    case ',':
      return one(JsonTokenKind::comma);
    case '"':
      return string();
    default:
      return is_at('-') || is_at_digit() ? number() : word();
  }
}

// False: a comment has no end.
bool JsonTokens::skip_space() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
      ++at_;
    else if (c == '/' && at_ + 1 < text_.size() && (text_[at_ + 1] == '/' || text_[at_ + 1] == '*'))
      begin_ = at_;
    else
      return true;
    if (c == '/' && !skip_comment()) return false;
  }
  return true;
}

bool JsonTokens::skip_comment() {
  const bool is_line = text_[at_ + 1] == '/';
  const std::size_t end = text_.find(is_line ? "\n" : "*/", at_ + 2);
  if (end == std::string_view::npos) {
    at_ = text_.size();
    return is_line;
  }
  at_ = end + (is_line ? 1 : 2);
  return true;
}

JsonToken JsonTokens::string() {
  const std::size_t first = ++at_;
  bool has_escapes = false;
  std::size_t run = first;  // what stands from here on is not yet in unescaped_
  unescaped_.clear();
  while (at_ < text_.size() && text_[at_] != '"') {
    const auto byte = static_cast<unsigned char>(text_[at_]);
    if (byte < 0x20) return wrong("a text with " + shown_byte(text_[at_]) + " in it unescaped");
    if (byte == '\\') {
      unescaped_ += text_.substr(run, at_ - run);
      has_escapes = true;
      if (!escape()) return wrong("a text with an escape that JSON does not have");
      run = at_;
      continue;
    }
    const std::size_t length = byte < 0x80 ? 1 : utf8_length(text_.substr(at_));
    if (length == 0) return wrong("a text that is not UTF-8: " + shown_byte(text_[at_]));
    at_ += length;
  }
  if (at_ >= text_.size()) return wrong("a text without its closing quote");
  const std::string_view said = text_.substr(first, at_ - first);
  if (has_escapes) unescaped_ += text_.substr(run, at_ - run);
  ++at_;
  return {JsonTokenKind::string, has_escapes ? std::string_view(unescaped_) : said};
}

bool JsonTokens::escape() {
  if (++at_ >= text_.size()) return false;
  constexpr std::string_view kNames = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  const char name = text_[at_++];
  if (name == 'u') return unicode_escape();
  const std::size_t n = kNames.find(name);
  if (n == std::string_view::npos) return false;
  unescaped_ += kMeanings[n];
  return true;
}

// \uXXXX, or two that make a surrogate pair.
bool JsonTokens::unicode_escape() {
  std::uint32_t point = 0, low = 0;
  if (!four_digits(point) || (point >= 0xDC00 && point <= 0xDFFF)) return false;
  if (point >= 0xD800 && point <= 0xDBFF) {
    if (!is_at('\\') || at_ + 1 >= text_.size() || text_[at_ + 1] != 'u') return false;
    at_ += 2;
    if (!four_digits(low) || low < 0xDC00 || low > 0xDFFF) return false;
    point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
  }
  append_utf8(unescaped_, point);
  return true;
}

bool JsonTokens::four_digits(std::uint32_t& value) {
  value = 0;
  for (int n = 0; n < 4; ++n, ++at_) {
    if (at_ >= text_.size()) return false;
    const char c = text_[at_];
    const bool is_digit = c >= '0' && c <= '9';
    const char letter = static_cast<char>(c | 0x20);
    if (!is_digit && (letter < 'a' || letter > 'f')) return false;
    value = 16 * value + static_cast<std::uint32_t>(is_digit ? c - '0' : letter - 'a' + 10);
  }
  return true;
}

JsonToken JsonTokens::number() {
  const auto digits = [this] {
    const std::size_t first = at_;
    while (is_at_digit()) ++at_;
    return at_ > first;
  };
  if (is_at('-')) ++at_;
  const bool has_zero = is_at('0');
  if (has_zero) ++at_;
  if (!has_zero && !digits()) return wrong("a minus sign without a number");
  if (is_at_digit()) return wrong("a number with a 0 in front");
  if (is_at('.')) {
    ++at_;
    if (!digits()) return wrong("a number without digits after its point");
  }
  if (is_at('e') || is_at('E')) {
    ++at_;
    if (is_at('+') || is_at('-')) ++at_;
    if (!digits()) return wrong("a number without digits in its exponent");
  }
  return {JsonTokenKind::number, text_.substr(begin_, at_ - begin_)};
}

JsonToken JsonTokens::word() {
  while (at_ < text_.size() && is_word_char(text_[at_])) ++at_;
  const std::string_view word = text_.substr(begin_, at_ - begin_);
  if (word == "true") return {JsonTokenKind::literal_true, word};
  if (word == "false") return {JsonTokenKind::literal_false, word};
  if (word == "null") return {JsonTokenKind::literal_null, word};
  constexpr std::size_t kLongest = 20;
  if (word.empty()) return wrong(shown_byte(text_[at_]));
  return wrong("the word " + std::string(word.substr(0, kLongest)) +
               (word.size() > kLongest ? "…" : ""));
}

}  // namespace glasshead::wire
