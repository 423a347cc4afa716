#include "wire/diff.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "wire/display.h"
#include "wire/document_compare.h"
#include "wire/document_tables.h"
#include "wire/sequence.h"

namespace glasshead::wire {
namespace {

bool is_same(double a, double b) { return is_unmoved(a, b); }

// How far a number moved; from or to what is none, furthest.
double distance(double a, double b) {
  const double d = std::fabs(b - a);
  return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
}

class Differ {
 public:
  Differ(const Comparison& comparison, const AttentionPart& before, const AttentionPart& after,
         const DocumentOptions& options)
      : comparison_(comparison), before_(before), after_(after), options_(options) {
    const Sequence sequence(comparison.after_case, comparison.after);
    const std::string tap = after.prefix + "scores";
    queries_ = shown_labels(sequence.queries(tap));
    key_names_ = sequence.keys(tap);
    keys_ = shown_labels(key_names_);
    if (options.query) query_ = *options.query - sequence.first_row(tap);
  }

  void lines(index_t m, std::vector<std::string>& out);
  // How many weights of matrix m stayed, and why.
  std::string summary(index_t m);

 private:
  struct Row {
    PrintedRow before, after;
  };
  const TraceTensor& was(const char* leaf) const {
    return comparison_.before.at(before_.prefix + leaf);
  }
  const TraceTensor& is(const char* leaf) const {
    return comparison_.after.at(after_.prefix + leaf);
  }
  Row row(index_t m, index_t i) const;
  std::string label(const std::vector<std::string>& labels, index_t n) const {
    const auto at = static_cast<std::size_t>(n);
    return at < labels.size() ? labels[at] : fmt::format("{}", n);
  }
  // Of a key whose number stands beside it.
  std::string key_label(index_t j) const {
    const auto at = static_cast<std::size_t>(j);
    return at < key_names_.size() ? shown_label(key_names_[at]) : std::string();
  }
  std::string cell(const Cell& before, const Cell& after) const;
  void count(index_t m);
  std::vector<char> hidden(const AttentionPart& part, index_t m, index_t i) const {
    return hidden_row(*part.plan, m / part.shape.heads, m % part.shape.heads, i);
  }
  void weights_grid(index_t m, const std::vector<index_t>& rows,
                    std::vector<std::string>& out) const;
  void weights_moved_most(index_t m, index_t i, std::vector<std::string>& out) const;
  std::string why_unmoved(index_t m, index_t i) const;
  void out_lines(index_t m, const std::vector<index_t>& rows, std::vector<std::string>& out) const;
  std::string out_words(index_t m, index_t i) const;
  std::string out_moved_most(index_t m, index_t i) const;
  std::string what_changed() const;

