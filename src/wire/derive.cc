#include "wire/derive.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>

#include <fmt/format.h>

#include "base/math.h"
#include "wire/document_build.h"
#include "wire/document_tables.h"
#include "wire/print.h"
#include "wire/sequence.h"

namespace glasshead::wire {
namespace {

constexpr std::size_t kMostTerms = 64;  // more are counted, not listed
constexpr std::size_t kMostInLine = 8;

class Deriver {
 public:
  Deriver(const Case& c, const Trace& trace, const TracedStep& step, const Region& entry,
          int decimals)
      : case_(c),
        trace_(trace),
        step_(step.step),
        is_of_rows_(is_of_rows(step)),
        entry_(entry),
        decimals_(decimals) {
    value_ = is_of_rows_ ? of_row(step.value) : at(step.value, entry);
  }

  // One number for each row, shown as a column.
  static bool is_of_rows(const TracedStep& step) {
    const std::string_view op = step.step.op->id;
    return op == "row_max" || op == "row_sum" || op == "lse";
  }

  Derivation derive() {
    derivation_.formula = step_.op->formula;
    derivation_.sentence = step_.op->sentence;
    const std::string_view op = step_.op->id;
    if (op == "scaled")
      equation(" · ", read(0), print_alone(number(step_, "scale", 1), decimals_));
    else if (op == "masked")
      add(read(0) + " stays: the pair may attend");
    else if (op == "row_max")
      add("the largest of " + listed());
    else if (op == "exp")
      exponential();
    else if (op == "row_sum")
      sum_of_row();
    else if (op == "weights" && step_.reads.size() > 1)
      quotient();
    else if (op == "residual")
      equation(" + ", read(0), read(1));
    else if (op == "times")
      equation(" · ", read(0), read(1));
    else
      products();
    return std::move(derivation_);
  }

 private:
  std::string print(double x) const { return print_number(x, decimals_); }
  void add(std::string line) { derivation_.lines.push_back(std::move(line)); }
  // "left sign printed-value"
  void conclude(std::string left, double on_digits) {
    const std::string result = print(value_);
    left += std::string(" ") + equals_sign(on_digits, result) + " " + result;
    add(std::move(left));
  }

  const TraceTensor* tensor(std::size_t read) const {
    return read < step_.reads.size() ? trace_.find(step_.reads[read]) : nullptr;
  }
  index_t matrix_of(const TraceTensor& other) const {
    const Matrices own = matrices_of(trace_.find(step_.tap)->shape);
    // Of one number a row, [heads, rows], the rows are columns.
    const index_t heads = is_of_rows_ ? own.count * own.rows : own.count;
    const index_t count = matrices_of(other.shape).count;
    return entry_.head < 0 ? 0 : entry_.head * count / heads;
  }
  double at(const TraceTensor& value, const Region& entry) const {
    const std::span<const double> row =
        row_of(value, entry.head < 0 ? 0 : entry.head, value.shape.size() < 2 ? 0 : entry.row);
    return row[static_cast<std::size_t>(entry.column)];
  }
  // The same entry of what the step reads.
  double read_value(std::size_t n) const {
    const TraceTensor* other = tensor(n);
    return other == nullptr ? 0 : at(*other, entry_);
  }
  std::string read(std::size_t n) const { return print(read_value(n)); }
  std::span<const double> read_row(std::size_t n) const {
    const TraceTensor* other = tensor(n);
    return other == nullptr ? std::span<const double>()
                            : row_of(*other, matrix_of(*other), entry_.row);
  }

  static std::string in_brackets(const std::string& number) {
    return number[0] == '-' ? "(" + number + ")" : number;
  }

  void equation(const char* sign, const std::string& a, const std::string& b) {
    const double x = read_printed(a), y = read_printed(b);
    conclude(a + sign + in_brackets(b), std::string_view(sign) == " + " ? x + y : x * y);
  }

  std::string listed() const {
    std::string words;
    for (const double x : read_row(0)) words += (words.empty() ? "" : ", ") + print(x);
    return words;
  }

  // exp(z - max) of the row, and what the row's step before says of both.
  void exponential() {
    const std::string z = read(0);
    const TraceTensor* max = tensor(1);
    if (max == nullptr || number(step_, "shift", 1) == 0) {
      conclude("exp(" + z + ")", math::exp(read_printed(z)));
      return;
    }
    const std::string top = print(of_row(*max));
    const std::string minus = top[0] == '-' ? " + " + top.substr(1) : " − " + top;
    conclude("exp(" + z + minus + ")", math::exp(read_printed(z) - read_printed(top)));
  }

  // Of a tensor with one number a row.
  double of_row(const TraceTensor& value) const {
    const index_t rows = matrices_of(value.shape).columns;  // [heads, rows]
    return value
        .values[static_cast<std::size_t>((entry_.head < 0 ? 0 : entry_.head) * rows + entry_.row)];
  }

