// The printing rules. Expected digits are worked out by hand from the rules, or are the numbers of
// the tutorials' example (three tokens), whose exact values are softmax of (0, 1, 1)/sqrt(2).
#include "wire/print.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/math.h"

namespace glasshead::wire {
namespace {

std::vector<std::string> texts(const PrintedRow& row) {
  std::vector<std::string> all;
  for (const Cell& cell : row.cells) all.push_back(marked(cell));
  return all;
}

using Texts = std::vector<std::string>;

PrintedRow print(const std::vector<double>& row, const std::vector<char>& hidden = {},
                 int decimals = 4) {
  PrintOptions options;
  options.decimals = decimals;
  return print_weights_row(row, hidden, options);
}

TEST(PrintNumber, OneAndZeroMeanExactlyThatDouble) {
  EXPECT_EQ(print_number(1, 4), "1");
  EXPECT_EQ(print_number(0, 4), "0");
  EXPECT_EQ(print_number(-0.0, 4), "0");
  EXPECT_EQ(print_number(std::nextafter(1.0, 2.0), 4), "1.0000");
  EXPECT_EQ(print_number(1e-9, 4), "0.0000");
  EXPECT_EQ(print_number(-1e-9, 4), "0.0000");
}

TEST(PrintNumber, NotNumbersAreSpelledOut) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(print_number(-inf, 4), "−∞");
  EXPECT_EQ(print_number(inf, 4), "inf");
  EXPECT_EQ(print_number(std::numeric_limits<double>::quiet_NaN(), 4), "nan");
}

TEST(PrintNumber, LargeOrTinyMatricesArePrintedWithExponents) {
  EXPECT_TRUE(needs_scientific(std::vector<double>{1, 1e7}, 4));
  EXPECT_FALSE(needs_scientific(std::vector<double>{1, 9999999}, 4));
  EXPECT_TRUE(needs_scientific(std::vector<double>{0, 9e-5}, 4));
  EXPECT_FALSE(needs_scientific(std::vector<double>{0, 9e-5, 1e-4}, 4));
  EXPECT_FALSE(needs_scientific(std::vector<double>{0, 0}, 4));
  EXPECT_EQ(print_number(12345678, 4, true), "1.235e+7");
}

TEST(PrintPercent, TheDecimalPointMovesAndNothingElse) {
  EXPECT_EQ(print_percent(0.25, 2), "25.00");
  EXPECT_EQ(print_percent(1, 2), "100");
  EXPECT_EQ(print_percent(0.000123, 2), "0.01");
  EXPECT_EQ(print_percent(0.005, 0), "1");  // the double lies 1e-19 above the half
}

// exp(0)/(exp(0)+exp(1/sqrt 2)) and the row (1, 1, 2)/sqrt 2: digits as mpmath gives them.
TEST(WeightsRow, OneUnitMovesOnTheLargestSoThatTheRowAddsToOne) {
  const PrintedRow row = print({0.2482550782577231, 0.2482550782577231, 0.5034898434845538});
  EXPECT_EQ(texts(row), (Texts{"0.2483", "0.2483", "0.5034′"}));
  EXPECT_EQ(row.cells[2].moved, -1);
  EXPECT_EQ(row.sum.text, "1.0000");
  EXPECT_TRUE(row.sum.is_ok);
}

TEST(WeightsRow, OfEqualEntriesTheLaterMoves) {
  const double third = 1.0 / 3;
  EXPECT_EQ(texts(print({third, third, third})), (Texts{"0.3333", "0.3333", "0.3334′"}));
  // 1/6 six times rounds to 0.17: two units too many, taken from the last two.
  const double sixth = 1.0 / 6;
  EXPECT_EQ(texts(print(std::vector<double>(6, sixth), {}, 2)),
            (Texts{"0.17", "0.17", "0.17", "0.17", "0.16′", "0.16′"}));
}

TEST(WeightsRow, NearestMovesNothingAndPrintsTheDigitsOwnSum) {
  PrintOptions options;
  options.rounding = RowRounding::nearest;
  const double third = 1.0 / 3;
  const PrintedRow row = print_weights_row(std::vector<double>{third, third, third}, {}, options);
  EXPECT_EQ(texts(row), (Texts{"0.3333", "0.3333", "0.3333"}));
  EXPECT_EQ(row.sum.text, "0.9999");
  EXPECT_TRUE(row.sum.is_ok);  // judged on the unrounded row
}

TEST(WeightsRow, ARowThatFailsItsCheckIsNotMadeToAddUp) {
  // The last row of a mask applied after softmax: 0.1978 + 0.4011 kept.
  const PrintedRow row = print({0.19778, 0.40111, 0});
  EXPECT_FALSE(row.sum.is_ok);
  EXPECT_EQ(row.sum.text, "0.5989");
  EXPECT_EQ(texts(row), (Texts{"0.1978", "0.4011", "0"}));
}

TEST(WeightsRow, TheCheckAllowsFourRoundingsAnEntryAndNoMore) {
  EXPECT_TRUE(row_adds_to_one(1 + 12 * 0x1p-53, 3));
  EXPECT_FALSE(row_adds_to_one(1 + 14 * 0x1p-53, 3));
  EXPECT_FALSE(row_adds_to_one(std::numeric_limits<double>::quiet_NaN(), 3));
}

TEST(WeightsRow, HiddenKeysAreDotsAndAnEmptyRowHasNoSum) {
  EXPECT_EQ(texts(print({1, 0, 0}, {0, 1, 1})), (Texts{"1", "·", "·"}));
  const PrintedRow empty = print({0, 0}, {1, 1});
  EXPECT_EQ(texts(empty), (Texts{"·", "·"}));
  EXPECT_EQ(empty.sum.text, "—");
  EXPECT_TRUE(empty.sum.is_empty);
}

// Softmax of random scores, some keys hidden.
struct RandomRow {
  std::vector<double> weights;
  std::vector<char> hidden;
};
RandomRow random_row() {
  RandomRow row;
  const int n = *rc::gen::inRange(1, 40);
  double sum = 0;
  for (int j = 0; j < n; ++j) {
    row.hidden.push_back(j > 0 && *rc::gen::inRange(0, 4) == 0 ? 1 : 0);
    const double score = *rc::gen::inRange(-40000, 40000) / 4000.0;
    row.weights.push_back(row.hidden.back() != 0 ? 0 : math::exp(score));
    sum += row.weights.back();
  }
  for (double& w : row.weights) w /= sum;
  return row;
}

std::int64_t units(std::string_view text, int decimals) {
  return std::llround(read_printed(text) * std::pow(10.0, decimals));
}

TEST(WeightsRow, EveryRowAddsToOneInItsDigitsAndNoEntryMovesByMoreThanAUnit) {
  rc::check([] {
    const RandomRow row = random_row();
    PrintOptions options;
    options.decimals = *rc::gen::inRange(0, 13);
    const PrintedRow printed = print_weights_row(row.weights, row.hidden, options);
    RC_ASSERT(printed.sum.is_ok);
    std::int64_t sum = 0, one = 1;
    for (int n = 0; n < options.decimals; ++n) one *= 10;
    for (std::size_t j = 0; j < printed.cells.size(); ++j) {
      const Cell& cell = printed.cells[j];
      RC_ASSERT(cell.is_hidden == (row.hidden[j] != 0));
      if (cell.is_hidden) {
        RC_ASSERT(cell.moved == 0);
        RC_ASSERT(cell.text == "·");
        continue;
      }
      RC_ASSERT(std::abs(cell.moved) <= 1);
      const std::string nearest = print_number(row.weights[j], options.decimals);
      RC_ASSERT(units(cell.text, options.decimals) ==
                units(nearest, options.decimals) + cell.moved);
      sum += units(cell.text, options.decimals);
    }
    RC_ASSERT(sum == one);
  });
}

TEST(LongRow, TheLargestAndTheOthersAddToOne) {
  std::vector<double> row(100, 0.5 / 99);
  row[36] = 0.5;
  const PrintedLongRow printed = print_long_weights_row(row, {}, {});
  ASSERT_EQ(printed.row.top.size(), 8u);
  EXPECT_EQ(printed.row.top[0].key, 36);
  EXPECT_EQ(printed.row.top[1].key, 0);  // of equal ones the earlier keys
  EXPECT_EQ(printed.row.other_count, 92);
  std::int64_t sum = units(printed.row.others.text, 4);
  for (const Table::LongEntry& entry : printed.row.top) sum += units(entry.cell.text, 4);
  EXPECT_EQ(sum, 10000);
  EXPECT_EQ(printed.sum.text, "1.0000");
}

TEST(EqualsSign, IsHonestAboutPrintedDigits) {
  EXPECT_STREQ(equals_sign(0.4931 / 1.4931, "0.3302"), "≈");  // its digits give 0.3303
  EXPECT_STREQ(equals_sign(2 * 0.7071, "1.4142"), "=");
  EXPECT_STREQ(equals_sign(0.2483 + 0.5034, "0.7517"), "=");
}

}  // namespace
}  // namespace glasshead::wire
