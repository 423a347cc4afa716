// What counts as JSON, and what it says: another reader of JSON is the judge.
#include "wire/json_tokens.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck.h>

#include "wire/case_json.h"

namespace glasshead::wire {
namespace {

using Json = nlohmann::json;

// The tree as the other library has it. Numbers are kept as their text, so that none is rounded.
Json as_other(JsonValue value) {
  switch (value.kind()) {
    case JsonKind::null:
      return nullptr;
    case JsonKind::boolean:
      return value.text() == "true";
    case JsonKind::number:
      return Json::parse(value.text());
    case JsonKind::string:
      return std::string(value.text());
    case JsonKind::array:
    case JsonKind::object:
      break;
  }
  Json all = value.is(JsonKind::array) ? Json::array() : Json::object();
  for (JsonValue part = value.first(); part; part = part.next()) {
    if (value.is(JsonKind::array))
      all.push_back(as_other(part));
    else
      all[std::string(part.key())] = as_other(part);
  }
  return all;
}

void expect_as_other(const std::string& text) {
  std::vector<Problem> problems;
  const std::optional<JsonTree> tree = JsonTree::parse(text, problems);
  const Json other = Json::parse(text, nullptr, false, /*ignore_comments=*/true);
  RC_ASSERT(tree.has_value() == !other.is_discarded());
  RC_ASSERT(problems.empty() == tree.has_value());
  if (tree) RC_ASSERT(as_other(tree->root()) == other);
}

const std::vector<std::string> kPieces{"{",           "}",           "[",
                                       "]",           ":",           ",",
                                       "\"a\"",       "\"b\"",       "\"\"",
                                       "1",           "-0.5e3",      "0",
                                       "-",           "01",          "1.",
                                       ".5",          "1e",          "2E+1",
                                       "true",        "false",       "null",
                                       "nul",         " ",           "\n",
                                       "// x\n",      "/* y */",     "/*",
                                       "\"\\n\"",     "\"\\u00e9\"", "\"\\ud83d\\ude00\"",
                                       "\"\\ud83d\"", "\"\\x\"",     "\"\xC3\xA9\"",
                                       "\"\xC3\"",    "\"\t\"",      "\xEF\xBB\xBF",
                                       "NaN",         "'",           "\""};

TEST(JsonTokens, what_is_json_is_what_another_reader_takes_for_json) {
  EXPECT_TRUE(rc::check("pieces of JSON in any order", [] {
    std::string text;
    for (const std::string& piece :
         *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(kPieces)))
      text += piece;
    expect_as_other(text);
  }));
  EXPECT_TRUE(rc::check("a value with a byte changed", [] {
    std::string text = R"({"a":[1,-2.50,3e-2,true,null],"b \u00e9\n":{"c":"x\\y"},"d":[]})";
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    if (*rc::gen::arbitrary<bool>())
      text[at] = *rc::gen::arbitrary<char>();
    else
      text.erase(at, *rc::gen::inRange<std::size_t>(0, 4));
    expect_as_other(text);
  }));
}

std::string problem_of(const std::string& text) {
  std::vector<Problem> problems;
  JsonTree::parse(text, problems);
  return problems.empty() ? "" : problems[0].where + ": " + problems[0].what;
}

TEST(JsonTokens, what_is_wrong_is_said_with_its_place) {
  EXPECT_EQ(problem_of("{\n  \"X\": [[1, 2],\n        [3 4]]}"),
            "X[1][1]: not JSON: line 3, column 12: 4 where a comma or ] should stand");
  EXPECT_EQ(problem_of("{\"X\" 1}"), "X: not JSON: line 1, column 6: 1 where a colon should stand");
  EXPECT_EQ(problem_of("{\"a\": 01}"), "a: not JSON: line 1, column 7: a number with a 0 in front");
  EXPECT_EQ(problem_of("{\"a\": nan}"), "a: not JSON: line 1, column 7: the word nan");
  EXPECT_EQ(problem_of("{\"a\": 1"),
            "a: not JSON: line 1, column 8: the end of the text where a comma or } should stand");
  EXPECT_EQ(problem_of("{} []"),
            "case: not JSON: line 1, column 4: [ where nothing more should stand");
  EXPECT_EQ(problem_of("/* open"), "case: not JSON: line 1, column 1: a comment that does not end");
}

TEST(JsonTokens, numbers_keep_their_digits) {
  std::vector<Problem> problems;
  const auto tree = JsonTree::parse("[0.50, 1e400, 12345678901234567890123, -0]", problems);
  ASSERT_TRUE(tree.has_value());
  std::string texts;
  for (JsonValue x = tree->root().first(); x; x = x.next()) texts += std::string(x.text()) + " ";
  EXPECT_EQ(texts, "0.50 1e400 12345678901234567890123 0 ");
}

}  // namespace
}  // namespace glasshead::wire
