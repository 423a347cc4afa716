#include "wire/by_hand.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "wire/decimal.h"
#include "wire/display.h"
#include "wire/document_tables.h"

namespace glasshead::wire {
namespace {

bool is_attention_inner(const std::string& leaf) {
  for (const char* name : {"scores", "scaled", "capped", "biased", "masked", "row_max", "exp",
                           "row_sum", "lse", "weights", "dropped", "out"})
    if (leaf == name) return true;
  return false;
}

// The scores that softmax sees: the last of scaled, capped, biased, masked.
const TraceTensor* last_scores(const Trace& trace, const std::string& prefix) {
  for (const char* leaf : {"masked", "biased", "capped", "scaled"})
    if (const TraceTensor* found = trace.find(prefix + leaf)) return found;
  return trace.find(prefix + "scores");
}

std::string numbers(std::span<const double> row, const std::vector<char>& hidden, int decimals) {
  std::string words;
  for (std::size_t j = 0; j < row.size(); ++j)
    if (hidden.empty() || hidden[j] == 0) words += " " + print_number(row[j], decimals);
  return words;
}

std::string vector_words(std::span<const double> row, int decimals) {
  std::string words = "(";
  for (std::size_t d = 0; d < row.size(); ++d)
    words += (d > 0 ? ", " : "") + print_number(row[d], decimals);
  return words + ")";
}

double drift(std::span<const double> a, std::span<const double> b) {
  double largest = 0;
  for (std::size_t n = 0; n < a.size(); ++n)
    if (a[n] != b[n]) largest = std::max(largest, std::fabs(a[n] - b[n]));
  return largest;
}

std::string weights_words(std::span<const double> row, const std::vector<char>& hidden,
                          std::optional<double> sink, const PrintOptions& print) {
  const PrintedRow printed = print_weights_row(row, hidden, print, sink);
  std::string words = "weights";
  for (const Cell& cell : printed.cells)
    if (!cell.is_hidden) words += " " + marked(cell);
  return words + " Σ " + printed.sum.text + (printed.sum.is_ok ? " ✓" : " ✗");
}

void attention_rows(const Case& c, const ByHand& hand, const AttentionPart& part,
                    const AttentionPart& exact_part, const DocumentOptions& options,
                    std::vector<std::string>& lines) {
  const int p = hand.decimals, shown = options.print.decimals;
  PrintOptions rounded_print = options.print;
  rounded_print.decimals = p;
  rounded_print.rounding = RowRounding::nearest;  // by hand nothing is moved
  const TraceTensor* z = last_scores(hand.rounded, part.prefix);
  const TraceTensor* scores = hand.rounded.find(part.prefix + "scores");
  const TraceTensor* exp = hand.rounded.find(part.prefix + "exp");
  const TraceTensor* sum = hand.rounded.find(part.prefix + "row_sum");
  const TraceTensor& weights = hand.rounded.at(part.prefix + "weights");
  const TraceTensor& out = hand.rounded.at(part.prefix + "out");
  const TraceTensor& exact_weights = hand.exact.at(part.prefix + "weights");
  const TraceTensor& exact_out = hand.exact.at(part.prefix + "out");
  const std::vector<index_t> rows = shown_rows(part.shape.q_len, options.query);
  for (index_t m = 0; m < part.shape.batch * part.shape.heads; ++m) {
    if (options.head && m % part.shape.heads != *options.head) continue;
    for (const index_t i : rows) {
      const std::vector<char> hidden =
          hidden_row(*part.plan, m / part.shape.heads, m % part.shape.heads, i);
      if (rows.size() > 1 || part.has_heads) {
        const auto at = static_cast<std::size_t>(i);
        std::string head =
            part.prefix + "row " +
            (at < c.query_labels.size() ? shown_labels(c.query_labels)[at] : fmt::format("{}", i));
        if (part.has_heads) head += fmt::format(", head {}", m % part.shape.heads);
        lines.push_back(head);
      }
      std::string line = "by hand   ";
      if (scores && scores != z)
        line += "q·k" + numbers(row_of(*scores, m, i), hidden, p) + " · scale " +
                print_number(part.scale, shown) + " · ";
      if (z) line += "z" + numbers(row_of(*z, m, i), hidden, p) + " · ";
      std::optional<double> share;
      if (exp && sum) {
        const auto row = static_cast<std::size_t>(m * part.shape.q_len + i);
        line += "exp" + numbers(row_of(*exp, m, i), hidden, p);
        if (!part.sink_exps.empty()) {
          const double sink = round_half_up(part.sink_exps[row], p);
          line += " · sink " + print_number(sink, p);
          share = round_half_up(sink / sum->values[row], p);
        }
        line += " · sum " + print_number(sum->values[row], p) + " · ";
      }
      line += weights_words(row_of(weights, m, i), hidden, share, rounded_print) + " · out " +
              vector_words(row_of(out, m, i), p);
      lines.push_back(line);
      lines.push_back(
          "exact     " +
          weights_words(row_of(exact_weights, m, i), hidden, sink_share(&exact_part, m, i),
                        options.print) +
          " · out " + vector_words(row_of(exact_out, m, i), shown) + "          drift " +
          print_number(drift(row_of(weights, m, i), row_of(exact_weights, m, i)), shown) +
          " in weights, " + print_number(drift(row_of(out, m, i), row_of(exact_out, m, i)), shown) +
          " in out");
    }
  }
}

void other_rows(const Case& c, const ByHand& hand, const Step& step, const DocumentOptions& options,
                std::vector<std::string>& lines) {
  const TraceTensor& rounded = hand.rounded.at(step.tap);
  const TraceTensor& exact = hand.exact.at(step.tap);
  const Matrices matrices = matrices_of(rounded.shape);
  const bool has_labels = matrices.rows == static_cast<index_t>(c.query_labels.size());
  for (index_t m = 0; m < matrices.count; ++m) {
    for (const index_t i :
         shown_rows(matrices.rows, has_labels ? options.query : std::optional<index_t>())) {
      std::string name = step.tap;
      if (matrices.count > 1) name += fmt::format(" {}", m);
      if (matrices.rows > 1 && !(has_labels && options.query))
        name += " " + (has_labels ? shown_labels(c.query_labels)[static_cast<std::size_t>(i)]
                                  : fmt::format("{}", i));
      lines.push_back("by hand   " + name + " " +
                      vector_words(row_of(rounded, m, i), hand.decimals));
      lines.push_back(
          "exact     " + name + " " + vector_words(row_of(exact, m, i), options.print.decimals) +
          "          drift " +
          print_number(drift(row_of(rounded, m, i), row_of(exact, m, i)), options.print.decimals));
    }
  }
}

}  // namespace

ByHand run_by_hand(const Case& c, const ByHandOptions& options) {
  ByHand hand;
  hand.decimals = options.decimals;
  std::vector<Step> list = case_steps(c);
  hand.exact = run_steps(list, c.inputs);
  if (!options.is_shifted)
    for (Step& step : list) {
      const std::string leaf = leaf_of(step.tap);
      if (leaf == "exp" || leaf == "row_sum" || leaf == "lse" || leaf == "weights")
        set_number(step, "shift", 0);
    }
  hand.rounded.inputs = c.inputs;
  run_steps(list, c.inputs, [&](const Step& step, TraceTensor& value) {
    for (double& x : value.values) x = round_half_up(x, options.decimals);
    hand.rounded.steps.push_back({step, value});
  });
  return hand;
}

std::vector<std::string> by_hand_lines(const Case& c, const ByHand& hand,
                                       const DocumentOptions& options) {
  std::vector<std::string> lines;
  const std::vector<AttentionPart> parts = attentions(hand.rounded),
                                   exact_parts = attentions(hand.exact);
  for (const TracedStep& traced : hand.rounded.steps) {
    const std::string leaf = leaf_of(traced.step.tap);
    const bool is_moved = traced.value.values != hand.exact.at(traced.step.tap).values;
    if (leaf == "out") {
      for (std::size_t n = 0; n < parts.size(); ++n)
        if (parts[n].prefix == prefix_of(traced.step.tap))
          attention_rows(c, hand, parts[n], exact_parts[n], options, lines);
    } else if (!is_attention_inner(leaf) && is_moved) {
      other_rows(c, hand, traced.step, options, lines);
    }
  }
  return lines;
}

Document by_hand_document(const Case& c, const ByHand& hand, const DocumentOptions& options) {
  Document document;
  document.name = escape_controls(c.name);
  document.question = escape_controls(c.title);
  Section section;
  section.lines = by_hand_lines(c, hand, options);
  document.sections.push_back(std::move(section));
  return document;
}

void write_by_hand_json(const Case& c, const ByHand& hand, const JsonWriter::Sink& sink) {
  JsonWriter json(sink);
  json.begin_object().key("schema").value("glasshead.by_hand/1").key("case").value(c.name);
  json.key("decimals").value(hand.decimals).key("taps").begin_object();
  for (const TracedStep& traced : hand.rounded.steps) {
    const TraceTensor& exact = hand.exact.at(traced.step.tap);
    json.key(traced.step.tap).begin_object();
    json.key("shape").values(std::span<const index_t>(traced.value.shape));
    json.key("by_hand").values(std::span<const double>(traced.value.values));
    json.key("exact").values(std::span<const double>(exact.values));
    json.key("drift").value(drift(traced.value.values, exact.values)).end_object();
  }
  json.end_object().end_object();
  json.flush();
}

}  // namespace glasshead::wire