  const Comparison& comparison_;
  const AttentionPart& before_;
  const AttentionPart& after_;
  const DocumentOptions& options_;
  std::vector<std::string> queries_, keys_, key_names_;  // as shown; as they are
  std::optional<index_t> query_;
  index_t weights_ = 0, unmoved_ = 0;
  std::vector<index_t> unmoved_rows_;
};

Differ::Row Differ::row(index_t m, index_t i) const {
  const auto print = [&](const AttentionPart& part, const TraceTensor& weights) {
    return print_weights_row(row_of(weights, m, i), hidden(part, m, i), options_.print,
                             sink_share(&part, m, i));
  };
  return {print(before_, was("weights")), print(after_, is("weights"))};
}

// "0.4011→0.3333 ▼", "0.1978  ="
std::string Differ::cell(const Cell& before, const Cell& after) const {
  if (before.is_hidden && after.is_hidden) return before.text;
  if (!before.is_hidden && !after.is_hidden && is_same(before.exact, after.exact))
    return marked(before) + "  =";
  const std::string words = marked(before) + "→" + marked(after);
  const double from = before.is_hidden ? 0 : before.exact, to = after.is_hidden ? 0 : after.exact;
  const bool has_marks = before.moved != 0 || after.moved != 0;
  return words + (has_marks ? "" : " ") + (to > from ? "▲" : "▼");
}

void Differ::count(index_t m) {
  for (const index_t i : shown_rows(after_.shape.q_len, query_)) {
    const std::span<const double> a = row_of(was("weights"), m, i), b = row_of(is("weights"), m, i);
    const std::vector<char> a_hidden = hidden(before_, m, i), b_hidden = hidden(after_, m, i);
    const index_t unmoved = unmoved_;
    for (std::size_t j = 0; j < b.size(); ++j) {
      if (a_hidden[j] != 0 && b_hidden[j] != 0) continue;
      ++weights_;
      if (a_hidden[j] == b_hidden[j] && is_same(a[j], b[j])) ++unmoved_;
    }
    if (unmoved_ > unmoved) unmoved_rows_.push_back(i);
  }
}

void Differ::lines(index_t m, std::vector<std::string>& out) {
  const std::vector<index_t> rows = shown_rows(after_.shape.q_len, query_);
  if (after_.shape.kv_len <= kLongRow || options_.print.is_full)
    weights_grid(m, rows, out);
  else
    for (const index_t i : rows) weights_moved_most(m, i, out);
  out_lines(m, rows, out);
  out.push_back(summary(m));
}

// Every weight before and after, and what the rows add to; as many keys beside one another as fit.
void Differ::weights_grid(index_t m, const std::vector<index_t>& rows,
                          std::vector<std::string>& out) const {
  constexpr int kSeparator = 3, kHeaderBack = 5;
  std::vector<std::vector<std::string>> cells;
  std::vector<std::string> sums;
  int label_width = 0, sum_width = 0;
  for (const index_t i : rows) {
    const Row both = row(m, i);
    cells.emplace_back();
    for (std::size_t j = 0; j < both.after.cells.size(); ++j)
      cells.back().push_back(cell(both.before.cells[j], both.after.cells[j]));
    const RowSum& sum = both.after.sum;
    sums.push_back(sum.text + (sum.is_empty ? "" : sum.is_ok ? " ✓" : " ✗"));
    label_width = std::max(label_width, display_width(label(queries_, i)));
    sum_width = std::max(sum_width, display_width(sums.back()));
  }
  const index_t keys = after_.shape.kv_len;
  index_t j = 0;
  do {
    std::vector<std::string> lines(rows.size() + 1);
    if (j == 0) lines[0] = "weights";
    for (std::size_t n = 0; n < rows.size(); ++n)
      lines[n + 1] = "  " + pad_right(label(queries_, rows[n]), label_width);
    int start = 2 + label_width;
    for (bool is_first = true; j < keys; ++j, is_first = false) {
      int width = 0;
      for (const auto& row_cells : cells)
        width = std::max(width, display_width(row_cells[static_cast<std::size_t>(j)]));
      const int last = j + 1 == keys ? kSeparator + sum_width : 0;
      if (!is_first && start + kSeparator + width + last > options_.width) break;
      start += kSeparator;
      const int at = start + std::max(width - kHeaderBack, 0);
      lines[0] = pad_right(lines[0], std::max(at, display_width(lines[0]) + 1)) + label(keys_, j);
      for (std::size_t n = 0; n < rows.size(); ++n)
        lines[n + 1] = pad_right(lines[n + 1], start) + cells[n][static_cast<std::size_t>(j)];
      start += width;
    }
    if (j == keys) {
      start += kSeparator;
      const int digits = sums.empty() ? 0 : display_width(sums[0]) - 2;
      lines[0] =
          pad_right(lines[0], std::max(start + std::max(digits, 0), display_width(lines[0]) + 1)) +
          "Σ";
      for (std::size_t n = 0; n < rows.size(); ++n)
        lines[n + 1] = pad_right(lines[n + 1], start) + sums[n];
    }
    out.insert(out.end(), lines.begin(), lines.end());
  } while (j < keys);
}

// The same of a long row: the weights that moved most, and the others together (as rule R7).
void Differ::weights_moved_most(index_t m, index_t i, std::vector<std::string>& out) const {
  const Row both = row(m, i);
  const auto size = [](const Cell& cell) { return cell.is_hidden ? 0.0 : cell.exact; };
  struct Moved {
    double by = 0;
    std::size_t key = 0;
  };
  std::vector<Moved> order;
  for (std::size_t j = 0; j < both.after.cells.size(); ++j)
    order.push_back({distance(size(both.before.cells[j]), size(both.after.cells[j])), j});
  std::sort(order.begin(), order.end(), [](const Moved& a, const Moved& b) {
    return a.by != b.by ? a.by > b.by : a.key < b.key;
  });
  const std::size_t shown = std::min(order.size(), static_cast<std::size_t>(kLongRowTop));
  std::vector<std::string> cells;
  int width = 0;
  for (std::size_t n = 0; n < shown; ++n) {
    cells.push_back(cell(both.before.cells[order[n].key], both.after.cells[order[n].key]));
    width = std::max(width, display_width(cells.back()));
  }
  out.push_back(fmt::format("weights of {}, the {} of {} that moved most", label(queries_, i),
                            shown, order.size()));
  for (std::size_t n = 0; n < shown; ++n) {
    const auto key = static_cast<index_t>(order[n].key);
    out.push_back("    " + pad_right(cells[n], width) + pad_left(fmt::format("{}", key), 7) +
                  "   " + key_label(key));
  }
  double before = 0, after = 0;
  for (std::size_t n = shown; n < order.size(); ++n) {
    before += size(both.before.cells[order[n].key]);
    after += size(both.after.cells[order[n].key]);
  }
  const auto number = [&](double x) {
    return options_.print.is_percent ? print_percent(x, options_.print.decimals)
                                     : print_number(x, options_.print.decimals);
  };
  out.push_back(fmt::format("    others ({}) {}→{}; all {}{}", order.size() - shown, number(before),
                            number(after), both.after.sum.text,
                            both.after.sum.is_empty ? ""
                            : both.after.sum.is_ok  ? " ✓"
                                                    : " ✗"));
}

std::string Differ::out_words(index_t m, index_t i) const {
  const auto words = [&](std::span<const double> row) {
    std::string text;
    for (const double x : row)
      text += (text.empty() ? "(" : ", ") + print_number(x, options_.print.decimals);
    return text + ")";
  };
  const std::span<const double> a = row_of(was("out"), m, i), b = row_of(is("out"), m, i);
  const bool is_unmoved = std::equal(a.begin(), a.end(), b.begin(), b.end(), is_same);
  return label(queries_, i) + " " + words(a) + (is_unmoved ? " =" : "→" + words(b));
}

// "S moved by 3.2101: [8] 4.7041→1.2003, ...": the length of the difference, and the coordinates
// that make most of it.
std::string Differ::out_moved_most(index_t m, index_t i) const {
  const std::span<const double> a = row_of(was("out"), m, i), b = row_of(is("out"), m, i);
  const int p = options_.print.decimals;
  std::vector<std::size_t> order;
  double squares = 0;
  for (std::size_t d = 0; d < a.size(); ++d) {
    if (!is_same(a[d], b[d])) order.push_back(d);
    squares += (b[d] - a[d]) * (b[d] - a[d]);
  }
  if (order.empty()) return label(queries_, i) + " =";
  std::sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) {
    const double of_x = distance(a[x], b[x]), of_y = distance(a[y], b[y]);
    return of_x != of_y ? of_x > of_y : x < y;
  });
  std::string words = fmt::format("{} moved by a length of {}, most in", label(queries_, i),
                                  print_alone(std::sqrt(squares), p));
  for (std::size_t n = 0; n < std::min(order.size(), static_cast<std::size_t>(kLongRowTop)); ++n)
    words += fmt::format("{} [{}] {}→{}", n == 0 ? "" : ",", order[n], print_number(a[order[n]], p),
                         print_number(b[order[n]], p));
  return words;
}

