#include "wire/document_notes.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "wire/decimal.h"
#include "wire/display.h"
#include "wire/document_tables.h"
#include "wire/fused_check.h"
#include "wire/sequence.h"

namespace glasshead::wire {
namespace {

constexpr index_t kExplainedKeys = 6, kExplainedCoordinates = 4;

bool is_identity(const TraceTensor& tensor) {
  if (tensor.shape.size() != 2 || tensor.shape[0] != tensor.shape[1]) return false;
  const index_t n = tensor.shape[0];
  for (index_t i = 0; i < n; ++i)
    for (index_t j = 0; j < n; ++j)
      if (tensor.values[static_cast<std::size_t>(i * n + j)] != (i == j ? 1 : 0)) return false;
  return true;
}

bool is_same(const TraceTensor& a, const TraceTensor& b) {
  return a.shape == b.shape && a.values == b.values;
}

// "X 3×2 · W_Q = W_K = W_V = identity 2×2"
std::string inputs_words(const Trace& trace) {
  std::string words;
  std::vector<char> is_named(trace.inputs.size(), 0);
  // Later runs are given what earlier ones made, and one more row.
  for (std::size_t n = 0; n < trace.inputs.size(); ++n)
    if (Sequence::run_of(trace.inputs[n].first) > 0) is_named[n] = 1;
  for (std::size_t n = 0; n < trace.inputs.size(); ++n) {
    if (is_named[n] != 0) continue;
    const auto& [tap, tensor] = trace.inputs[n];
    std::string names = tap;
    for (std::size_t m = n + 1; m < trace.inputs.size(); ++m) {
      if (is_named[m] != 0 || !is_same(tensor, trace.inputs[m].second)) continue;
      names += " = " + trace.inputs[m].first;
      is_named[m] = 1;
    }
    if (is_identity(tensor) && tap[0] == 'W') names += " = identity";
    words += (words.empty() ? "" : " · ") + names + " " + shape_words(tensor.shape);
  }
  return words;
}

std::string attention_words(const AttentionPart& part, int decimals) {
  std::string words =
      "scale " + scale_words(part, decimals) + " · mask " + mask_words(*part.options);
  if (part.options->softcap > 0)
    words += " · softcap " + print_alone(part.options->softcap, decimals);
  if (!part.options->bias.terms().empty()) words += " · bias";
  if (part.options->dropout.p > 0)
    words += " · dropout " + print_alone(part.options->dropout.p, decimals);
  if (!part.options->sinks.empty()) words += " · sink";
  return words;
}

std::string plural(index_t n, const std::string& one) {
  return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s");
}

std::string heads_words(const Case& c, const std::vector<AttentionPart>& parts) {
  if (parts.empty()) return "no attention";
  std::string words = plural(parts.front().shape.heads, "head");
  if (!c.network.blocks.empty()) {
    const nn::Attention& attention = c.network.blocks.front().attention;
    if (attention.kv_heads != attention.heads)
      words += fmt::format(", {} shared key/value {}", attention.kv_heads,
                           attention.kv_heads == 1 ? "head" : "heads");
  }
  if (c.network.blocks.size() > 1)
    words = plural(static_cast<index_t>(c.network.blocks.size()), "block") + ", " + words;
  return words;
}

// 0.5034898434845538 -> "0.503489843…": cut, not rounded.
std::string cut_digits(double x) {
  const std::string digits = shortest(x);
  constexpr std::size_t kKept = 11;
  if (digits.size() <= kKept || digits.find('e') != std::string::npos) return digits;
  return digits.substr(0, kKept) + "…";
}

std::string moved_words(const Document& document) {
  std::string exact;
  int count = 0;
  const auto see = [&](const Cell& cell) {
    constexpr int kListed = 3;
    if (cell.moved == 0) return;
    if (++count <= kListed) exact += (count == 1 ? "" : ", ") + cut_digits(cell.exact);
    if (count == kListed + 1) exact += ", …";
  };
  for (const Section& section : document.sections)
    for (const Table& table : section.tables) {
      for (const auto& row : table.rows)
        for (const Cell& cell : row) see(cell);
      for (const Table::LongRow& row : table.long_rows) {
        for (const Table::LongEntry& entry : row.top) see(entry.cell);
        see(row.others);
      }
    }
  if (count == 0) return {};
  return "′ moved by one unit so that the row adds to 1 (exact " + exact + ")";
}

std::string label_or_index(const std::vector<std::string>& labels, index_t n) {
  const auto at = static_cast<std::size_t>(n);
  return at < labels.size() ? cut(escape_controls(labels[at]), kLabelCells) : fmt::format("{}", n);
}

// All that the source prints of the row that `printed` belongs to, in the order of its columns.
std::string printed_digits(const Case& c, const PrintedNumber& printed) {
  std::map<std::vector<index_t>, std::string> digits;
  const bool is_row = printed.index.size() > 1;
  for (const PrintedNumber& other : c.printed) {
    const bool is_same_row = other.tap == printed.tap &&
                             other.index.size() == printed.index.size() &&
                             std::equal(other.index.begin(), other.index.end() - (is_row ? 1 : 0),
                                        printed.index.begin());
    if (is_same_row) digits[other.index] = other.text;
  }
  std::string words;
  for (const auto& [index, text] : digits) words += (words.empty() ? "" : " ") + text;
  return words;
}

// "row B ", "head 1 row B "; "" of numbers that have no row. The last axis but one is the row, save
// where a tap has one number a row.
std::string place_words(const Sequence& sequence, const PrintedNumber& printed) {
  const std::vector<index_t>& index = printed.index;
  const std::string leaf = leaf_of(printed.tap);
  bool is_per_row = false;
  for (const char* name : {"row_max", "row_sum", "lse", "row_sum_unshifted", "weights_sum",
                           "largest_weight", "distance", "jacobian_norm", "lead", "next_token"})
    is_per_row = is_per_row || leaf == name;
  const std::size_t columns = is_per_row || index.size() < 2 ? 0 : 1;
  if (index.empty()) return {};
  const std::size_t row = index.size() - 1 - columns;
  std::string words;
  if (row > 0) words = fmt::format("head {} ", index[row - 1]);
  const std::vector<std::string> labels =
      is_key_side(leaf) ? sequence.keys(printed.tap) : sequence.queries(printed.tap);
  return words + "row " + label_or_index(labels, index[row]) + " ";
}

// "row B as 0.50 0.50 0; softmax of ...": one sentence for each row, with all that is said of its
// numbers.
struct Sentence {
  std::string tap, words;
};
std::vector<Sentence> printed_sentences(const Case& c, const Sequence& sequence) {
  struct Row {
    std::string tap, words;
    std::vector<std::string> notes;
  };
  std::vector<Row> rows;
  for (const PrintedNumber& printed : c.printed) {
    if (printed.kind.empty()) continue;
    std::string where;
    if (printed.tap != "weights") where = printed.tap + " ";
    std::replace(where.begin(), where.end(), '_', ' ');
    where += place_words(sequence, printed);
    const std::string words = where + "as " + printed_digits(c, printed);
    auto row =
        std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.words == words; });
    if (row == rows.end()) row = rows.insert(rows.end(), {printed.tap, words, {}});
    const bool is_said =
        std::find(row->notes.begin(), row->notes.end(), printed.note) != row->notes.end();
    if (!printed.note.empty() && !is_said) row->notes.push_back(printed.note);
  }
  std::vector<Sentence> sentences;
  for (const Row& row : rows) {
    sentences.push_back({row.tap, row.words});
    for (const std::string& note : row.notes) sentences.back().words += "; " + note;
  }
  return sentences;
}

}  // namespace

