// The printing rules (docs/printing.md has them with examples): how a double becomes a Cell. Every
// printed form and the "printed" part of the JSON take their strings from here.
//
//   print_number(0.33023845, 4) == "0.3302"     print_number(1, 4) == "1"    (exactly that double)
//   PrintedRow row = print_weights_row(weights, hidden, {});    // adds up to 1 in its digits
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wire/document.h"

namespace glasshead::wire {

enum class RowRounding {
  sum_to_one,  // one unit moved on the largest entries so that the printed row adds to 1 (rule R4)
  nearest      // nothing is moved; the Σ printed is that of the digits
};

struct PrintOptions {
  int decimals = 4;         // 0 to 12
  bool is_percent = false;  // weights and probabilities times 100
  RowRounding rounding = RowRounding::sum_to_one;
  bool is_full = false;        // rows longer than kLongRow are printed whole
  bool is_scientific = false;  // weights made without softmax that rule R2 writes so
};

inline constexpr int kMaxDecimals = 12;
inline constexpr index_t kLongRow = 16;    // rows of more keys print their largest (rule R7)
inline constexpr index_t kLongRowTop = 8;  // as many
inline constexpr int kLabelCells = 8;      // longer labels are cut (rule R8)

// Rules R2 and R3: correctly rounded from the binary value; a whole number below 10^7 in size as
// such ("1" is exactly 1, "1.0000" rounds to 1); never "-0"; "nan", "inf", "−∞".
std::string print_number(double x, int decimals, bool is_scientific = false);

// Rule R2: an entry of 10^7 or more, or nonzero entries that all lie below 10^-decimals.
bool needs_scientific(std::span<const double> values, int decimals);

// A number that stands alone, as the scale does: rule R2 for it as for a matrix.
std::string print_alone(double x, int decimals);

// x times 100, its decimal point moved, so still correctly rounded.
std::string print_percent(double x, int decimals);

struct PrintedRow {
  std::vector<Cell> cells;
  RowSum sum;
};

// Rules R3, R4, R6 for one row of weights or probabilities. `hidden` marks masked pairs; empty:
// none. `sink` is the share of the sum that a sink takes: the row and it add to 1, and Σ prints it
// behind the row's own sum, "0.8766 + sink 0.1234".
PrintedRow print_weights_row(std::span<const double> row, std::span<const char> hidden,
                             const PrintOptions& options, std::optional<double> sink = {});

// Rule R7: the largest kLongRowTop entries (ties: the earlier key) and the rest together; rule R4
// over what is printed. Labels are left empty.
struct PrintedLongRow {
  Table::LongRow row;
  RowSum sum;
};
PrintedLongRow print_long_weights_row(std::span<const double> row, std::span<const char> hidden,
                                      const PrintOptions& options, std::optional<double> sink = {});
// The same without sums, for scores and the like: the largest entries by value.
Table::LongRow print_long_row(std::span<const double> row, std::span<const char> hidden,
                              int decimals, bool is_scientific);

// Rule R6: |sum - 1| <= 4·n·2^-53 on the unrounded row (sum in blocks of 128, then in order).
double sum_of_row(std::span<const double> row);
bool row_adds_to_one(double sum, index_t n);

// Rule R5: "=" if `exact_on_digits`, the printed equation's left side worked out on its printed
// digits, prints as `printed` does; else "≈".
const char* equals_sign(double exact_on_digits, const std::string& printed);

// A printed number (marks removed) as a double; "−∞" is -inf. Exact enough for rule R5: within one
// unit of the 16th digit.
double read_printed(std::string_view text);
// How many digits stand after the decimal point.
int decimals_of(std::string_view text);

}  // namespace glasshead::wire
