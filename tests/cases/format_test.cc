// docs/case-format.md and docs/case.schema.json against the parser; reading and editing.
#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "wire/case.h"
#include "wire/case_json.h"

namespace glasshead::wire {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(GLASSHEAD_SOURCE_DIR + ("/" + path), std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Case parse(const std::string& text) {
  std::vector<Problem> problems;
  const auto c = parse_case(text, "test", problems);
  for (const Problem& problem : problems) ADD_FAILURE() << problem.where << ": " << problem.what;
  return c.value_or(Case());
}

const TraceTensor& input(const Case& c, const std::string& tap) {
  for (const auto& [name, tensor] : c.inputs)
    if (name == tap) return tensor;
  ADD_FAILURE() << "no input " << tap;
  static const TraceTensor none;
  return none;
}

std::vector<Problem> problems_of(const Case& c, const Edit& edit) {
  std::vector<Problem> problems;
  EXPECT_FALSE(edit_case(c, edit, problems));
  return problems;
}

Edit set(const std::string& text) {
  std::vector<Problem> problems;
  Edit edit;
  if (const auto one = parse_set(text, problems)) edit.set.push_back(*one);
  for (const Problem& problem : problems) ADD_FAILURE() << problem.where << ": " << problem.what;
  return edit;
}

Case edited(const Case& c, const Edit& edit) {
  std::vector<Problem> problems;
  const auto out = edit_case(c, edit, problems);
  for (const Problem& problem : problems) ADD_FAILURE() << problem.where << ": " << problem.what;
  return out.value_or(Case());
}

const char* const kThree = R"({"schema": "glasshead.case/1", "tokens": ["A", "B", "C"],
  "X": [[1, 0.50], [0, 1e0], [1, 1]], "attention": {"W_Q": [[1, 0], [0, 1]]}})";

TEST(CaseFormat, every_example_in_the_documentation_parses_and_runs) {
  const std::string page = read_text("docs/case-format.md");
  int count = 0;
  const std::string fence = "```json\n";
  for (std::size_t at = page.find(fence); at != std::string::npos; at = page.find(fence, at)) {
    at += fence.size();
    const Case c = parse(page.substr(at, page.find("```", at) - at));
    EXPECT_FALSE(run_case(c).steps.empty());
    ++count;
  }
  EXPECT_GE(count, 6);
}

TEST(CaseFormat, the_schema_lists_the_fields_that_the_parser_knows) {
  const auto schema = nlohmann::json::parse(read_text("docs/case.schema.json"));
  std::set<std::string> listed;
  for (const auto& field : schema["properties"].items()) listed.insert(field.key());
  std::vector<Problem> problems;
  EXPECT_FALSE(parse_case(R"({"schema": "glasshead.case/1", "X": [[1]], "zzzzzzzzzz": 1})", "test",
                          problems));
  ASSERT_EQ(problems.size(), 1U);
  std::string known = problems[0].what.substr(problems[0].what.find(": ") + 2);
  std::replace(known.begin(), known.end(), ',', ' ');
  std::istringstream names(known);
  std::set<std::string> fields;
  for (std::string name; names >> name;) fields.insert(name);
  EXPECT_EQ(fields, listed);
}

TEST(CaseFormat, dropout_needs_a_seed_by_the_schema_as_by_the_parser) {
  const auto schema = nlohmann::json::parse(read_text("docs/case.schema.json"));
  for (const auto* owner : {&schema["properties"]["attention"], &schema["$defs"]["attention"]}) {
    const auto& dropout = (*owner)["properties"]["dropout"];
    EXPECT_EQ(dropout["if"]["required"], nlohmann::json({"p"}));
    EXPECT_EQ(dropout["if"]["properties"]["p"]["exclusiveMinimum"], 0);
    EXPECT_EQ(dropout["then"]["required"], nlohmann::json({"seed"}));
  }
  const auto problems_with = [](const std::string& dropout) {
    std::vector<Problem> problems;
    static_cast<void>(parse_case(
        R"({"schema": "glasshead.case/1", "X": [[1]], "attention": {"dropout": )" + dropout + "}}",
        "test", problems));
    return problems.size();
  };
  EXPECT_EQ(problems_with(R"({"p": 0.5})"), 1U);
  EXPECT_EQ(problems_with(R"({"p": 0.5, "seed": 1})"), 0U);
  EXPECT_EQ(problems_with(R"({"p": 0})"), 0U);
}

TEST(CaseFormat, numbers_keep_their_digits_as_written) {
  const Case c = parse(kThree);
  EXPECT_EQ(given_text(c, "X", 1), "0.50");
  EXPECT_EQ(given_text(c, "X", 3), "1e0");
  EXPECT_EQ(given_text(c, "X", 0), "1");
  EXPECT_EQ(input(c, "X").values[1], 0.5);
  EXPECT_EQ(c.paths.at("W_Q"), "attention.W_Q");
}

