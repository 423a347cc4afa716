#include "wire/print.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/assert.h"
#include "wire/decimal.h"

namespace glasshead::wire {
namespace {

constexpr double kScientificFrom = 1e7;  // rule R2
// Units of the 12th decimal place of this much, times 100, fit 64 bits.
constexpr double kMostSummed = 1e4;

bool is_whole(double x) { return std::floor(x) == x; }

// The decimal point of a plain number moved two places to the right: "0.8379" -> "83.79".
std::string shift_point_by_two(std::string digits) {
  const std::size_t point = digits.find('.');
  const std::size_t sign = digits[0] == '-' ? 1 : 0;
  std::string all = digits.substr(sign);
  std::size_t whole = all.size();
  if (point != std::string::npos) {
    whole = point - sign;
    all.erase(whole, 1);
  }
  while (all.size() < whole + 2) all += '0';
  whole += 2;
  const std::size_t zeros = std::min(all.find_first_not_of('0'), whole - 1);
  std::string out = digits.substr(0, sign) + all.substr(zeros, whole - zeros);
  if (all.size() > whole) out += '.' + all.substr(whole);
  return out;
}

// A printed number as units of its last place: "0.3302" with 4 places -> 3302.
std::int64_t units_of(std::string_view text, int places) {
  std::int64_t units = 0;
  int seen = -1;
  for (const char c : text) {
    if (c == '.') {
      seen = 0;
    } else if (c >= '0' && c <= '9') {
      units = units * 10 + (c - '0');
      if (seen >= 0) ++seen;
    }
  }
  for (int n = std::max(seen, 0); n < places; ++n) units *= 10;
  return text.empty() || text[0] != '-' ? units : -units;
}

std::string from_units(std::int64_t units, int places) {
  std::string digits = std::to_string(units < 0 ? -units : units);
  const auto width = static_cast<std::size_t>(places) + 1;
  if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
  if (places > 0) digits.insert(digits.size() - static_cast<std::size_t>(places), ".");
  return (units < 0 ? "-" : "") + digits;
}

std::string print_weight(double x, const PrintOptions& options) {
  if (options.is_scientific)
    return print_number(options.is_percent ? 100 * x : x, options.decimals, true);
  return options.is_percent ? print_percent(x, options.decimals)
                            : print_number(x, options.decimals);
}

bool is_spelled_whole(const std::string& text) { return text.find('.') == std::string::npos; }

// Rule R4 on cells already printed to nearest; returns the printed sum in last-place units.
std::int64_t make_digits_add_up(std::vector<Cell*>& shown, const PrintOptions& options) {
  const std::int64_t one = units_of(options.is_percent ? "100" : "1", options.decimals);
  std::int64_t sum = 0;
  for (const Cell* cell : shown) sum += units_of(cell->text, options.decimals);
  if (options.rounding == RowRounding::nearest || sum == one) return sum;
  const int direction = sum < one ? 1 : -1;
  auto excess = static_cast<std::size_t>(sum < one ? one - sum : sum - one);
  std::vector<std::size_t> order(shown.size());
  for (std::size_t n = 0; n < order.size(); ++n) order[n] = n;
  excess = std::min(excess, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(excess), order.end(),
                    [&](std::size_t a, std::size_t b) {
                      if (shown[a]->exact != shown[b]->exact)
                        return shown[a]->exact > shown[b]->exact;
                      return a > b;  // ties: the later column; so the order is total
                    });
  for (std::size_t n = 0; n < excess; ++n) {
    Cell& cell = *shown[order[n]];
    cell.text = from_units(units_of(cell.text, options.decimals) + direction, options.decimals);
    cell.moved = direction;
    sum += direction;
  }
  return sum;
}

Cell hidden_weight() {
  Cell cell;
  cell.text = "·";
  cell.is_hidden = true;
  return cell;
}

// Σ of a row whose cells are printed: judged on the unrounded row, printed from the digits.
RowSum finish_row(std::span<const double> row, std::vector<Cell*> shown, bool has_allowed,
                  std::optional<double> sink, const PrintOptions& options) {
  RowSum sum;
  sum.exact = sum_of_row(row);
  sum.is_empty = !has_allowed;
  if (!has_allowed) {
    sum.text = "—";
    sum.is_ok = sum.exact == 0;
    return sum;
  }
  const index_t terms = static_cast<index_t>(row.size()) + (sink ? 1 : 0);
  sum.is_ok = row_adds_to_one(sum.exact + sink.value_or(0), terms);
  Cell share;
  share.exact = sink.value_or(0);
  share.text = print_weight(share.exact, options);
  double size = 0;
  for (const Cell* cell : shown) size += std::fabs(cell->exact);
  // Rule R6: digits cannot hide a failure. Without softmax large numbers may add to 1 by chance.
  if (!sum.is_ok || options.is_scientific || size > kMostSummed) {
    sum.text = print_weight(sum.exact, options) + (sink ? " + sink " + share.text : "");
    return sum;
  }
  if (sink) shown.push_back(&share);
  const bool is_whole_row = std::all_of(
      shown.begin(), shown.end(), [](const Cell* cell) { return is_spelled_whole(cell->text); });
  std::int64_t units = make_digits_add_up(shown, options);
  if (sink) units -= units_of(share.text, options.decimals);
  sum.text = is_whole_row && options.decimals > 0
                 ? std::to_string(units / units_of("1", options.decimals))
                 : from_units(units, options.decimals);
  if (sink) sum.text += " + sink " + marked(share);
  return sum;
}

// The kLongRowTop largest allowed entries, ties to the earlier key.
std::vector<index_t> largest(std::span<const double> row, std::span<const char> hidden) {
  std::vector<index_t> order;
  for (std::size_t j = 0; j < row.size(); ++j)
    if (hidden.empty() || hidden[j] == 0) order.push_back(static_cast<index_t>(j));
  const auto key = [&](index_t j) {
    const double x = row[static_cast<std::size_t>(j)];
    return std::isnan(x) ? std::numeric_limits<double>::infinity() : x;  // NaN is never tucked away
  };
  const auto count = std::min<std::size_t>(order.size(), static_cast<std::size_t>(kLongRowTop));
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
      [&](index_t a, index_t b) { return key(a) != key(b) ? key(a) > key(b) : a < b; });
  order.resize(count);
  return order;
}

index_t allowed_count(std::size_t n, std::span<const char> hidden) {
  if (hidden.empty()) return static_cast<index_t>(n);
  return static_cast<index_t>(std::count(hidden.begin(), hidden.end(), 0));
}

}  // namespace

