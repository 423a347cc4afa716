#include "doctor/worksheet.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "wire/by_hand.h"
#include "wire/render.h"

namespace glasshead::doctor {
namespace {

// A level. Each is a search, and every promise is checked on all of its numbers: under sanitizers
// 200 of them took two minutes.
constexpr std::uint64_t kSeeds = 40;

Worksheet sheet_of(std::uint64_t seed, int level, bool has_fractions = false) {
  WorksheetOptions options;
  options.seed = seed;
  options.level = level;
  options.has_fractions = has_fractions;
  std::vector<Problem> problems;
  const std::optional<Worksheet> sheet = make_worksheet(options, problems);
  EXPECT_TRUE(sheet) << "seed " << seed << ": " << (problems.empty() ? "" : problems[0].what);
  return sheet.value_or(Worksheet{});
}

// Hundredths, as somebody rounds half up who has the number to 12 digits.
double hundredths(double x) { return std::floor(std::fabs(x) * 100 + .5) * (x < 0 ? -1 : 1); }

double edge_distance(double x) {
  const double units = std::fabs(x) * 100;
  return std::fabs(units - std::floor(units) - .5);
}

// Recomputed from the table, not taken from the sheet's own list.
void expect_mistakes_show(const Worksheet& sheet, std::uint64_t seed) {
  std::set<std::string> explained;
  for (const WrongAnswer& answer : sheet.wrong)
    explained.insert(answer.ids.begin(), answer.ids.end());
  for (const Mistake& mistake : mistakes()) {
    std::vector<Problem> problems;
    const auto run = run_mistake(mistake.id, sheet.exercise, problems);
    if (!run || run->fit != Fit::runs || !run->hidden_because.empty()) continue;
    const std::vector<double>& right = run->right.at(sheet.result).values;
    const std::vector<double>& wrong = run->wrong.at(sheet.result).values;
    double moved = 0;
    for (std::size_t n = 0; n < right.size(); ++n)
      moved = std::max(moved, std::fabs(right[n] - wrong[n]));
    EXPECT_GE(moved, .1) << mistake.id << " of seed " << seed;
    EXPECT_TRUE(explained.contains(mistake.id)) << mistake.id << " of seed " << seed;
  }
}

// Whether two rows print the same in every head, to 2 decimals.
bool has_rows_alike(const TraceTensor& t) {
  const index_t columns = t.shape.back(), length = t.shape[t.shape.size() - 2];
  const auto count = static_cast<index_t>(t.values.size()) / columns;
  for (index_t a = 0; a < length; ++a)
    for (index_t b = 0; b < a; ++b) {
      double apart = 0;
      for (index_t head = 0; head < count; head += length)
        for (index_t j = 0; j < columns; ++j)
          apart = std::max(apart,
                           std::fabs(t.values[static_cast<std::size_t>((head + a) * columns + j)] -
                                     t.values[static_cast<std::size_t>((head + b) * columns + j)]));
      if (apart < .005) return true;
    }
  return false;
}

// A column of values that is the same throughout, as 0 is, makes weights of no matter.
bool has_constant_column(const TraceTensor& v) {
  const auto columns = static_cast<std::size_t>(v.shape.back());
  for (std::size_t j = 0; j < columns; ++j) {
    std::set<double> column;
    for (std::size_t n = j; n < v.values.size(); n += columns) column.insert(v.values[n]);
    if (column.size() == 1) return true;
  }
  return false;
}

class FriendlyNumbers : public ::testing::TestWithParam<int> {};

TEST_P(FriendlyNumbers, keep_their_promises_and_let_every_mistake_show) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Worksheet sheet = sheet_of(seed, GetParam());
    ASSERT_FALSE(sheet.trace.steps.empty());
    expect_mistakes_show(sheet, seed);
    for (const auto& [tap, tensor] : sheet.exercise.inputs)
      for (const double x : tensor.values) {
        EXPECT_LE(std::fabs(x), 2) << tap << " of seed " << seed;
        EXPECT_EQ(x, std::floor(x));
      }
    for (const double s : sheet.trace.at("scores").values) EXPECT_LE(std::fabs(s), 12);
    EXPECT_FALSE(has_rows_alike(sheet.trace.at("weights"))) << "seed " << seed;
    EXPECT_FALSE(has_constant_column(sheet.trace.at("v"))) << "seed " << seed;
    const Trace hand = wire::run_by_hand(sheet.exercise, {2, false}).rounded;
    for (const char* tap : {"weights", "out", "projected"}) {
      const TraceTensor* exact = sheet.trace.find(tap);
      if (exact == nullptr) continue;
      for (std::size_t n = 0; n < exact->values.size(); ++n) {
        const double x = exact->values[n];
        EXPECT_GE(edge_distance(x), .1) << tap << " of seed " << seed << ": " << x;
        EXPECT_LE(std::fabs(hundredths(x) - hundredths(hand.at(tap).values[n])), 1)
            << tap << " of seed " << seed << ": " << x << " by hand " << hand.at(tap).values[n];
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(levels, FriendlyNumbers, ::testing::Values(1, 2, 3));

TEST(Worksheet, without_calculator_has_whole_answers_and_powers_of_two) {
  for (int level = 1; level <= 3; ++level)
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      const Worksheet sheet = sheet_of(seed, level, true);
      const std::vector<double>& scores = sheet.trace.at("scores").values;
      const std::vector<double>& powers = sheet.trace.at("exp").values;
      for (std::size_t n = 0; n < scores.size(); ++n)
        if (powers[n] != 0) {  // 0: hidden
          EXPECT_NEAR(powers[n], std::ldexp(1.0, static_cast<int>(scores[n])), 1e-12);
        }
      for (const double x : sheet.trace.at(sheet.result).values)
        EXPECT_NEAR(x, std::round(x), 1e-9) << "level " << level << ", seed " << seed;
      EXPECT_FALSE(has_rows_alike(sheet.trace.at("weights")))
          << "level " << level << ", seed " << seed;
      for (const auto& [tap, tensor] : sheet.exercise.inputs)
        EXPECT_FALSE(tap == "v" && has_constant_column(tensor))
            << "level " << level << ", seed " << seed;
    }
}

TEST(Worksheet, is_the_same_for_the_same_seed_and_another_for_another) {
  for (int level = 1; level <= 3; ++level) {
    const std::string once = worksheet_json(sheet_of(11, level), true);
    EXPECT_EQ(once, worksheet_json(sheet_of(11, level), true));
    EXPECT_NE(once, worksheet_json(sheet_of(12, level), true));
  }
}

TEST(Worksheet, gives_no_answer_away_on_the_sheet) {
  const Worksheet sheet = sheet_of(11, 3);
  const wire::Document page = sheet_document(sheet);
  for (const wire::Section& section : page.sections)
    for (const wire::Table& table : section.tables) {
      const bool is_asked = table.tap == "weights" || table.tap == "out" || table.tap == "concat" ||
                            table.tap == "projected";
      for (const auto& row : table.rows)
        for (const wire::Cell& cell : row) {
          EXPECT_EQ(cell.is_blank, is_asked) << table.tap;
          if (is_asked) {
            EXPECT_EQ(cell.exact, 0);
          }
        }
    }
  EXPECT_EQ(worksheet_json(sheet, false).find("answers"), std::string::npos);
  EXPECT_NE(worksheet_json(sheet, true).find("answers"), std::string::npos);
}

TEST(Worksheet, blanks_what_is_asked_and_prints_the_rest) {
  WorksheetOptions options;
  options.seed = 4;
  options.blanks = {"scores", "weights"};
  std::vector<Problem> problems;
  const auto sheet = make_worksheet(options, problems);
  ASSERT_TRUE(sheet);
  for (const wire::Section& section : sheet_document(*sheet).sections)
    for (const wire::Table& table : section.tables)
      EXPECT_EQ(table.rows[0][0].is_blank, table.tap == "scores" || table.tap == "weights");
}

TEST(Worksheet, refuses_options_out_of_range_all_at_once) {
  WorksheetOptions options;
  options.level = 4;
  options.tokens = 1;
  options.decimals = 9;
  options.blanks = {"wieghts"};
  std::vector<Problem> problems;
  EXPECT_FALSE(make_worksheet(options, problems));
  EXPECT_EQ(problems.size(), 4U);
}

TEST(Worksheet, says_so_when_it_finds_no_friendly_numbers) {
  WorksheetOptions options;
  options.tokens = 6;
  options.decimals = 1;  // ten units are a whole 1: more than small values can move
  std::vector<Problem> problems;
  if (!make_worksheet(options, problems)) {
    ASSERT_EQ(problems.size(), 1U);
    EXPECT_NE(problems[0].what.find("no friendly numbers"), std::string::npos);
  }
}

TEST(Worksheet, is_well_formed_in_every_form) {
  const Worksheet sheet = sheet_of(11, 2);
  EXPECT_NE(wire::to_latex(key_document(sheet)).find("mask forgotten"), std::string::npos);
  for (const wire::Document& page : {sheet_document(sheet), key_document(sheet)}) {
    const std::string latex = wire::to_latex(page, {true});
    const auto count = [&](const std::string& text, std::string_view what) {
      std::size_t n = 0;
      for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
        ++n;
      return n;
    };
    EXPECT_EQ(count(latex, "\\begin{"), count(latex, "\\end{"));
    EXPECT_EQ(latex.find("____"), std::string::npos) << "a bare underscore is no LaTeX";
    const std::string html = wire::to_html(page);
    for (const std::string tag : {"table", "section", "div", "td", "tr", "p"})
      EXPECT_EQ(count(html, "<" + tag + ">") + count(html, "<" + tag + " "),
                count(html, "</" + tag + ">"))
          << tag;
  }
}

}  // namespace
}  // namespace glasshead::doctor
