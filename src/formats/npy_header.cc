#include "formats/npy_header.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "formats/elements.h"
#include "formats/shown.h"

namespace glasshead::formats {
namespace {

enum Key : std::size_t { key_descr, key_fortran_order, key_shape, key_count };
constexpr std::array<std::string_view, key_count> kKeyNames{"descr", "fortran_order", "shape"};

// Reads forward through the text; a syntax error is final, a bad value is noted and passed over.
class Parser {
 public:
  Parser(std::string_view text, NpyHeader& header, std::vector<Problem>& problems)
      : text_(text), header_(header), problems_(problems) {}

  bool parse() {
    const std::size_t before = problems_.size();
    if (!dictionary()) return false;
    for (std::size_t key = 0; key < key_count; ++key)
      if (!has_[key])
        problem("header", "the key '" + std::string(kKeyNames[key]) +
                              "' is missing; a header has descr, fortran_order and shape");
    return problems_.size() == before;
  }

 private:
  bool dictionary() {
    skip_space();
    if (!take('{')) return syntax("'{'");
    skip_space();
    while (!take('}')) {
      if (!entry()) return false;
      skip_space();
      if (take('}')) break;
      if (!take(',')) return syntax("',' or '}'");
      skip_space();
    }
    skip_space();
    return at_ == text_.size() || syntax("nothing but white space after the '}'");
  }

  bool entry() {
    std::string name;
    if (!string(name)) return false;
    skip_space();
    if (!take(':')) return syntax("':'");
    skip_space();
    for (std::size_t key = 0; key < key_count; ++key) {
      if (name != kKeyNames[key]) continue;
      if (has_[key]) problem("header", "the key " + shown(name) + " occurs twice");
      has_[key] = true;
      return key == key_descr ? descr() : key == key_fortran_order ? fortran_order() : shape();
    }
    problem("header",
            "the key " + shown(name) + " is unknown; a header has descr, fortran_order and shape");
    return false;  // its value could be anything, so nothing after it can be read
  }

  bool descr() {
    if (peek() == '[') {
      problem("descr",
              "a structured type; Glasshead reads arrays of one number type, such as "
              "'<f4' or '<f8'");
      return false;
    }
    return string(header_.descr);
  }

  bool fortran_order() {
    if (take_word("True")) {
      header_.is_fortran_order = true;
    } else if (take_word("False")) {
      header_.is_fortran_order = false;
    } else {
      return syntax("True or False for fortran_order");
    }
    return true;
  }

  bool shape() {
    header_.shape.clear();
    if (!take('(')) return syntax("'(' for shape, as in (3, 4)");
    skip_space();
    bool has_comma = false;
    while (!take(')')) {
      if (!header_.shape.empty() && !has_comma) return syntax("',' or ')'");
      index_t extent = 0;
      if (!integer(extent)) return false;
      header_.shape.push_back(extent);
      skip_space();
      has_comma = take(',');
      skip_space();
    }
    // In Python (3) is the number 3 in brackets, not a tuple.
    if (header_.shape.size() == 1 && !has_comma) return syntax("a tuple for shape, as in (3,)");
    if (header_.shape.size() > kMaxRank)
      problem("shape", "has " + std::to_string(header_.shape.size()) + " axes; at most " +
                           std::to_string(kMaxRank) + " are read");
    return true;
  }

  bool integer(index_t& value) {
    const std::size_t begin = at_;
    bool is_too_large = false;
    value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      const index_t digit = text_[at_++] - '0';
      if (value > (INT64_MAX - digit) / 10)
        is_too_large = true;
      else
        value = value * 10 + digit;
    }
    if (at_ == begin) return syntax("a size: a whole number, 0 or more");
    if (is_too_large) {
      problem("shape", "the size " + shown(text_.substr(begin, at_ - begin)) +
                           " is too large; sizes must be below 2^63");
      return false;
    }
    return true;
  }

  // '...' or "..." of printable characters without escapes: no type or key needs more.
  bool string(std::string& value) {
    const char quote = peek();
    if (quote != '\'' && quote != '"') return syntax("a string in quotes");
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\\' && text_[at_] != '\n')
      ++at_;
    if (peek() != quote) return syntax("the closing quote of a string without escapes");
    value = text_.substr(begin, at_ - begin);
    ++at_;
    return true;
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool take_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t'))
      ++at_;
  }

  bool syntax(const std::string& expected) {
    const std::string found =
        at_ < text_.size() ? "found " + shown(text_.substr(at_, 20)) : "the header ends";
    problem("header", found + " at its byte " + std::to_string(at_) + "; expected " + expected);
    return false;
  }

  void problem(const char* where, std::string what) {
    problems_.push_back({where, std::move(what)});
  }

  std::string_view text_;
  NpyHeader& header_;
  std::vector<Problem>& problems_;
  std::size_t at_ = 0;
  std::array<bool, key_count> has_{};
};

}  // namespace

bool parse_npy_header(std::string_view text, NpyHeader& header, std::vector<Problem>& problems) {
  return Parser(text, header, problems).parse();
}

}  // namespace glasshead::formats