  void sum_of_row() {
    double on_digits = 0;
    std::string words;
    for (const double x : read_row(0)) {
      if (x == 0) continue;
      words += (words.empty() ? "" : " + ") + print(x);
      on_digits += read_printed(print(x));
    }
    conclude(words.empty() ? "no key" : words, on_digits);
  }

  void quotient() {
    const TraceTensor* sum = tensor(1);
    const std::string above = read(0), below = print(of_row(*sum));
    conclude(above + "/" + below, read_printed(above) / read_printed(below));
  }

  // What provenance says are a row and a column, multiplied number by number; a third part, a bias,
  // is added.
  void products() {
    const std::vector<Region> from =
        provenance(trace_, step_.tap, entry_.head, entry_.row, entry_.column);
    std::vector<double> parts[2];
    double bias = 0;
    bool has_bias = false;
    for (const Region& region : from) {
      std::vector<double> numbers = numbers_of(region);
      const TraceTensor* value = trace_.find(region.tap);
      if (value != nullptr && value->shape.size() < 2 && from.size() > 2) {
        bias = numbers[0];
        has_bias = true;
      } else {
        (parts[0].empty() ? parts[0] : parts[1]) = std::move(numbers);
      }
    }
    // Of a projection the matrix is named before the row.
    if (!from.empty() && step_.reads.size() > 1 && from.front().tap == step_.reads[1] &&
        step_.reads[0] != step_.reads[1])
      std::swap(parts[0], parts[1]);
    if (parts[1].empty() && parts[0].size() == 1) add(print(parts[0][0]) + " → " + print(value_));
    if (parts[0].size() != parts[1].size() || parts[0].empty()) return;
    sum_of_products(parts[0], parts[1], has_bias ? &bias : nullptr);
  }

  std::vector<double> numbers_of(const Region& region) const {
    const TraceTensor* value = trace_.find(region.tap);
    if (value == nullptr) return {};
    const Matrices matrices = matrices_of(value->shape);
    std::vector<double> numbers;
    for (index_t i = 0; i < matrices.rows; ++i)
      for (index_t j = 0; j < matrices.columns; ++j)
        if ((region.row < 0 || region.row == i) && (region.column < 0 || region.column == j))
          numbers.push_back(
              row_of(*value, region.head < 0 ? 0 : region.head, i)[static_cast<std::size_t>(j)]);
    return numbers;
  }

  void sum_of_products(const std::vector<double>& a, const std::vector<double>& b,
                       const double* bias) {
    std::string words;
    double on_digits = 0, running = 0, largest = 0;
    for (std::size_t n = 0; n < a.size(); ++n) largest = std::max(largest, std::fabs(a[n] * b[n]));
    for (std::size_t n = 0; n < a.size(); ++n) {
      const double product = a[n] * b[n];
      running += product;
      const std::string left = print(a[n]), right = print(b[n]);
      on_digits += read_printed(left) * read_printed(right);
      words += (n == 0 ? "" : " + ") + left + "·" + in_brackets(right);
      if (a.size() <= kMostTerms)
        derivation_.terms.push_back({label(n), left, right, print(product), print(running), product,
                                     largest > 0 ? product / largest : 0});
    }
    if (bias != nullptr) {
      words += " + " + in_brackets(print(*bias));
      on_digits += read_printed(print(*bias));
    }
    if (a.size() > kMostInLine)
      words = fmt::format("{} products{}", a.size(), bias != nullptr ? " and a bias" : "");
    conclude(words, on_digits);
  }

  // The key for out, else the coordinate.
  std::string label(std::size_t n) const {
    if (std::string_view(step_.op->id) != "out") return fmt::format("{}", n);
    const std::vector<std::string> keys = Sequence(case_, trace_).keys(step_.tap);
    return n < keys.size() ? shown_labels(keys)[n] : fmt::format("{}", n);
  }

  const Case& case_;
  const Trace& trace_;
  const Step& step_;
  bool is_of_rows_;
  const Region& entry_;
  int decimals_;
  double value_ = 0;
  Derivation derivation_;
};

}  // namespace

std::optional<Derivation> derive(const Case& c, const Trace& trace, const Region& entry,
                                 int decimals) {
  for (const TracedStep& step : trace.steps) {
    if (step.step.tap != entry.tap || step.step.op == nullptr) continue;
    Matrices matrices = matrices_of(step.value.shape);
    if (Deriver::is_of_rows(step)) matrices = {matrices.count * matrices.rows, matrices.columns, 1};
    const bool is_inside = entry.row >= 0 && entry.row < matrices.rows && entry.column >= 0 &&
                           entry.column < matrices.columns && entry.head < matrices.count;
    if (!is_inside) return std::nullopt;
    return Deriver(c, trace, step, entry, decimals).derive();
  }
  return std::nullopt;
}

}  // namespace glasshead::wire
