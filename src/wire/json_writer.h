// Writes JSON piece by piece, so that a trace larger than memory can go to a file as it is made.
//
//   JsonWriter json([&](std::string_view text) { file.append(text); });
//   json.begin_object();
//   json.key("weights").values(row);       // {"weights":[0.3302384506733431,0.6697615493266569]}
//   json.end_object();
//   json.flush();
//
// No spaces and no line breaks. Doubles by `shortest` (decimal.h): they read back the same; "nan",
// "inf" and "-inf" as strings. Text is taken as UTF-8; each byte that is none becomes U+FFFD.
// Calls out of order (a value without its key, an end without its begin) are the caller's mistake
// and stop debug builds.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "glasshead/tensor.h"

namespace glasshead::wire {

class JsonWriter {
 public:
  using Sink = std::function<void(std::string_view)>;

  // The sink gets the text in pieces of some kilobytes, in order.
  explicit JsonWriter(Sink sink);
  ~JsonWriter();  // flushes
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);  // inside an object, before each value

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(double x);
  JsonWriter& value(std::int64_t x);
  template <std::integral Integer>
  JsonWriter& value(Integer x) {
    if constexpr (std::same_as<Integer, bool>)
      return boolean(x);
    else
      return value(static_cast<std::int64_t>(x));
  }
  JsonWriter& null();

  // Whole arrays.
  JsonWriter& values(std::span<const double> numbers);
  JsonWriter& values(std::span<const index_t> numbers);
  JsonWriter& values(std::span<const std::string> texts);

  // A value that is JSON already: another writer's complete output.
  JsonWriter& raw(std::string_view json);

  // Hands what is still held to the sink.
  void flush();
  // All that was begun has ended, and there is something.
  bool is_complete() const { return levels_.empty() && has_value_; }

 private:
  struct Level {
    bool is_object = false;
    bool is_empty = true;  // no comma before the next element
    bool has_key = false;  // a key waits for its value
  };

  JsonWriter& boolean(bool is_true);
  void before_value();
  void begin(bool is_object, char bracket);
  void end(bool is_object, char bracket);
  void add(std::string_view text);
  void add_quoted(std::string_view text);

  Sink sink_;
  std::string buffer_;
  std::vector<Level> levels_;
  bool has_value_ = false;
};

}  // namespace glasshead::wire