std::string print_number(double x, int decimals, bool is_scientific) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x < 0 ? "−∞" : "inf";
  if (x == 0) return "0";
  if (is_scientific) return scientific(x, std::max(decimals - 1, 0));
  if (is_whole(x) && std::fabs(x) < kScientificFrom) return fixed(x, 0);
  return fixed(x, decimals);
}

bool needs_scientific(std::span<const double> values, int decimals) {
  double smallest_shown = 1;
  for (int n = 0; n < decimals; ++n) smallest_shown /= 10;
  bool has_nonzero = false, has_shown = false;
  for (const double x : values) {
    if (!std::isfinite(x) || x == 0) continue;
    has_nonzero = true;
    if (std::fabs(x) >= kScientificFrom) return true;
    if (std::fabs(x) >= smallest_shown) has_shown = true;
  }
  return has_nonzero && !has_shown;
}

std::string print_alone(double x, int decimals) {
  return print_number(x, decimals, needs_scientific({&x, 1}, decimals));
}

std::string print_percent(double x, int decimals) {
  if (!std::isfinite(x) || x == 0) return print_number(x, decimals);
  if (x == 1) return "100";
  return shift_point_by_two(fixed(x, decimals + 2));
}

double sum_of_row(std::span<const double> row) {
  constexpr std::size_t kBlock = 128;
  double total = 0;
  for (std::size_t begin = 0; begin < row.size(); begin += kBlock) {
    double block = 0;
    for (std::size_t j = begin; j < std::min(begin + kBlock, row.size()); ++j) block += row[j];
    total += block;
  }
  return total;
}

bool row_adds_to_one(double sum, index_t n) {
  constexpr double kUnitRoundoff = 0x1p-53;
  return std::fabs(sum - 1) <= 4 * static_cast<double>(n) * kUnitRoundoff;
}

