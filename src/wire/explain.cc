#include "wire/explain.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/math.h"
#include "wire/display.h"
#include "wire/document_tables.h"
#include "wire/sequence.h"

namespace glasshead::wire {
namespace {

constexpr std::size_t kShownProducts = 8;

class Explainer {
 public:
  Explainer(const Trace& trace, const AttentionPart& part, const Sequence& sequence,
            const DocumentOptions& options)
      : trace_(trace),
        part_(part),
        options_(options),
        queries_(shown_labels(sequence.queries(part.prefix + "scores"))),
        keys_(shown_labels(sequence.keys(part.prefix + "scores"))),
        first_row_(sequence.first_row(part.prefix + "scores")),
        p_(options.print.decimals),
        q_(trace.at(part.scores->reads[0])),
        k_(trace.at(part.scores->reads[1])) {}

  void rows(std::vector<ExplainedRow>& rows) const;

 private:
  std::string line(index_t m, index_t i, index_t j, const PrintedRow& weights) const;
  std::string products(index_t m, index_t i, index_t j, double score) const;
  std::string chain(index_t m, index_t i, index_t j) const;
  std::string why_allowed(index_t i, index_t j) const;
  std::string label(const std::vector<std::string>& labels, index_t n) const {
    const auto at = static_cast<std::size_t>(n);
    return at < labels.size() ? labels[at] : fmt::format("{}", n);
  }
  double pair(const TraceTensor& value, index_t m, index_t i, index_t j) const {
    return row_of(value, m, i)[static_cast<std::size_t>(j)];
  }
  std::string number(double x) const { return print_number(x, p_); }

