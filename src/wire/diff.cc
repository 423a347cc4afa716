#include "wire/diff.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "wire/display.h"
#include "wire/document_compare.h"
#include "wire/document_tables.h"
#include "wire/sequence.h"

namespace glasshead::wire {
namespace {

bool is_same(double a, double b) { return is_unmoved(a, b); }

class Differ {
 public:
  Differ(const Comparison& comparison, const AttentionPart& before, const AttentionPart& after,
         const DocumentOptions& options)
      : comparison_(comparison), before_(before), after_(after), options_(options) {
    const Sequence sequence(comparison.after_case, comparison.after);
    const std::string tap = after.prefix + "scores";
    queries_ = sequence.queries(tap);
    keys_ = sequence.keys(tap);
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
    return at < labels.size() ? shown_labels({labels[at]})[0] : fmt::format("{}", n);
  }
  std::string cell(const Cell& before, const Cell& after) const;
  void count(index_t m);
  std::vector<char> hidden(const AttentionPart& part, index_t m, index_t i) const {
    return hidden_row(*part.plan, m / part.shape.heads, m % part.shape.heads, i);
  }
  std::string why_unmoved(index_t m, index_t i) const;
  std::string out_line(index_t m) const;
  std::string what_changed() const;

  const Comparison& comparison_;
  const AttentionPart& before_;
  const AttentionPart& after_;
  const DocumentOptions& options_;
  std::vector<std::string> queries_, keys_;
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
  constexpr int kSeparator = 3, kHeaderBack = 5;
  const std::vector<index_t> rows = shown_rows(after_.shape.q_len, query_);
  std::vector<std::vector<std::string>> cells;
  std::vector<std::string> sums;
  for (const index_t i : rows) {
    const Row both = row(m, i);
    cells.emplace_back();
    for (std::size_t j = 0; j < both.after.cells.size(); ++j)
      cells.back().push_back(cell(both.before.cells[j], both.after.cells[j]));
    const RowSum& sum = both.after.sum;
    sums.push_back(sum.text + (sum.is_empty ? "" : sum.is_ok ? " ✓" : " ✗"));
  }
  int label_width = 0;
  for (const index_t i : rows)
    label_width = std::max(label_width, display_width(label(queries_, i)));
  std::vector<std::string> lines(rows.size() + 1);
  lines[0] = "weights";
  for (std::size_t n = 0; n < rows.size(); ++n)
    lines[n + 1] = "  " + pad_right(label(queries_, rows[n]), label_width);
  int start = 2 + label_width;
  for (index_t j = 0; j < after_.shape.kv_len; ++j) {
    int width = 0;
    for (const auto& row_cells : cells)
      width = std::max(width, display_width(row_cells[static_cast<std::size_t>(j)]));
    start += kSeparator;
    const std::string name = label(keys_, j);
    const int at = start + std::max(width - kHeaderBack, 0);
    lines[0] = pad_right(lines[0], std::max(at, display_width(lines[0]) + 1)) + name;
    for (std::size_t n = 0; n < rows.size(); ++n)
      lines[n + 1] = pad_right(lines[n + 1], start) + cells[n][static_cast<std::size_t>(j)];
    start += width;
  }
  start += kSeparator;
  const int digits = sums.empty() ? 0 : display_width(sums[0]) - 2;
  lines[0] =
      pad_right(lines[0], std::max(start + std::max(digits, 0), display_width(lines[0]) + 1)) + "Σ";
  for (std::size_t n = 0; n < rows.size(); ++n)
    lines[n + 1] = pad_right(lines[n + 1], start) + sums[n];
  out.insert(out.end(), lines.begin(), lines.end());
  out.push_back(out_line(m));
  out.push_back(summary(m));
}

std::string Differ::out_line(index_t m) const {
  const auto words = [&](std::span<const double> row) {
    std::string text;
    for (const double x : row)
      text += (text.empty() ? "(" : ", ") + print_number(x, options_.print.decimals);
    return text + ")";
  };
  std::string line;
  for (const index_t i : shown_rows(after_.shape.q_len, query_)) {
    const std::span<const double> a = row_of(was("out"), m, i), b = row_of(is("out"), m, i);
    const bool is_unmoved = std::equal(a.begin(), a.end(), b.begin(), b.end(), is_same);
    line += (line.empty() ? "out   " : "   ") + label(queries_, i) + " " + words(a) +
            (is_unmoved ? " =" : "→" + words(b));
  }
  return line;
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
        add(label(comparison_.after_case.query_labels, i));
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