// On one line; of a wide attention only where it fits.
void Differ::out_lines(index_t m, const std::vector<index_t>& rows,
                       std::vector<std::string>& out) const {
  constexpr int kStart = 6, kHang = 8;
  const bool is_long = matrices_of(is("out").shape).columns > kLongRow && !options_.print.is_full;
  std::vector<std::string> parts;
  std::string line = "out";
  for (const index_t i : rows) {
    parts.push_back(is_long ? out_moved_most(m, i) : out_words(m, i));
    line += "   " + parts.back();
  }
  if (!is_wide(after_) || display_width(line) <= options_.width) {
    out.push_back(line);
    return;
  }
  for (std::size_t n = 0; n < parts.size(); ++n)
    for (std::string& part :
         wrapped((n == 0 ? pad_right("out", kStart) : std::string(kStart, ' ')) + parts[n],
                 options_.width, kHang))
      out.push_back(std::move(part));
}

// "B", "the mask", "the scale", ...: what the two cases differ in; "" if in none of these.
std::string Differ::what_changed() const {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const auto& [tap, value] : comparison_.after.inputs) {
    if (Sequence::run_of(tap) > 0) continue;  // made by earlier runs, not given
    const TraceTensor* old = comparison_.before.find(tap);
    if (!old || old->values == value.values) continue;
    const Matrices matrices = matrices_of(value.shape);
    const bool is_rows = tap == "X" && old->shape == value.shape;
    if (!is_rows) add(tap);
    for (index_t i = 0; i < matrices.rows && is_rows; ++i) {
      const std::span<const double> a = row_of(*old, 0, i), b = row_of(value, 0, i);
      if (!std::equal(a.begin(), a.end(), b.begin()))
        add(label(shown_labels(comparison_.after_case.query_labels), i));
    }
  }
  bool is_masked_anew = false;
  for (index_t i = 0; i < after_.shape.q_len; ++i)
    is_masked_anew =
        is_masked_anew || hidden_row(*before_.plan, 0, 0, i) != hidden_row(*after_.plan, 0, 0, i);
  if (is_masked_anew) add("the mask");
  if (before_.scale != after_.scale) add("the scale");
  std::string words;
  for (std::size_t n = 0; n < names.size(); ++n)
    words += (n == 0 ? "" : n + 1 == names.size() ? " and " : ", ") + names[n];
  return words;
}