void describe(Document& document, const Case& c, const Trace& trace,
              const std::vector<AttentionPart>& parts, const DocumentOptions& options) {
  document.name = escape_controls(c.name);
  document.question = escape_controls(c.title);
  document.title = document.name;
  if (!c.from.empty())
    document.title += " · " + escape_controls(c.from);
  else if (!c.title.empty())
    document.title += " · " + document.question;
  document.title += " · " + heads_words(c, parts) + " · f64 exact · ";
  if (options.print.is_percent) document.title += "percent, ";
  document.title += plural(options.print.decimals, "decimal");
  std::string line = inputs_words(trace);
  // One attention: its options on the same line. Several: a line each. Later runs repeat the first.
  std::vector<const AttentionPart*> first;
  for (const AttentionPart& part : parts)
    if (Sequence::run_of(part.prefix + "scores") == 0) first.push_back(&part);
  if (first.size() == 1) line += " · " + attention_words(*first.front(), options.print.decimals);
  document.preamble.push_back(line);
  for (std::size_t n = 0; n < first.size() && first.size() > 1; ++n)
    document.preamble.push_back(first[n]->prefix +
                                "attention: " + attention_words(*first[n], options.print.decimals));
  const index_t runs = Sequence(c, trace).runs();
  if (runs > 1)
    document.preamble.push_back(
        "then one row at a time: " + plural(runs - 1, "step") +
        ", each with the keys and values of all earlier rows from the cache");
}

