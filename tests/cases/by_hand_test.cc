// What the tutorials worked out on paper: every printed number that differs from exact arithmetic
// by rounding comes out of the chain that rounds every intermediate, half up, to the decimals that
// the tutorial prints of it (two where it prints none).
#include "wire/by_hand.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

#include "wire/case.h"
#include "wire/case_values.h"
#include "wire/decimal.h"
#include "wire/print.h"

namespace glasshead::wire {
namespace {

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(GLASSHEAD_SOURCE_DIR) + "/cases")) {
    std::vector<Problem> problems;
    auto c = parse_case(read_text(entry.path()), entry.path().stem().string(), problems);
    if (c) cases.push_back(std::move(*c));
  }
  return cases;
}

// Paper leaves the row's maximum in: the chain's own exp and sum are the unshifted ones.
std::string tap_on_paper(const std::string& tap) {
  if (tap == "exp_unshifted") return "exp";
  if (tap == "row_sum_unshifted") return "row_sum";
  return tap;
}

// How many decimals the source prints of each tap: at least two, as it rounds what it doesn't show.
std::map<std::string, int> decimals_printed(const Case& c) {
  std::map<std::string, int> decimals;
  for (const PrintedNumber& printed : c.printed) {
    int& most = decimals.try_emplace(tap_on_paper(printed.tap), 2).first->second;
    if (printed.factor == 1) most = std::max(most, decimals_of(printed.text));
  }
  return decimals;
}

Trace run_on_paper(const Case& c) {
  const std::map<std::string, int> decimals = decimals_printed(c);
  std::vector<Step> list = case_steps(c);
  for (Step& step : list)
    for (const char* tap : {"exp", "row_sum", "lse", "weights"})
      if (step.tap == tap) set_number(step, "shift", 0);
  Trace trace;
  run_steps(list, c.inputs, [&](const Step& step, TraceTensor& value) {
    const auto found = decimals.find(step.tap);
    for (double& x : value.values)
      x = round_half_up(x, found == decimals.end() ? 2 : found->second);
    trace.steps.push_back({step, value});
  });
  return trace;
}

bool gives(const Trace& trace, const PrintedNumber& printed) {
  const TraceTensor* value = trace.find(tap_on_paper(printed.tap));
  if (value == nullptr) return false;
  const auto numbers = numbers_at(*value, printed.index);
  return numbers && numbers->size() == 1 && equals_printed((*numbers)[0], printed.text);
}

TEST(ByHand, every_number_that_differs_by_rounding_comes_out_of_the_chain_on_paper) {
  int count = 0;
  for (const Case& c : all_cases()) {
    const auto is_rounding = [](const PrintedNumber& p) { return p.kind == "rounding"; };
    if (std::none_of(c.printed.begin(), c.printed.end(), is_rounding)) continue;
    const Trace trace = run_on_paper(c);
    for (const PrintedNumber& printed : c.printed) {
      if (!is_rounding(printed)) continue;
      ++count;
      EXPECT_TRUE(gives(trace, printed)) << c.name << " " << printed.tap << " " << printed.text;
    }
  }
  EXPECT_EQ(count, 9);
}

TEST(ByHand, the_same_chain_gives_what_the_tutorial_prints_right) {
  for (const Case& c : all_cases()) {
    const auto is_rounding = [](const PrintedNumber& p) { return p.kind == "rounding"; };
    if (std::none_of(c.printed.begin(), c.printed.end(), is_rounding)) continue;
    const Trace trace = run_on_paper(c);
    for (const PrintedNumber& printed : c.printed)
      if (printed.kind.empty() && trace.find(tap_on_paper(printed.tap)) != nullptr) {
        EXPECT_TRUE(gives(trace, printed)) << c.name << " " << printed.tap << " " << printed.text;
      }
  }
}

// --by-hand 2 rounds everything to two decimals, so it gives all but the logits printed with three.
TEST(ByHand, two_decimals_throughout_give_every_rounded_number_of_two_decimals) {
  for (const Case& c : all_cases())
    for (const PrintedNumber& printed : c.printed)
      if (printed.kind == "rounding" && decimals_of(printed.text) == 2) {
        EXPECT_TRUE(gives(run_by_hand(c, {2, false}).rounded, printed))
            << c.name << " " << printed.tap << " " << printed.text;
      }
}

// A slip is what no rounding gives: neither the chain above nor 2 to 5 decimals throughout.
TEST(ByHand, no_chain_of_two_to_five_decimals_gives_a_slip) {
  for (const Case& c : all_cases())
    for (const PrintedNumber& printed : c.printed) {
      if (printed.kind != "slip") continue;
      EXPECT_FALSE(gives(run_on_paper(c), printed)) << c.name << " " << printed.text;
      for (int decimals = 2; decimals <= 5; ++decimals)
        for (const bool is_shifted : {false, true})
          EXPECT_FALSE(gives(run_by_hand(c, {decimals, is_shifted}).rounded, printed))
              << c.name << " " << printed.tap << " " << printed.text << " at " << decimals;
    }
}

}  // namespace
}  // namespace glasshead::wire