// Why a row kept its weights: its scores did not move, or all moved together.
std::string Differ::why_unmoved(index_t m, index_t i) const {
  const std::span<const double> a = row_of(was("scores"), m, i), b = row_of(is("scores"), m, i);
  const std::vector<char> marks = hidden(after_, m, i);
  if (marks != hidden(before_, m, i)) return {};
  std::string from, to;
  bool has_moved = false, is_together = true, are_equal = true;
  double shift = 0, first = 0;
  index_t allowed = 0;
  for (std::size_t j = 0; j < a.size(); ++j) {
    if (marks[j] != 0) continue;
    if (allowed++ == 0) shift = b[j] - a[j], first = a[j];
    are_equal = are_equal && is_same(a[j], first);
    has_moved = has_moved || !is_same(a[j], b[j]);
    is_together = is_together && is_same(b[j] - a[j], shift);
    from += (from.empty() ? "" : " ") + print_number(a[j], options_.print.decimals);
    to += (to.empty() ? "" : " ") + print_number(b[j], options_.print.decimals);
  }
  const std::string name = "row " + label(queries_, i);
  if (allowed == 1) return name + " sees one key, which gets all";
  if (!has_moved && before_.scale == after_.scale) return "no score that " + name + " sees moved";
  constexpr index_t kListed = 8;
  if (!has_moved) {
    if (!are_equal) return {};
    return "the scores that " + name + " sees are equal" +
           (allowed <= kListed ? " (" + from + ")" : "") + ", and so they are at any scale";
  }
  if (!is_together) return {};
  std::string words =
      "in " + name + " every score " + (shift > 0 ? "rose" : "fell") + " by the same amount";
  if (allowed <= kListed) words += " (" + from + " → " + to + ")";
  return words;
}