void add_checks(Document& document, const Trace& trace, const std::vector<AttentionPart>& parts) {
  CheckLine rows{"rows-sum-1", "rows", true, {}};
  for (const Section& section : document.sections)
    for (const Table& table : section.tables)
      for (std::size_t n = 0; n < table.sums.size(); ++n) {
        if (table.sums[n].is_ok || !rows.is_ok) continue;
        rows.is_ok = false;
        rows.detail = fmt::format("{} row {} adds to ", table.tap, table.row_index[n]) +
                      shortest(table.sums[n].exact);
      }
  document.checks.push_back(rows);
  CheckLine hidden{"no-weight-on-hidden", "nothing on hidden keys", true, {}};
  bool has_weights = false;
  for (const AttentionPart& part : parts) {
    const TraceTensor* weights = trace.find(part.prefix + "weights");
    if (!weights) continue;
    has_weights = true;
    for (index_t m = 0; m < part.shape.batch * part.shape.heads; ++m)
      for (index_t i = 0; i < part.shape.q_len; ++i) {
        const std::span<const double> row = row_of(*weights, m, i);
        const std::vector<char> marks =
            hidden_row(*part.plan, m / part.shape.heads, m % part.shape.heads, i);
        for (std::size_t j = 0; j < marks.size(); ++j) {
          if (marks[j] == 0 || row[j] == 0 || !hidden.is_ok) continue;
          hidden.is_ok = false;
          hidden.detail = fmt::format("row {}, key {} has weight ", i, j) + shortest(row[j]);
        }
      }
  }
  if (has_weights) document.checks.push_back(hidden);
  if (const std::optional<CheckLine> fused = fused_check(trace)) document.checks.push_back(*fused);
}

void add_footnotes(Document& document, const Case& c, const Sequence& sequence) {
  const std::string moved = moved_words(document);
  if (!moved.empty()) document.footnotes.push_back(moved);
  const std::string source = c.from.empty()                     ? std::string("the source")
                             : c.from.rfind("tutorial", 0) == 0 ? std::string("the tutorial")
                                                                : escape_controls(c.from);
  for (const Sentence& sentence : printed_sentences(c, sequence)) {
    document.notes.push_back(escape_controls(source + " prints " + sentence.words));
    document.note_taps.push_back(sentence.tap);
  }
}

namespace {

bool has_mark(const Section& section) {
  for (const Table& table : section.tables)
    for (const std::string& note : table.row_notes)
      if (note.find("′") != std::string::npos) return true;
  return false;
}

// What is said about tables that are not shown goes with them.
void keep_remarks(Document& document) {
  std::vector<std::string> taps;
  bool has_sums = false, is_marked = false;
  for (const Section& section : document.sections) {
    is_marked = is_marked || has_mark(section);
    for (const Table& table : section.tables) {
      taps.push_back(table.tap);
      has_sums = has_sums || !table.sums.empty();
    }
  }
  const auto shows = [&](std::initializer_list<std::string_view> leaves) {
    return std::any_of(taps.begin(), taps.end(), [&](const std::string& tap) {
      return std::find(leaves.begin(), leaves.end(), leaf_of(tap)) != leaves.end();
    });
  };
  const std::string moved = moved_words(document);
  if (!document.footnotes.empty() && !moved.empty()) document.footnotes.front() = moved;
  if (moved.empty() && !is_marked) document.footnotes.clear();
  std::erase_if(document.checks, [&](const CheckLine& check) {
    if (check.id == "rows-sum-1") return !has_sums;
    if (check.id == "no-weight-on-hidden") return !shows({"weights", "dropped"});
    return !shows({"out"});
  });
  std::vector<std::string> notes, note_taps;
  for (std::size_t n = 0; n < document.note_taps.size() && n < document.notes.size(); ++n) {
    const std::string& about = document.note_taps[n];
    // Numbers that are no tap of their own (largest_weight, lead, ...) are read off the weights.
    const bool is_shown =
        std::find(taps.begin(), taps.end(), about) != taps.end() ||
        (shows({"weights"}) && leaf_of(about).find("weight") != std::string::npos);
    if (!is_shown) continue;
    notes.push_back(document.notes[n]);
    note_taps.push_back(about);
  }
  document.notes = std::move(notes);
  document.note_taps = std::move(note_taps);
}

}  // namespace

