// Every file in cases/: it parses, runs, its claims hold, and its printed digits are the exact
// numbers rounded, or differ as their kind says.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

#include "wire/case.h"
#include "wire/case_values.h"

namespace glasshead::wire {
namespace {

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(GLASSHEAD_SOURCE_DIR) + "/cases"))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

Case load(const std::string& name) {
  std::vector<Problem> problems;
  const auto c = parse_case(
      read_text(std::string(GLASSHEAD_SOURCE_DIR) + "/cases/" + name + ".json"), name, problems);
  for (const Problem& problem : problems)
    ADD_FAILURE() << name << ": " << problem.where << ": " << problem.what;
  return c.value_or(Case());
}

// Runs also where a row has no allowed key, which the case itself refuses.
Trace run_leniently(Case c) {
  for (nn::Block& block : c.network.blocks) block.attention.options.empty_row = EmptyRow::zero;
  return run_case(c);
}

class EveryCase : public testing::TestWithParam<std::string> {};

TEST_P(EveryCase, parses_and_runs) {
  const Case c = load(GetParam());
  EXPECT_EQ(c.name, GetParam());
  EXPECT_FALSE(c.title.empty());
  EXPECT_FALSE(c.from.empty());
  EXPECT_FALSE(run_leniently(c).steps.empty());
}

TEST_P(EveryCase, has_claims_and_each_of_them_holds) {
  const Case c = load(GetParam());
  EXPECT_FALSE(c.claims.empty());
  for (const Claim& claim : c.claims) {
    const ClaimResult result = check_claim(c, claim);
    EXPECT_TRUE(result.holds) << claim.says << " [" << claim.tap << "]: found " << result.found;
  }
}

TEST_P(EveryCase, printed_digits_are_the_exact_number_rounded_or_are_known_to_differ) {
  const Case c = load(GetParam());
  const Trace trace = run_leniently(c);
  for (const PrintedNumber& printed : c.printed) {
    const auto value = value_of(c, trace, printed.tap);
    ASSERT_TRUE(value) << printed.tap;
    const auto numbers = numbers_at(*value, printed.index);
    ASSERT_TRUE(numbers && numbers->size() == 1) << printed.tap << " " << printed.text;
    EXPECT_EQ(equals_printed((*numbers)[0], printed.text, printed.factor), printed.kind.empty())
        << printed.tap << " " << printed.text << " is " << (*numbers)[0] << "; kind \""
        << printed.kind << "\"";
  }
}

TEST_P(EveryCase, fields_marked_as_ours_exist) {
  // A path names a field of the file or an element of one: its first part is a field.
  const std::string text =
      read_text(std::string(GLASSHEAD_SOURCE_DIR) + "/cases/" + GetParam() + ".json");
  for (const std::string& path : load(GetParam()).ours)
    EXPECT_NE(text.find("\"" + path.substr(0, path.find_first_of(".[")) + "\":"), std::string::npos)
        << path;
}

INSTANTIATE_TEST_SUITE_P(Cases, EveryCase, testing::ValuesIn(case_names()), [](const auto& param) {
  std::string name = param.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Cases, every_example_of_the_tutorials_is_there) {
  const std::vector<std::string> names = case_names();
  for (const char* name : {"three-tokens",
                           "three-tokens-causal",
                           "three-tokens-padding",
                           "three-tokens-dk4",
                           "three-tokens-dk8",
                           "separating",
                           "separating-causal",
                           "one-block",
                           "two-heads",
                           "cache-steps",
                           "cat-chases-mouse",
                           "cat-chases-mouse-encoder",
                           "cat-chases-mouse-next",
                           "analogy",
                           "one-query",
                           "one-query-hide3",
                           "empty-row",
                           "cross",
                           "no-softmax",
                           "it-animal",
                           "the-cat-sat",
                           "saturated-512",
                           "softmax-five",
                           "cat-eats-fish",
                           "grouped-heads",
                           "dot-variance"})
    EXPECT_TRUE(std::find(names.begin(), names.end(), name) != names.end()) << name;
}

TEST(Cases, fourteen_printed_numbers_differ_from_exact_arithmetic) {
  std::map<std::string, int> count;
  for (const std::string& name : case_names())
    for (const PrintedNumber& printed : load(name).printed) ++count[printed.kind];
  EXPECT_EQ(count["slip"], 4);      // two of tutorial 1's row B, two of tutorial 4's fish
  EXPECT_EQ(count["adjusted"], 1);  // tutorial 4's 83.83
  EXPECT_EQ(count["rounding"], 9);  // of tutorials 1 and 2, four of them in figures
}

// Expected by exact arithmetic, independently of the engine: q·k of the same numbers by hand.
TEST(Cases, a_row_with_no_allowed_key_is_named) {
  const Case c = load("empty-row");
  EXPECT_EQ(rows_without_keys(c), std::vector<std::string>{"q"});
  EXPECT_THROW(run_case(c), OptionError);
  EXPECT_TRUE(rows_without_keys(load("three-tokens-padding")).empty());
}

TEST(Cases, printed_decimals_are_compared_to_half_a_unit_of_their_last_place) {
  EXPECT_TRUE(equals_printed(0.33023845, "0.3302"));
  EXPECT_TRUE(equals_printed(0.33023845, "0.33"));
  EXPECT_FALSE(equals_printed(0.33023845, "0.3303"));
  EXPECT_FALSE(equals_printed(0.33023845, "0.3305"));
  EXPECT_TRUE(equals_printed(0.125, "0.12"));  // a tie is both roundings'
  EXPECT_TRUE(equals_printed(0.125, "0.13"));
  EXPECT_TRUE(equals_printed(0.998304, "99.8", 100));
  EXPECT_TRUE(equals_printed(9.3576e-14, "9.4e-14"));
  EXPECT_FALSE(equals_printed(9.3576e-14, "9.5e-14"));
  EXPECT_TRUE(equals_printed(2, "2"));
  EXPECT_FALSE(equals_printed(2.6, "2"));
}

}  // namespace
}  // namespace glasshead::wire