std::string Differ::summary(index_t m) {
  count(m);
  if (unmoved_ == 0) return fmt::format("all {} weights moved", weights_);
  const std::string changed = what_changed();
  if (changed.empty() && unmoved_ == weights_)
    return "nothing was changed: the inputs, the mask and the scale are as they were";
  const std::string words = fmt::format("{} of {} weights {} unchanged although ", unmoved_,
                                        weights_, unmoved_ == 1 ? "is" : "are") +
                            (changed.empty() ? "something" : changed) + " changed";
  std::string reasons;
  for (const index_t i : unmoved_rows_) {
    const std::string why = why_unmoved(m, i);
    if (!why.empty()) reasons += (reasons.empty() ? ": " : "; ") + why;
  }
  return words + reasons;
}

// use(differ, m) for every attention and head; without one where their sizes differ.
template <class Use>
void for_each_head(const Comparison& comparison, const DocumentOptions& options, const Use& use,
                   std::vector<std::string>* lines) {
  const std::vector<AttentionPart> before = attentions(comparison.before);
  const std::vector<AttentionPart> after = attentions(comparison.after);
  const Sequence sequence(comparison.after_case, comparison.after);
  for (std::size_t n = 0; n < after.size() && n < before.size(); ++n) {
    const PairShape &a = before[n].shape, &b = after[n].shape;
    if (a.heads != b.heads || a.q_len != b.q_len || a.kv_len != b.kv_len) {
      if (lines != nullptr)
        lines->push_back(after[n].prefix +
                         "weights: the sizes differ, so there is nothing to compare");
      continue;
    }
    if (options.query && !sequence.has_row(after[n].prefix + "scores", *options.query)) continue;
    for (index_t m = 0; m < b.batch * b.heads; ++m) {
      if (options.head && m % b.heads != *options.head) continue;
      if (lines != nullptr && (after.size() > 1 || after[n].has_heads))
        lines->push_back(after[n].prefix + fmt::format("head {}", m % b.heads));
      Differ differ(comparison, before[n], after[n], options);
      use(differ, m);
    }
  }
}

}  // namespace

std::vector<std::string> diff_lines(const Comparison& comparison, const DocumentOptions& options) {
  std::vector<std::string> lines;
  for_each_head(
      comparison, options, [&](Differ& differ, index_t m) { differ.lines(m, lines); }, &lines);
  if (lines.empty()) lines.emplace_back("no attention to compare");
  return lines;
}

std::vector<std::string> diff_summaries(const Comparison& comparison,
                                        const DocumentOptions& options) {
  std::vector<std::string> summaries;
  for_each_head(
      comparison, options,
      [&](Differ& differ, index_t m) { summaries.push_back(differ.summary(m)); }, nullptr);
  return summaries;
}

Document diff_document(const Comparison& comparison, const DocumentOptions& options) {
  Document document;
  document.name = escape_controls(comparison.after_case.name);
  document.question = escape_controls(comparison.after_case.title);
  Section section;
  section.lines = diff_lines(comparison, options);
  const std::vector<AttentionPart> parts = attentions(comparison.after);
  section.wraps_lines = std::any_of(parts.begin(), parts.end(), is_wide);
  document.sections.push_back(std::move(section));
  return document;
}

void write_diff_json(const Comparison& comparison, const JsonWriter::Sink& sink) {
  JsonWriter json(sink);
  json.begin_object().key("schema").value("glasshead.diff/1");
  json.key("case").value(comparison.after_case.name).key("taps").begin_object();
  for (const TracedStep& traced : comparison.after.steps) {
    const TraceTensor* old = comparison.before.find(traced.step.tap);
    if (!old || old->shape != traced.value.shape) continue;
    index_t moved = 0;
    for (std::size_t n = 0; n < old->values.size(); ++n)
      moved += is_same(old->values[n], traced.value.values[n]) ? 0 : 1;
    json.key(traced.step.tap).begin_object();
    json.key("shape").values(std::span<const index_t>(traced.value.shape));
    json.key("before").values(std::span<const double>(old->values));
    json.key("after").values(std::span<const double>(traced.value.values));
    json.key("moved").value(moved).end_object();
  }
  json.end_object().end_object();
  json.flush();
}

}  // namespace glasshead::wire
