#include "doctor/relation.h"

#include <cmath>
#include <map>
#include <utility>

#include "wire/decimal.h"

namespace glasshead::doctor {
namespace {

constexpr std::size_t kRows = 256;  // that are looked at
constexpr std::size_t kFewest = 8;  // numbers, to speak of all

struct Beside {
  std::pair<index_t, index_t> head;  // batch entry and head
  index_t column = 0;
  double found = 0, right = 0, tolerance = 0;
  bool is_within(double wanted) const { return std::fabs(found - wanted) <= tolerance; }
};

std::vector<Beside> numbers_of_out(const Subject& subject, const Judge& judge,
                                   const std::vector<RowIndex>& rows) {
  std::vector<Beside> numbers;
  Runner runner(subject.right);
  const std::size_t step = (rows.size() + kRows - 1) / kRows;
  for (std::size_t n = 0; n < rows.size(); n += step) {
    const RowIndex& at = rows[n];
    const RowNumbers& right = runner.row(at);
    judge.each(right, at, false, [&](const Compared& c) {
      if (std::string_view(c.claim) == "out")
        numbers.push_back({{at.b, at.h}, c.last, c.found, c.expected, c.tolerance});
      return true;
    });
  }
  return numbers;
}

std::string factor_of_all(const std::vector<Beside>& numbers) {
  double products = 0, squares = 0;
  for (const Beside& x : numbers) {
    const double weight = 1 / (x.tolerance * x.tolerance);
    products += weight * x.found * x.right;
    squares += weight * x.right * x.right;
  }
  if (!(squares > 0) || !std::isfinite(products / squares)) return "";
  const double factor = products / squares;
  for (const Beside& x : numbers)
    if (!x.is_within(factor * x.right)) return "";
  return "every out looked at is " + wire::significant(factor, 6) +
         " times the right one: a factor of all weights, of v or of out";
}

std::string vector_of_each_head(const std::vector<Beside>& numbers) {
  using Column = std::pair<std::pair<index_t, index_t>, index_t>;
  std::map<Column, std::pair<double, double>> sums;  // of what numbers are off by, and how many
  for (const Beside& x : numbers) {
    auto& [sum, count] = sums[{x.head, x.column}];
    sum += x.found - x.right;
    count += 1;
  }
  if (sums.size() * 2 > numbers.size()) return "";  // a row or two of each head prove nothing
  for (const Beside& x : numbers) {
    const auto& [sum, count] = sums[{x.head, x.column}];
    if (!x.is_within(x.right + sum / count)) return "";
  }
  return "every row of a head is off by the same vector: a bias of v's projection, lost or added";
}

}  // namespace

std::vector<std::string> relations(const Subject& subject, const Judge& judge,
                                   const std::vector<RowIndex>& rows) {
  std::vector<std::string> said;
  if (judge.claims().out.data == nullptr) return said;
  const std::vector<Beside> numbers = numbers_of_out(subject, judge, rows);
  if (numbers.size() < kFewest) return said;
  for (std::string text : {factor_of_all(numbers), vector_of_each_head(numbers)})
    if (!text.empty()) said.push_back(std::move(text));
  return said;
}

}  // namespace glasshead::doctor