TEST(CaseFormat, rows_without_labels_are_counted_from_0) {
  const Case c = parse(R"({"schema": "glasshead.case/1", "X": [[1], [2]]})");
  EXPECT_EQ(c.query_labels, (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(c.key_labels, c.query_labels);
}

TEST(CaseFormat, a_case_beyond_the_limits_is_refused_with_the_limit) {
  std::vector<Problem> problems;
  EXPECT_FALSE(parse_case(std::string(kMaxCaseBytes + 1, ' '), "test", problems));
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems[0].what.find("64 MiB"), std::string::npos);
}

TEST(CaseFormat, a_short_case_of_very_many_scores_is_refused) {
  const auto problems_of = [](index_t rows, index_t heads) {
    std::string text = R"({"schema": "glasshead.case/1", "attention": {"heads": )" +
                       std::to_string(heads) + R"(}, "X": [[1, 1])";
    for (index_t n = 1; n < rows; ++n) text += ",[1, 1]";
    std::vector<Problem> problems;
    parse_case(text + "]}", "long", problems);
    return problems;
  };
  EXPECT_TRUE(problems_of(4096, 1).empty());
  for (const auto& [rows, heads] : {std::pair<index_t, index_t>{4097, 1}, {3000, 2}}) {
    const std::vector<Problem> problems = problems_of(rows, heads);
    ASSERT_EQ(problems.size(), 1U);
    EXPECT_EQ(problems[0].where, "attention");
    EXPECT_NE(problems[0].what.find("more than 16777216 scores"), std::string::npos);
  }
}

TEST(CaseFormat, of_very_many_problems_the_first_are_listed_and_the_rest_counted) {
  std::string row = "[";
  for (int n = 0; n < 500; ++n) row += n == 0 ? "null" : ",null";
  std::vector<Problem> problems;
  EXPECT_FALSE(
      parse_case(R"({"schema": "glasshead.case/1", "X": [)" + row + "]]}", "test", problems));
  ASSERT_EQ(problems.size(), 101U);
  EXPECT_EQ(problems.back().what, "400 more problems");
}

TEST(EditCase, sets_a_row_by_label_or_index_and_one_number_by_two_indices) {
  const Case c = parse(kThree);
  EXPECT_EQ(input(edited(c, set("X[B]=7,8")), "X").values,
            (std::vector<double>{1, .5, 7, 8, 1, 1}));
  EXPECT_EQ(input(edited(c, set("X[1]=7,8")), "X").values,
            (std::vector<double>{1, .5, 7, 8, 1, 1}));
  EXPECT_EQ(input(edited(c, set("X[B,0]=7")), "X").values,
            (std::vector<double>{1, .5, 7, 1, 1, 1}));
  EXPECT_EQ(input(edited(c, set("W_Q=0,-1;1,0")), "W_Q").values,
            (std::vector<double>{0, -1, 1, 0}));
  EXPECT_EQ(given_text(edited(c, set("X[B]=0.70,8")), "X", 2), "0.70");
}

TEST(EditCase, a_word_names_a_column_of_W_vocab) {
  const Case c = parse(R"({"schema": "glasshead.case/1", "vocabulary": ["cat", "dog"],
    "W_vocab": [[1, 2], [3, 4]], "tokens": ["dog"]})");
  EXPECT_EQ(input(c, "E").values, (std::vector<double>{1, 3, 2, 4}));
  EXPECT_EQ(input(edited(c, set("W_vocab[dog]=5,6")), "E").values,
            (std::vector<double>{1, 3, 5, 6}));
  EXPECT_EQ(input(edited(c, set("W_vocab[1,dog]=9")), "E").values,
            (std::vector<double>{1, 3, 2, 9}));
}

TEST(EditCase, names_what_is_wrong_with_the_edit) {
  const Case c = parse(kThree);
  EXPECT_EQ(problems_of(c, set("X[D]=1,1"))[0].where, "set X[D]");
  EXPECT_EQ(problems_of(c, set("X[B]=1"))[0].what, "1 numbers where 2 belong");
  EXPECT_EQ(problems_of(c, set("W_K[0]=1,1"))[0].what, "no input is called W_K; there are X, W_Q");
  Edit edit;
  edit.hide = {"D"};
  edit.mask = "casual";
  const std::vector<Problem> both = problems_of(c, edit);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].where, "mask");
  EXPECT_EQ(both[1].where, "hide");
}

TEST(EditCase, mask_replaces_and_hide_joins_the_mask) {
  const Case c = parse(R"({"schema": "glasshead.case/1", "X": [[1], [2]],
    "attention": {"mask": "causal"}})");
  Edit edit;
  edit.hide = {"1"};
  EXPECT_EQ(edited(c, edit).network.blocks[0].attention.options.mask.parts().size(), 2U);
  edit.mask = "none";
  EXPECT_EQ(edited(c, edit).network.blocks[0].attention.options.mask.parts().size(), 1U);
}

TEST(ParseSet, refuses_what_is_not_a_change) {
  for (const char* text : {"X", "X[B", "X[B=1", "[B]=1", "X[]=1", "X[B]=", "X[B]=1,,2", "X[B]=nan",
                           "X[B]=1e999", "=", ""}) {
    std::vector<Problem> problems;
    EXPECT_FALSE(parse_set(text, problems)) << text;
    EXPECT_EQ(problems.size(), 1U) << text;
  }
}

}  // namespace
}  // namespace glasshead::wire
