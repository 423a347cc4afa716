#include "wire/json_writer.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace glasshead::wire {
namespace {

// What `write` writes.
template <class Write>
std::string written(Write write) {
  std::string text;
  {
    JsonWriter json([&](std::string_view piece) { text += piece; });
    write(json);
  }
  return text;
}

TEST(JsonWriter, writes_compact_objects_and_arrays) {
  const std::string text = written([](JsonWriter& json) {
    json.begin_object();
    json.key("schema").value("glasshead.trace/1");
    json.key("shape").begin_array().value(3).value(index_t{2}).end_array();
    json.key("ok").value(true);
    json.key("reason").null();
    json.key("scale").value(0.7071067811865475);
    json.key("none").begin_object().end_object();
    json.key("empty").begin_array().end_array();
    json.end_object();
  });
  EXPECT_EQ(text, R"({"schema":"glasshead.trace/1","shape":[3,2],"ok":true,"reason":null,)"
                  R"("scale":0.7071067811865475,"none":{},"empty":[]})");
}

TEST(JsonWriter, writes_doubles_so_that_they_read_back_the_same) {
  const std::vector<double> numbers{0,     -0.0,   1,       -3,   0.1,
                                    1e300, 5e-324, 1.0 / 3, 1e-7, 123456789.125};
  const std::string text = written([&](JsonWriter& json) { json.values(numbers); });
  EXPECT_EQ(text, "[0,-0.0,1,-3,0.1,1e+300,5e-324,0.3333333333333333,1e-7,123456789.125]");
  const auto read = nlohmann::json::parse(text);
  for (std::size_t n = 0; n < numbers.size(); ++n) {
    EXPECT_EQ(read[n].get<double>(), numbers[n]);
    EXPECT_EQ(std::signbit(read[n].get<double>()), std::signbit(numbers[n])) << n;
  }
}

TEST(JsonWriter, spells_what_is_not_a_finite_number_as_text) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const std::vector<double> numbers{std::nan(""), kInf, -kInf};
  EXPECT_EQ(written([&](JsonWriter& json) { json.values(numbers); }), R"(["nan","inf","-inf"])");
}

TEST(JsonWriter, escapes_control_characters_quotes_and_backslashes) {
  const std::string text("a\"b\\c\n\t\r\b\f\x01\x1f\0z", 14);
  EXPECT_EQ(written([&](JsonWriter& json) { json.value(text); }),
            R"("a\"b\\c\n\t\r\b\f\u0001\u001f\u0000z")");
}

TEST(JsonWriter, passes_valid_utf8_and_replaces_every_other_byte) {
  const auto quoted = [](const std::string& text) {
    return written([&](JsonWriter& json) { json.value(text); });
  };
  const std::string good = "Σ — ′ 日本 😀 é \x7f";
  EXPECT_EQ(quoted(good), "\"" + good + "\"");
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(quoted("a\xFF"
                   "b"),
            "\"a" + bad + "b\"");
  EXPECT_EQ(quoted("\xC0\xAF"), "\"" + bad + bad + "\"");                      // overlong
  EXPECT_EQ(quoted("\xE0\x80\x80"), "\"" + bad + bad + bad + "\"");            // overlong
  EXPECT_EQ(quoted("\xED\xA0\x80"), "\"" + bad + bad + bad + "\"");            // a surrogate
  EXPECT_EQ(quoted("\xF4\x90\x80\x80"), "\"" + bad + bad + bad + bad + "\"");  // > U+10FFFF
  EXPECT_EQ(quoted("\xE2\x82"), "\"" + bad + bad + "\"");                      // cut short
}

TEST(JsonWriter, any_bytes_make_json_that_another_reader_accepts) {
  std::string all;
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; second += 5) {
      all += static_cast<char>(first);
      all += static_cast<char>(second);
    }
  }
  const std::string text = written([&](JsonWriter& json) {
    json.begin_object().key(all).values(std::vector<std::string>{all, "x"}).end_object();
  });
  EXPECT_TRUE(nlohmann::json::accept(text));
}

TEST(JsonWriter, hands_long_text_over_in_pieces_without_losing_any) {
  std::string text;
  std::size_t pieces = 0;
  std::size_t longest = 0;
  {
    JsonWriter json([&](std::string_view piece) {
      text += piece;
      longest = std::max(longest, piece.size());
      ++pieces;
    });
    json.begin_array();
    for (int n = 0; n < 10000; ++n) json.value(n);
    json.end_array();
    EXPECT_TRUE(json.is_complete());
  }
  EXPECT_GT(pieces, 4U);
  EXPECT_LE(longest, 8192U);
  const auto read = nlohmann::json::parse(text);
  ASSERT_EQ(read.size(), 10000U);
  for (int n = 0; n < 10000; ++n) ASSERT_EQ(read[static_cast<std::size_t>(n)], n);
}

TEST(JsonWriter, is_complete_only_when_everything_has_ended) {
  JsonWriter json([](std::string_view) {});
  EXPECT_FALSE(json.is_complete());
  json.begin_array().value(1);
  EXPECT_FALSE(json.is_complete());
  json.end_array();
  EXPECT_TRUE(json.is_complete());
}

#ifndef NDEBUG
TEST(JsonWriterDeathTest, calls_out_of_order_stop_debug_builds) {
  const auto ignore = [](std::string_view) {};
  EXPECT_DEATH(JsonWriter(ignore).begin_object().value(1), "");
  EXPECT_DEATH(JsonWriter(ignore).begin_array().key("x"), "");
  EXPECT_DEATH(JsonWriter(ignore).begin_array().end_object(), "");
  EXPECT_DEATH(JsonWriter(ignore).begin_object().key("x").end_object(), "");
  EXPECT_DEATH(JsonWriter(ignore).value(1).value(2), "");
}
#endif

}  // namespace
}  // namespace glasshead::wire
