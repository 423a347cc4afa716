#include "formats/config.h"

#include <limits>

#include <gtest/gtest.h>

#include "formats/bytes.h"

namespace glasshead::test {
namespace {

using formats::Config;
using formats::ConfigNumbers;
using formats::ConfigTexts;
using formats::parse_config;
using formats::Reader;

Config accepted(const std::string& text) {
  Config config;
  std::vector<Problem> problems;
  EXPECT_TRUE(parse_config(text, config, problems)) << lines(problems);
  EXPECT_EQ(lines(problems), "");
  return config;
}

std::string refused(const std::string& text) {
  Config config;
  std::vector<Problem> problems;
  EXPECT_FALSE(parse_config(text, config, problems));
  EXPECT_TRUE(config.empty());
  EXPECT_EQ(problems.size(), 1U);
  return lines(problems);
}

const char* const kLlama = R"({
  "model_type": "llama", "hidden_size": 64, "rms_norm_eps": 1e-05, "theta": 10000.0, "tied": true,
  "sliding_window": null, "offset": -3, "huge": 1000000000000000019884624838656,
  "seed": 18446744073709551615, "eos_token_id": [2, 7], "factors": [1, 1.5, -2],
  "layer_types": ["full_attention", "sliding_attention"], "architectures": [], "mixed": [1, "a"],
  "rope_parameters": {"full_attention": {"rope_theta": 1e6}, "kind": "llama3"}})";

TEST(Config, values_are_read_by_their_keys_and_paths) {
  const Config config = accepted(kLlama);
  std::vector<Problem> problems;
  Reader read(config, problems);
  EXPECT_EQ(read.text("model_type"), "llama");
  EXPECT_EQ(read.whole("hidden_size"), 64);
  EXPECT_EQ(read.whole("theta"), 10000);  // a whole number written with a point
  EXPECT_EQ(read.number("rms_norm_eps"), 1e-5);
  EXPECT_EQ(read.number("offset"), -3);
  EXPECT_EQ(read.number("huge"), 1e30);
  EXPECT_EQ(read.number("seed"), 0x1p64);
  EXPECT_TRUE(read.flag_or("tied", false));
  EXPECT_EQ(read.wholes_or("eos_token_id", {}), (std::vector<index_t>{2, 7}));
  EXPECT_EQ(read.wholes_or("hidden_size", {}), std::vector<index_t>{64});
  EXPECT_EQ(read.numbers_or("factors", {}), (std::vector<double>{1, 1.5, -2}));
  EXPECT_EQ(read.texts_or("layer_types", {}),
            (std::vector<std::string>{"full_attention", "sliding_attention"}));
  EXPECT_EQ(read.texts_or("architectures", {"x"}), std::vector<std::string>{});
  EXPECT_EQ(read.number("rope_parameters/full_attention/rope_theta"), 1e6);
  EXPECT_EQ(read.text("rope_parameters/kind"), "llama3");
  EXPECT_EQ(lines(problems), "");
}

TEST(Config, an_absent_key_has_the_value_for_it_and_null_is_absent) {
  const Config config = accepted(kLlama);
  std::vector<Problem> problems;
  Reader read(config, problems);
  EXPECT_FALSE(read.has("sliding_window"));
  EXPECT_FALSE(read.has("rope_parameters/local"));
  EXPECT_FALSE(read.has("model_type/llama"));
  EXPECT_TRUE(read.has("rope_parameters"));
  EXPECT_EQ(read.whole_or("sliding_window", 4096), 4096);
  EXPECT_EQ(read.number_or("scale", 0.5), 0.5);
  EXPECT_TRUE(read.flag_or("bias", true));
  EXPECT_EQ(read.text_or("act", "silu"), "silu");
  EXPECT_EQ(read.wholes_or("a", {1}), std::vector<index_t>{1});
  EXPECT_EQ(read.numbers_or("b", {2}), std::vector<double>{2});
  EXPECT_EQ(read.texts_or("c", {"d"}), std::vector<std::string>{"d"});
  EXPECT_EQ(lines(problems), "");
}

TEST(Config, a_wrong_value_is_a_problem_that_names_the_key_what_is_there_and_what_would_be_right) {
  const Config config = accepted(kLlama);
  std::vector<Problem> problems;
  Reader read(config, problems);
  EXPECT_EQ(read.whole("layers"), 0);
  EXPECT_EQ(read.whole("offset"), 0);
  EXPECT_EQ(read.whole_or("rms_norm_eps", 5), 5);
  EXPECT_EQ(read.whole("seed"), 0);
  EXPECT_EQ(read.whole("tied"), 0);
  EXPECT_EQ(read.number("model_type"), 0);
  EXPECT_TRUE(read.flag_or("hidden_size", true));
  EXPECT_EQ(read.text("rope_parameters"), "");
  EXPECT_EQ(read.text_or("eos_token_id", "x"), "x");
  EXPECT_EQ(read.wholes_or("factors", {9}), std::vector<index_t>{9});
  EXPECT_EQ(read.texts_or("mixed", {}), std::vector<std::string>{});
  EXPECT_EQ(read.numbers_or("tied", {}), std::vector<double>{});
  EXPECT_EQ(lines(problems),
            "layers: is missing; a whole number, 0 or more, is needed\n"
            "offset: is -3; a whole number, 0 or more, is needed\n"
            "rms_norm_eps: is a number that is not whole; a whole number, 0 or more, is needed\n"
            "seed: is a number beyond 2^53; a whole number, 0 or more, is needed\n"
            "tied: is true; a whole number, 0 or more, is needed\n"
            "model_type: is the text 'llama'; a finite number is needed\n"
            "hidden_size: is 64; true or false is needed\n"
            "rope_parameters: is an object; a text is needed\n"
            "eos_token_id: is a list of 2; a text is needed\n"
            "factors[1]: is a number that is not whole; a whole number, 0 or more, is needed\n"
            "mixed[0]: is 1; a text is needed\n"
            "tied: is true; a finite number is needed\n");
}

