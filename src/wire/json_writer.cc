#include "wire/json_writer.h"

#include <cmath>
#include <utility>

#include "base/assert.h"
#include "wire/decimal.h"
#include "wire/utf8.h"

namespace glasshead::wire {
namespace {

constexpr std::size_t kBufferSize = 8192;

std::string escaped(char c) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    default: {
      constexpr std::string_view kHex = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(c);
      return std::string("\\u00") + kHex[byte >> 4] + kHex[byte & 15];
    }
  }
}

}  // namespace

JsonWriter::JsonWriter(Sink sink) : sink_(std::move(sink)) { buffer_.reserve(kBufferSize); }

JsonWriter::~JsonWriter() { flush(); }

void JsonWriter::flush() {
  if (buffer_.empty()) return;
  sink_(buffer_);
  buffer_.clear();
}

void JsonWriter::add(std::string_view text) {
  if (buffer_.size() + text.size() > kBufferSize) flush();
  buffer_ += text;
}

void JsonWriter::add_quoted(std::string_view text) {
  add("\"");
  std::size_t begin = 0, at = 0;  // what stands between needs no escape
  while (at < text.size()) {
    const char c = text[at];
    const auto byte = static_cast<unsigned char>(c);
    const std::size_t length = byte < 0x80 ? 1 : utf8_length(text.substr(at));
    if (length > 1 || (length == 1 && byte >= 0x20 && c != '"' && c != '\\')) {
      at += length;
      continue;
    }
    add(text.substr(begin, at - begin));
    if (length == 0)
      add("\xEF\xBF\xBD");
    else
      add(escaped(c));
    begin = ++at;
  }
  add(text.substr(begin));
  add("\"");
}

void JsonWriter::before_value() {
  GLASSHEAD_ASSERT(!levels_.empty() || !has_value_);  // one value at the top
  has_value_ = true;
  if (levels_.empty()) return;
  Level& level = levels_.back();
  GLASSHEAD_ASSERT(level.is_object == level.has_key);
  if (!level.is_object && !level.is_empty) add(",");
  level.is_empty = false;
  level.has_key = false;
}

void JsonWriter::begin(bool is_object, char bracket) {
  before_value();
  levels_.push_back({is_object, true, false});
  add({&bracket, 1});
}

void JsonWriter::end(bool is_object, char bracket) {
  GLASSHEAD_ASSERT(!levels_.empty() && levels_.back().is_object == is_object &&
                   !levels_.back().has_key);
  levels_.pop_back();
  add({&bracket, 1});
}

JsonWriter& JsonWriter::begin_object() {
  begin(true, '{');
  return *this;
}

JsonWriter& JsonWriter::end_object() {
  end(true, '}');
  return *this;
}

JsonWriter& JsonWriter::begin_array() {
  begin(false, '[');
  return *this;
}

JsonWriter& JsonWriter::end_array() {
  end(false, ']');
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  GLASSHEAD_ASSERT(!levels_.empty() && levels_.back().is_object && !levels_.back().has_key);
  Level& level = levels_.back();
  if (!level.is_empty) add(",");
  level.is_empty = false;
  level.has_key = true;
  add_quoted(name);
  add(":");
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  before_value();
  add_quoted(text);
  return *this;
}

JsonWriter& JsonWriter::value(double x) {
  if (!std::isfinite(x)) return value(std::string_view(shortest(x)));
  before_value();
  add(shortest(x));
  return *this;
}

JsonWriter& JsonWriter::value(std::int64_t x) {
  before_value();
  add(std::to_string(x));
  return *this;
}

JsonWriter& JsonWriter::boolean(bool is_true) {
  before_value();
  add(is_true ? "true" : "false");
  return *this;
}

JsonWriter& JsonWriter::null() {
  before_value();
  add("null");
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  before_value();
  add(json);
  return *this;
}

JsonWriter& JsonWriter::values(std::span<const double> numbers) {
  begin_array();
  for (const double x : numbers) value(x);
  return end_array();
}

JsonWriter& JsonWriter::values(std::span<const index_t> numbers) {
  begin_array();
  for (const index_t x : numbers) value(x);
  return end_array();
}

JsonWriter& JsonWriter::values(std::span<const std::string> texts) {
  begin_array();
  for (const std::string& text : texts) value(text);
  return end_array();
}

}  // namespace glasshead::wire
