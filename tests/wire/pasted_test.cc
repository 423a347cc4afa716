// Numbers as people paste them.
#include "wire/pasted.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace glasshead::wire {
namespace {

using Shape = std::vector<index_t>;
using Values = std::vector<double>;
using Names = std::vector<std::string>;

void expect_read(const std::string& text, const Shape& shape, const Values& values,
                 std::optional<int> decimals = std::nullopt) {
  std::vector<Problem> problems;
  const std::optional<Pasted> pasted = read_pasted(text, "here", problems);
  ASSERT_TRUE(pasted.has_value()) << text << ": "
                                  << (problems.empty() ? "no reason" : problems[0].what);
  EXPECT_EQ(pasted->tensor.shape, shape) << text;
  EXPECT_EQ(pasted->tensor.values, values) << text;
  EXPECT_EQ(pasted->decimals, decimals) << text;
  EXPECT_EQ(pasted->texts.size(), values.size()) << text;
}

void expect_refused(const std::string& text, const std::string& why) {
  std::vector<Problem> problems;
  EXPECT_FALSE(read_pasted(text, "here", problems).has_value()) << text;
  ASSERT_EQ(problems.size(), 1U) << text;
  EXPECT_EQ(problems[0].where, "here");
  EXPECT_NE(problems[0].what.find(why), std::string::npos) << text << ": " << problems[0].what;
}

TEST(Pasted, blanks_and_semicolons_as_the_command_has_them) {
  expect_read("1 0 0; .5 .5 0; .25 .25 .5", {3, 3}, {1, 0, 0, .5, .5, 0, .25, .25, .5}, 2);
  expect_read("1 0 0\n0.5 0.5 0", {2, 3}, {1, 0, 0, .5, .5, 0}, 1);
  expect_read("1 0;\n0 1;", {2, 2}, {1, 0, 0, 1});
  expect_read("1, 0, 2", {1, 3}, {1, 0, 2});
  expect_read("1,0\n2,3", {2, 2}, {1, 0, 2, 3});
}

TEST(Pasted, cells_of_a_spreadsheet) {
  expect_read("1\t0.25\r\n-2\t1e3\r\n", {2, 2}, {1, .25, -2, 1000}, 2);
  expect_read("1;0.5\n2;3", {2, 2}, {1, .5, 2, 3}, 1);
  expect_read("\"1\"\t\"2\"", {1, 2}, {1, 2});
  expect_read(
      "\xef\xbb\xbf"
      "1\t2",
      {1, 2}, {1, 2});
}

TEST(Pasted, names_stand_in_the_first_line_and_the_first_column) {
  std::vector<Problem> problems;
  const auto pasted = read_pasted("token,animality,action\ncat,1,0\nchases,.2,1", "X", problems);
  ASSERT_TRUE(pasted.has_value());
  EXPECT_EQ(pasted->row_names, (Names{"cat", "chases"}));
  EXPECT_EQ(pasted->column_names, (Names{"animality", "action"}));
  EXPECT_EQ(pasted->tensor.values, (Values{1, 0, .2, 1}));
  EXPECT_EQ(pasted->texts, (Names{"1", "0", ".2", "1"}));
}

TEST(Pasted, json_python_numpy_and_pytorch) {
  expect_read("[[1, 0], [0.5, 0.5]]", {2, 2}, {1, 0, .5, .5}, 1);
  expect_read("[(1, 0), (0, 1)]", {2, 2}, {1, 0, 0, 1});
  expect_read("[1, 2, 3]", {3}, {1, 2, 3});
  expect_read("[[[1], [2]], [[3], [4]]]", {2, 2, 1}, {1, 2, 3, 4});
  expect_read("[[1.    0.25 ]\n [0.5   0.125]]", {2, 2}, {1, .25, .5, .125}, 3);
  expect_read("array([[1., 0.],\n       [0., 1.]], dtype=float32)", {2, 2}, {1, 0, 0, 1});
  expect_read("tensor([[0.5, -1e-2]], device='cuda:0', grad_fn=<MmBackward0>)", {1, 2}, {.5, -.01},
              2);
  expect_read("weights = np.array([[1, 0]])", {1, 2}, {1, 0});
}

TEST(Pasted, lists_behind_one_another_and_semicolons_in_brackets_are_rows) {
  expect_read("[1, 0], [0.5, 1]", {2, 2}, {1, 0, .5, 1}, 1);
  expect_read("[1] [2]", {2, 1}, {1, 2});
  expect_read("[1 0; .5 1]", {2, 2}, {1, 0, .5, 1}, 1);
}

TEST(Pasted, only_brackets_say_that_the_shape_is_meant) {
  std::vector<Problem> problems;
  EXPECT_TRUE(read_pasted("[[1, 2], [3, 4]]", "lse", problems)->is_lists);
  EXPECT_FALSE(read_pasted("1\n2", "lse", problems)->is_lists);
  EXPECT_FALSE(read_pasted("[1; 2]", "lse", problems)->is_lists);
}

TEST(Pasted, our_own_marks_and_signs) {
  expect_read("\u22121 0.5034\u2032", {1, 2}, {-1, .5034}, 4);
  std::vector<Problem> problems;
  const auto pasted = read_pasted("[NaN, Infinity, -Infinity, \u2212\u221e, inf]", "lse", problems);
  ASSERT_TRUE(pasted.has_value());
  const Values& x = pasted->tensor.values;
  EXPECT_TRUE(std::isnan(x[0]) && x[1] > 0 && std::isinf(x[2]) && x[2] < 0 && x[3] < 0);
}

TEST(Pasted, decimals_count_what_the_longest_number_has) {
  expect_read("1.25e-4 2", {1, 2}, {1.25e-4, 2}, 6);
  expect_read("1.25e2 2", {1, 2}, {125, 2});
}

TEST(Pasted, a_decimal_comma_is_refused_with_what_would_be_right) {
  expect_refused("0,5\t1\n1\t0", "'0,5', a decimal comma; a point is needed: 0.5");
  expect_refused("0,5;0,25\n1;0", "decimal comma");
  expect_refused("0,5 0,25\n1 0", "one number with a decimal comma or two numbers");
}

TEST(Pasted, what_is_no_matrix_is_refused_with_its_place) {
  expect_refused("", "is empty");
  expect_refused(" \n\t\n", "is empty");
  expect_refused("1 2\n3", "row 2 has 1 numbers, the rows before it have 2");
  expect_refused("1 x", "row 1, column 2: found 'x', which is no number");
  expect_refused("1\t\t2", "row 1, column 2: is empty");
  expect_refused("1 \u00b7", "a hidden weight is written 0");
  expect_refused("[[1, 2], [3]]", "one list has 1 entries, those before it 2");
  expect_refused("[[1, 2], 3]", "side by side");
  expect_refused("[1, [2]]", "side by side");
  expect_refused("[[1, 2], ...,\n [3, 4]]", "left out");
  expect_refused("[[]]", "a list is empty");
  expect_refused("[1, 2", "] is missing");
  expect_refused("[1] 2", "after the lists stands '2'");
  expect_refused("[1 2; [3]]", "found '2;', which is no number");
  expect_refused("[[[[[1]]]]]", "more than 4 deep");
}

TEST(Pasted, hostile_text_ends_in_a_reason) {
  expect_refused(std::string(1 << 20, '['), "more than 4 deep");
  expect_refused(std::string(1 << 20, ';'), "is empty");
  expect_refused(std::string(100, '\0'), "no number");
  expect_refused(
      "\xff\xfe"
      "1\x00",
      "no number");
  std::string many;
  for (std::size_t n = 0; n <= kMostPastedNumbers; ++n) many += "1 ";
  expect_refused(many, "more than 100000 numbers");
}

}  // namespace
}  // namespace glasshead::wire