TEST(Config, lists_as_a_gguf_stores_them_are_read_like_those_of_json) {
  const auto numbers = [](Stored type, const std::string& bytes) {
    return formats::ConfigValue{ConfigNumbers{type, bytes_of(bytes)}};
  };
  const Config config{
      {"u8", numbers(Stored::u8, "\x05\xff")},
      {"i8", numbers(Stored::i8, "\xff")},
      {"u64", numbers(Stored::u64, raw<std::uint64_t>({3, UINT64_MAX}))},
      {"f32", numbers(Stored::f32, raw<float>({0.5F, std::numeric_limits<float>::infinity()}))},
      {"bool", numbers(Stored::boolean, "\1")},
      {"texts", {ConfigTexts{"a", ""}}},
      {"nan", {std::numeric_limits<double>::quiet_NaN()}}};
  std::vector<Problem> problems;
  Reader read(config, problems);
  EXPECT_EQ(read.wholes_or("u8", {}), (std::vector<index_t>{5, 255}));
  EXPECT_EQ(read.numbers_or("i8", {}), std::vector<double>{-1});
  EXPECT_EQ(read.numbers_or("u64", {}), (std::vector<double>{3, 0x1p64}));
  EXPECT_EQ(read.texts_or("texts", {}), (std::vector<std::string>{"a", ""}));
  EXPECT_EQ(lines(problems), "");
  read.numbers_or("f32", {});
  read.numbers_or("bool", {});
  read.numbers_or("texts", {});
  read.number("nan");
  EXPECT_EQ(lines(problems),
            "f32[1]: is infinity; a finite number is needed\n"
            "bool[0]: is true; a finite number is needed\n"
            "texts[0]: is the text 'a'; a finite number is needed\n"
            "nan: is NaN; a finite number is needed\n");
  for (const auto& [key, value] : config) EXPECT_EQ(formats::is_list(value), key != "nan") << key;
}

TEST(Config, what_is_no_json_object_is_refused_with_its_place) {
  EXPECT_EQ(refused("[1]"), "the file: begins with no '{'; an object is needed\n");
  EXPECT_EQ(refused("7"), "the file: begins with no '{'; an object is needed\n");
  EXPECT_TRUE(says(refused(""), "not JSON in UTF-8: at byte"));
  EXPECT_TRUE(says(refused("{"), "not JSON in UTF-8"));
  EXPECT_TRUE(says(refused("{}{}"), "not JSON in UTF-8"));
  EXPECT_TRUE(says(refused("{\"a\": \"\xff\"}"), "a: not JSON in UTF-8"));
  EXPECT_TRUE(says(refused(R"({"a": NaN})"), "a: not JSON in UTF-8"));
  EXPECT_TRUE(says(refused(R"({"a": -Infinity})"), "a: not JSON in UTF-8"));
  EXPECT_TRUE(says(refused(R"({"a": 1e999})"), "a: is '1e999', beyond the range of a double"));
  EXPECT_TRUE(says(refused(R"({"a": 1, // remark
                              "b": 2})"),
                   "not JSON in UTF-8"));
  EXPECT_EQ(refused(R"({"a": 1, "b": 2, "a": 1})"), "a: occurs twice\n");
  EXPECT_EQ(refused(R"({"a": [0, {"b": {"c": 1, "c": 2}}]})"), "a/b/c: occurs twice\n");
  EXPECT_TRUE(says(refused("{\"\\u001b[2J\": {\"x\": nul}}"), "\\x1b[2J/x': not JSON"));
}

TEST(Config, nesting_and_the_number_of_values_have_limits) {
  const std::string deep31 = repeated(R"({"a":)", 31) + "[]" + repeated("}", 31);
  accepted(deep31);
  EXPECT_TRUE(says(refused(R"({"a":)" + deep31 + "}"), "is nested more than 32 deep"));
  EXPECT_TRUE(says(refused(R"({"a":)" + std::string(100000, '[')), "is nested more than 32 deep"));
  EXPECT_EQ(accepted(R"({"a":[)" + repeated("0,", 999'998) + "0]}").size(), 1U);
  EXPECT_TRUE(says(refused(R"({"a":[)" + repeated("0,", 999'999) + "0]}"),
                   "a: holds more than 1000000 values"));
}

}  // namespace
}  // namespace glasshead::test