PrintedRow print_weights_row(std::span<const double> row, std::span<const char> hidden,
                             const PrintOptions& options, std::optional<double> sink) {
  PrintedRow printed;
  printed.cells.resize(row.size());
  std::vector<Cell*> shown;
  for (std::size_t j = 0; j < row.size(); ++j) {
    Cell& cell = printed.cells[j];
    if (!hidden.empty() && hidden[j] != 0) {
      cell = hidden_weight();
      continue;
    }
    cell.exact = row[j];
    cell.text = print_weight(row[j], options);
    shown.push_back(&cell);
  }
  printed.sum = finish_row(row, shown, !shown.empty(), sink, options);
  return printed;
}

PrintedLongRow print_long_weights_row(std::span<const double> row, std::span<const char> hidden,
                                      const PrintOptions& options, std::optional<double> sink) {
  PrintedLongRow printed;
  const std::vector<index_t> top = largest(row, hidden);
  std::vector<double> rest(row.begin(), row.end());
  std::vector<Cell*> shown;
  for (const index_t j : top) {
    Cell cell;
    cell.exact = row[static_cast<std::size_t>(j)];
    cell.text = print_weight(cell.exact, options);
    rest[static_cast<std::size_t>(j)] = 0;
    printed.row.top.push_back({j, {}, cell, {}});
  }
  for (Table::LongEntry& entry : printed.row.top) shown.push_back(&entry.cell);
  const index_t allowed = allowed_count(row.size(), hidden);
  printed.row.other_count = allowed - static_cast<index_t>(top.size());
  printed.row.others.exact = sum_of_row(rest);
  printed.row.others.text = print_weight(printed.row.others.exact, options);
  if (printed.row.other_count > 0) shown.push_back(&printed.row.others);
  printed.sum = finish_row(row, shown, allowed > 0, sink, options);
  return printed;
}

Table::LongRow print_long_row(std::span<const double> row, std::span<const char> hidden,
                              int decimals, bool is_scientific) {
  Table::LongRow printed;
  for (const index_t j : largest(row, hidden)) {
    Cell cell;
    cell.exact = row[static_cast<std::size_t>(j)];
    cell.text = print_number(cell.exact, decimals, is_scientific);
    printed.top.push_back({j, {}, cell, {}});
  }
  printed.other_count =
      allowed_count(row.size(), hidden) - static_cast<index_t>(printed.top.size());
  return printed;
}

double read_printed(std::string_view text) {
  if (text == "−∞") return -std::numeric_limits<double>::infinity();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  double units = 0, power = 1;
  int exponent = 0, exponent_sign = 1;
  bool is_fraction = false, is_exponent = false;
  for (const char c : text) {
    if (c == '.') {
      is_fraction = true;
    } else if (c == 'e') {
      is_exponent = true;
    } else if (c == '-' && is_exponent) {
      exponent_sign = -1;
    } else if (c >= '0' && c <= '9' && is_exponent) {
      exponent = exponent * 10 + (c - '0');
    } else if (c >= '0' && c <= '9') {
      units = units * 10 + (c - '0');
      if (is_fraction) power *= 10;
    }
  }
  for (int n = 0; n < exponent; ++n) exponent_sign > 0 ? units *= 10 : power *= 10;
  const double size = units / power;
  return !text.empty() && text[0] == '-' ? -size : size;
}

int decimals_of(std::string_view text) {
  const std::size_t point = text.find('.');
  if (point == std::string_view::npos) return 0;
  int count = 0;
  for (std::size_t n = point + 1; n < text.size() && text[n] >= '0' && text[n] <= '9'; ++n) ++count;
  return count;
}

const char* equals_sign(double exact_on_digits, const std::string& printed) {
  if (std::isnan(exact_on_digits) || std::isinf(exact_on_digits)) {
    return print_number(exact_on_digits, 0) == printed ? "=" : "≈";
  }
  // Half a unit of the last printed place, with room for the error of working in binary.
  double half_unit = 0.5;
  for (int n = 0; n < decimals_of(printed); ++n) half_unit /= 10;
  const double miss = std::fabs(exact_on_digits - read_printed(printed));
  return miss <= half_unit * (1 + 1e-9) ? "=" : "≈";
}

}  // namespace glasshead::wire