void keep_steps(Document& document, const std::vector<std::string>& names) {
  if (names.empty()) return;
  const auto is_named = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<Section> kept;
  for (Section& section : document.sections) {
    const std::size_t space = section.title.rfind(' ');
    const bool whole = is_named(section.title) ||
                       (space != std::string::npos && is_named(section.title.substr(space + 1)));
    if (!whole)
      std::erase_if(section.tables, [&](const Table& table) {
        return !is_named(table.tap) && !is_named(leaf_of(table.tap));
      });
    if (!whole && section.tables.empty()) continue;
    for (Table& table : section.tables)
      if (section.number == 0 || is_named(table.tap) || is_named(leaf_of(table.tap)))
        table.is_repeated = false;
    kept.push_back(std::move(section));
  }
  document.sections = std::move(kept);
  keep_remarks(document);
}

bool stands_elsewhere(const std::string& tap, const TraceTensor& input, const Trace& trace) {
  if (is_identity(input) || Sequence::run_of(tap) > 0) return true;
  for (const TracedStep& traced : trace.steps) {
    const std::string name = leaf_of(traced.step.tap);
    if ((name == "q" || name == "k" || name == "v") && is_same(input, traced.value)) return true;
  }
  return false;
}

TraceTensor as_column(const TraceTensor& value, const AttentionPart& part) {
  TraceTensor column = value;
  const auto count = static_cast<index_t>(value.values.size());
  column.shape = {part.shape.q_len, 1};
  if (part.has_heads && part.shape.q_len > 0)
    column.shape = {count / part.shape.q_len, part.shape.q_len, 1};
  return column;
}

bool explains_out(const TraceTensor& weights, const TraceTensor& v) {
  const Matrices w = matrices_of(weights.shape), x = matrices_of(v.shape);
  return w.rows > 0 && x.rows > 0 && w.columns <= kExplainedKeys &&
         x.columns <= kExplainedCoordinates;
}

std::string plural_reason(const std::string& reason) {
  if (reason == "causal") return "keys after the query";
  if (reason == "window") return "keys outside the window";
  if (reason == "padding") return "padding keys";
  if (reason == "segments") return "keys of another document";
  if (reason == "prefix") return "keys after the prefix and the query";
  if (reason == "mask") return "keys hidden by the mask";
  return "keys hidden by the bias";
}

std::string latex_name(const std::string& tap) {
  if (tap.size() == 1) return tap;
  if (tap.size() > 2 && tap[1] == '_' && tap.find('.') == std::string::npos)
    return tap.substr(0, 2) + "{" + tap.substr(2) + "}";
  std::string name = tap;
  std::replace(name.begin(), name.end(), '_', ' ');
  return "\\text{" + name + "}";
}

std::string projection_latex(const std::string& letter, const Step& step) {
  std::string right;
  for (std::size_t n = 0; n < step.reads.size(); ++n)
    right += (n < 2 ? "" : "+") + latex_name(step.reads[n]);
  return letter + "=" + right;
}

std::string next_token_line(const Case& c, const std::string& row, double token) {
  // NaN among the probabilities: none is the largest.
  return cut(escape_controls(row), kLabelCells) + " → " +
         (token != token ? "nan" : label_or_index(c.vocabulary, static_cast<index_t>(token)));
}

}  // namespace glasshead::wire