  const Trace& trace_;
  const AttentionPart& part_;
  const DocumentOptions& options_;
  std::vector<std::string> queries_, keys_;  // as shown
  index_t first_row_;
  int p_;
  const TraceTensor& q_;
  const TraceTensor& k_;
};

// "q·k = 0·1 + 1·0 = 0"
std::string Explainer::products(index_t m, index_t i, index_t j, double score) const {
  const index_t k_count = matrices_of(k_.shape).count, heads = matrices_of(q_.shape).count;
  const std::span<const double> q = row_of(q_, m, i), k = row_of(k_, m * k_count / heads, j);
  const std::string total = number(score);
  if (q.size() > kShownProducts) return fmt::format("q·k = {} products = ", q.size()) + total;
  std::string terms;
  double on_digits = 0;
  for (std::size_t d = 0; d < q.size(); ++d) {
    const std::string a = number(q[d]), b = number(k[d]);
    terms += (d > 0 ? " + " : "") + a + "·" + (b[0] == '-' ? "(" + b + ")" : b);
    on_digits += read_printed(a) * read_printed(b);
  }
  return "q·k = " + terms + " " + equals_sign(on_digits, total) + " " + total;
}

// " → ·0.7071 = 0 → softcap ... = ...": what becomes of a score before the mask.
std::string Explainer::chain(index_t m, index_t i, index_t j) const {
  std::string words;
  double before = pair(trace_.at(part_.prefix + "scores"), m, i, j);
  for (const char* leaf : {"scaled", "capped", "biased"}) {
    const TraceTensor* value = trace_.find(part_.prefix + leaf);
    if (!value) continue;
    const double after = pair(*value, m, i, j);
    const double from = read_printed(number(before));
    double on_digits = 0;
    if (leaf[0] == 's') {
      const std::string scale = print_alone(part_.scale, p_);
      words += " → ·" + scale;
      on_digits = from * read_printed(scale);
    } else if (leaf[0] == 'c') {
      const std::string cap = print_alone(part_.options->softcap, p_);
      words += " → " + cap + "·tanh(" + number(before) + "/" + cap + ")";
      on_digits = read_printed(cap) * math::tanh(from / read_printed(cap));
    } else {
      const std::string bias = number(after - before);
      words += " → " + (bias[0] == '-' ? "− " + bias.substr(1) : "+ " + bias);
      on_digits = from + read_printed(bias);
    }
    words += std::string(" ") + equals_sign(on_digits, number(after)) + " " + number(after);
    before = after;
  }
  return words;
}

std::string Explainer::why_allowed(index_t i, index_t j) const {
  const auto& parts = part_.options->mask.parts();
  if (parts.empty()) return " → allowed (no mask)";
  for (const Mask::Part& part : parts)
    if (std::holds_alternative<Mask::Causal>(part))
      return " → allowed (" + label(keys_, j) + " is not after " + label(queries_, i) + ")";
  return " → allowed";
}

std::string Explainer::line(index_t m, index_t i, index_t j, const PrintedRow& weights) const {
  const index_t b = m / part_.shape.heads, h = m % part_.shape.heads;
  std::string words = label(keys_, j) + ": " +
                      products(m, i, j, pair(trace_.at(part_.prefix + "scores"), m, i, j)) +
                      chain(m, i, j);
  const Reasons why = part_.plan->reasons(b, h, i, j);
  if (!why.is_empty()) return words + " → hidden (" + reason_words(why) + ") → ·";
  words += why_allowed(i, j);
  const TraceTensor* exp = trace_.find(part_.prefix + "exp");
  const TraceTensor* max = trace_.find(part_.prefix + "row_max");
  const TraceTensor* sum = trace_.find(part_.prefix + "row_sum");
  const Cell& weight = weights.cells[static_cast<std::size_t>(j)];
  if (!exp || !max || !sum) return words + " → weight " + marked(weight);
  const auto row = static_cast<std::size_t>(m * part_.shape.q_len + i);
  double z = pair(trace_.at(part_.prefix + "scores"), m, i, j);
  for (const char* leaf : {"scaled", "capped", "biased"})
    if (const TraceTensor* value = trace_.find(part_.prefix + leaf)) z = pair(*value, m, i, j);
  const std::string z_text = number(z), max_text = number(max->values[row]);
  const std::string e_text = number(pair(*exp, m, i, j)), sum_text = number(sum->values[row]);
  const double e_on_digits = math::exp(read_printed(z_text) - read_printed(max_text));
  words += " → exp(" + z_text +
           (max_text[0] == '-' ? " + " + max_text.substr(1) : " − " + max_text) + ") " +
           equals_sign(e_on_digits, e_text) + " " + e_text;
  double w_on_digits = read_printed(e_text) / read_printed(sum_text);
  if (options_.print.is_percent) w_on_digits *= 100;
  return words + " → " + e_text + "/" + sum_text + " " + equals_sign(w_on_digits, weight.text) +
         " " + marked(weight);
}

void Explainer::rows(std::vector<ExplainedRow>& rows) const {
  const TraceTensor& weights = trace_.at(part_.prefix + "weights");
  std::optional<index_t> query = options_.query;
  if (query) *query -= first_row_;
  for (index_t m = 0; m < part_.shape.batch * part_.shape.heads; ++m) {
    if (options_.head && m % part_.shape.heads != *options_.head) continue;
    for (const index_t i : shown_rows(part_.shape.q_len, query)) {
      ExplainedRow explained;
      explained.prefix = part_.prefix;
      if (part_.has_heads) explained.head = m % part_.shape.heads;
      explained.query = first_row_ + i;
      explained.label = label(queries_, i);
      const std::vector<char> hidden =
          hidden_row(*part_.plan, m / part_.shape.heads, m % part_.shape.heads, i);
      const std::span<const double> row = row_of(weights, m, i);
      const PrintedRow printed =
          print_weights_row(row, hidden, options_.print, sink_share(&part_, m, i));
      if (part_.shape.kv_len > kLongRow && !options_.print.is_full) {
        for (const Table::LongEntry& entry : print_long_row(row, hidden, p_, false).top)
          explained.keys.push_back(entry.key);
      } else {
        for (index_t j = 0; j < part_.shape.kv_len; ++j) explained.keys.push_back(j);
      }
      for (const index_t j : explained.keys) explained.lines.push_back(line(m, i, j, printed));
      explained.others = part_.shape.kv_len - static_cast<index_t>(explained.keys.size());
      rows.push_back(std::move(explained));
    }
  }
}

}  // namespace

std::vector<ExplainedRow> explain(const Case& c, const Trace& trace,
                                  const DocumentOptions& options) {
  std::vector<ExplainedRow> rows;
  const Sequence sequence(c, trace);
  for (const AttentionPart& part : attentions(trace))
    Explainer(trace, part, sequence, options).rows(rows);
  return rows;
}

std::vector<std::string> explain_lines(const Case& c, const Trace& trace,
                                       const DocumentOptions& options) {
  std::vector<std::string> lines;
  const std::vector<ExplainedRow> rows = explain(c, trace, options);
  for (const ExplainedRow& row : rows) {
    if (rows.size() > 1) {  // a single row needs no name
      std::string name = row.prefix + "row " + row.label;
      if (row.head) name += fmt::format(", head {}", *row.head);
      lines.push_back(name);
    }
    lines.insert(lines.end(), row.lines.begin(), row.lines.end());
    if (row.others > 0) lines.push_back(fmt::format("others ({})", row.others));
  }
  if (rows.empty()) lines.emplace_back("no attention to explain");
  return lines;
}

Document explain_document(const Case& c, const Trace& trace, const DocumentOptions& options) {
  Document document;
  document.name = escape_controls(c.name);
  document.question = escape_controls(c.title);
  Section section;
  section.lines = explain_lines(c, trace, options);
  const std::vector<AttentionPart> parts = attentions(trace);
  section.wraps_lines = std::any_of(parts.begin(), parts.end(), is_wide);
  document.sections.push_back(std::move(section));
  return document;
}

void write_explain_json(const Case& c, const Trace& trace, const DocumentOptions& options,
                        const JsonWriter::Sink& sink) {
  JsonWriter json(sink);
  json.begin_object().key("schema").value("glasshead.explain/1").key("case").value(c.name);
  json.key("decimals").value(options.print.decimals).key("rows").begin_array();
  for (const ExplainedRow& row : explain(c, trace, options)) {
    json.begin_object().key("attention").value(row.prefix);
    if (row.head) json.key("head").value(*row.head);
    json.key("query").value(row.query).key("label").value(row.label);
    json.key("keys").begin_array();
    for (std::size_t n = 0; n < row.keys.size(); ++n)
      json.begin_object()
          .key("key")
          .value(row.keys[n])
          .key("line")
          .value(row.lines[n])
          .end_object();
    json.end_array().key("others").value(row.others).end_object();
  }
  json.end_array().end_object();
  json.flush();
}

}  // namespace glasshead::wire
