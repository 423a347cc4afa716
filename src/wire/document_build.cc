#include "wire/document_build.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "wire/display.h"
#include "wire/document_notes.h"
#include "wire/document_tables.h"
#include "wire/sequence.h"

namespace glasshead::wire {
namespace {

constexpr std::array<const char*, 5> kPairLeaves{"scores", "scaled", "capped", "biased", "masked"};

bool is_pair_leaf(const std::string& leaf) {
  return std::find(kPairLeaves.begin(), kPairLeaves.end(), leaf) != kPairLeaves.end();
}
bool is_softmax_leaf(const std::string& leaf) {
  return leaf == "row_max" || leaf == "exp" || leaf == "row_sum" || leaf == "lse";
}
bool is_qkv(const std::string& leaf) { return leaf == "q" || leaf == "k" || leaf == "v"; }
bool is_vocabulary_row(const std::string& leaf) {
  return leaf == "logits" || leaf == "probabilities" || leaf == "logits_capped";
}

// "q_heads" -> "Q", "k" -> "K": what formulas call a projection.
std::string letter_of(const std::string& leaf) {
  return std::string(1, static_cast<char>(leaf[0] - 'a' + 'A'));
}

class Builder {
 public:
  Builder(const Case& c, const Trace& trace, const DocumentOptions& options)
      : case_(c),
        trace_(trace),
        options_(options),
        parts_(attentions(trace)),
        sequence_(c, trace) {}

  Document build() {
    describe(document_, case_, trace_, parts_, options_);
    add_given();
    for (std::size_t at = 0; at < trace_.steps.size();)
      at = is_shown(step(at).tap) ? add_group(at) : at + 1;
    add_checks(document_, trace_, parts_);
    add_footnotes(document_, case_, sequence_);
    return std::move(document_);
  }

 private:
  const Step& step(std::size_t at) const { return trace_.steps[at].step; }
  std::string leaf(std::size_t at) const { return leaf_of(step(at).tap); }
  const TraceTensor& value(std::size_t at) const { return trace_.steps[at].value; }

  // With --query, of a sequence run piece by piece, the run that this row belongs to.
  bool is_shown(const std::string& tap) const {
    if (!options_.query || sequence_.runs() == 1) return true;
    return sequence_.has_row(tap, *options_.query);
  }

  const AttentionPart* part_of(const std::string& tap) const {
    const std::string prefix = prefix_of(tap);
    for (const AttentionPart& part : parts_)
      if (part.prefix == prefix) return &part;
    return nullptr;
  }

  // "block 0: scores"
  std::string titled(const std::string& tap, const std::string& title) const {
    const std::string prefix = prefix_of(tap);
    if (prefix.empty()) return title;
    std::string words = prefix.substr(0, prefix.size() - 1);
    std::replace(words.begin(), words.end(), '.', ' ');
    return words + " " + title;
  }

  Section& add_section(const std::string& tap, const std::string& title) {
    document_.sections.emplace_back();
    Section& section = document_.sections.back();
    section.number = ++number_;
    section.title = titled(tap, title);
    return section;
  }

  TableSource source(const std::string& tap, const TraceTensor& tensor) const {
    TableSource from;
    from.tap = tap;
    from.value = &tensor;
    const std::string name = leaf_of(tap);
    from.row_labels = is_key_side(name) ? sequence_.keys(tap) : sequence_.queries(tap);
    from.are_rows_queries = !is_key_side(name);
    if (name != "k_cache" && name != "v_cache") from.first_row = sequence_.first_row(tap);
    if (is_vocabulary_row(name)) from.column_labels = case_.vocabulary;
    return from;
  }

  void add_given();
  std::size_t add_group(std::size_t at);
  std::size_t add_projections(std::size_t at);
  std::size_t add_pairs(std::size_t at);
  std::size_t add_softmax(std::size_t at);
  std::size_t add_weights(std::size_t at);
  std::size_t add_out(std::size_t at);
  std::size_t add_other(std::size_t at);
  std::string pair_remark(const AttentionPart& part) const;
  std::string out_note(const Table& weights, const Table& v, const Table& out,
                       std::size_t row) const;

  const Case& case_;
  const Trace& trace_;
  const DocumentOptions& options_;
  std::vector<AttentionPart> parts_;
  Document document_;
  Sequence sequence_;
  int number_ = 0;
};

// The matrices given, but for those that stand elsewhere or say nothing (an identity).
void Builder::add_given() {
  Section section;
  section.title = "given";
  for (const auto& [tap, tensor] : trace_.inputs) {
    TableSource from;
    from.tap = tap;
    from.name = tap;
    from.value = &tensor;
    from.kind = TableKind::given;
    const Matrices matrices = matrices_of(tensor.shape);
    const std::string name = leaf_of(tap);
    if (name == "X" || name == "q" || name == "x" || name == "ids")
      from.row_labels = sequence_.queries(tap);
    if (name == "k" || name == "v") from.row_labels = case_.key_labels;
    if (tap == "context") from.row_labels = case_.context_labels;
    if (matrices.rows == static_cast<index_t>(case_.vocabulary.size()) && from.row_labels.empty())
      from.row_labels = case_.vocabulary;
    for (Table& table : make_tables(from, case_, options_)) {
      table.is_repeated = stands_elsewhere(tap, tensor, trace_);
      section.tables.push_back(std::move(table));
    }
  }
  if (!section.tables.empty()) document_.sections.push_back(std::move(section));
}

std::size_t Builder::add_group(std::size_t at) {
  const std::string name = leaf(at);
  if (is_qkv(name)) return add_projections(at);
  if (is_pair_leaf(name) && part_of(step(at).tap)) return add_pairs(at);
  if (is_softmax_leaf(name) && part_of(step(at).tap)) return add_softmax(at);
  if (name == "weights" || name == "probabilities") return add_weights(at);
  if (name == "out" && part_of(step(at).tap)) return add_out(at);
  return add_other(at);
}

std::size_t Builder::add_projections(std::size_t at) {
  Section& section = add_section(step(at).tap, "project");
  section.layout = Section::Layout::compact;
  const std::string prefix = prefix_of(step(at).tap);
  std::vector<std::string> shapes;
  for (; at < trace_.steps.size() && is_qkv(leaf(at)) && prefix_of(step(at).tap) == prefix; ++at) {
    const std::string letter = letter_of(leaf(at));
    std::string right;
    for (std::size_t n = 0; n < step(at).reads.size(); ++n)
      right += (n == 0 ? "" : n == 1 ? "·" : " + ") + Sequence::without_run(step(at).reads[n]);
    section.formula += (section.formula.empty() ? "" : "  ") + letter + " = " + right;
    section.latex += (section.latex.empty() ? "" : ",\\quad ") + projection_latex(letter, step(at));
    TableSource from = source(step(at).tap, value(at));
    from.name = letter;
    from.symbol = letter;
    for (Table& table : make_tables(from, case_, options_))
      section.tables.push_back(std::move(table));
    shapes.push_back(shape_words(value(at).shape));
  }
  const bool is_one = std::all_of(shapes.begin(), shapes.end(),
                                  [&](const std::string& s) { return s == shapes.front(); });
  for (std::size_t n = 0; n < shapes.size() && !is_one; ++n)
    section.shape += (n == 0 ? "" : ", ") + shapes[n];
  if (is_one) section.shape = (shapes.size() > 1 ? "each " : "") + shapes.front();
  return at;
}

std::size_t Builder::add_pairs(std::size_t at) {
  const AttentionPart& part = *part_of(step(at).tap);
  for (;
       at < trace_.steps.size() && is_pair_leaf(leaf(at)) && prefix_of(step(at).tap) == part.prefix;
       ++at) {
    const std::string name = leaf(at);
    Section& section = add_section(step(at).tap, name);
    section.layout = Section::Layout::beside;
    section.formula = step(at).op ? step(at).op->formula : "";
    section.latex = step(at).op ? step(at).op->latex : "";
    if (name == "scores") {
      section.formula = "S = Q·Kᵀ";
      section.shape = shape_words(value(at).shape);
    } else if (name == "scaled") {
      const std::string scale = print_alone(part.scale, options_.print.decimals);
      section.formula = "Z = S · " + scale;
      section.latex = "Z=S\\cdot " + scale;
    } else if (name == "masked") {
      section.formula.clear();
      section.remark = pair_remark(part);
    }
    TableSource from = source(step(at).tap, value(at));
    from.kind = name == "masked" ? TableKind::scores : TableKind::plain;
    from.part = name == "masked" ? &part : nullptr;
    from.column_labels = sequence_.keys(step(at).tap);
    if (part.shape.kv_len > kLongRow && !options_.print.is_full) {
      if (name == "scores")
        section.lines.push_back(fmt::format(
            "{} keys a row: q·k of the heaviest stands beside the weights", part.shape.kv_len));
      continue;
    }
    section.tables = make_tables(from, case_, options_);
  }
  return at;
}

// "red hidden", "red and blue hidden": where the mask is nothing but the keys that an edit hid.
std::string hidden_words(const Case& c, const AttentionOptions& options) {
  const auto& parts = options.mask.parts();
  const auto chosen = std::count_if(parts.begin(), parts.end(), [](const Mask::Part& part) {
    return std::holds_alternative<Mask::Explicit>(part);
  });
  const bool is_one = c.network.blocks.size() == 1 && !c.network.blocks[0].cross_attention;
  if (c.hidden_keys.empty() || chosen != 1 || !is_one) return plural_reason("mask");
  std::string words;
  for (std::size_t n = 0; n < c.hidden_keys.size(); ++n)
    words += (n == 0                          ? ""
              : n + 1 == c.hidden_keys.size() ? " and "
                                              : ", ") +
             cut(escape_controls(c.hidden_keys[n]), kLabelCells);
  return words + " hidden";
}

// "keys after the query, 3 of 9"; of several heads "..., 3 of 9 in every head" or "..., 5 of 18 in
// 2 heads".
std::string Builder::pair_remark(const AttentionPart& part) const {
  const PairShape& shape = part.shape;
  const index_t matrices = shape.batch * shape.heads, total = shape.q_len * shape.kv_len;
  std::vector<std::string> reasons;
  std::vector<index_t> hidden(static_cast<std::size_t>(matrices), 0);
  bool are_alike = true;
  for (index_t m = 0; m < matrices; ++m)
    for (index_t i = 0; i < shape.q_len; ++i) {
      const index_t b = m / shape.heads, h = m % shape.heads;
      const std::vector<char> marks = hidden_row(*part.plan, b, h, i);
      are_alike = are_alike && (m == 0 || marks == hidden_row(*part.plan, 0, 0, i));
      for (std::size_t j = 0; j < marks.size(); ++j) {
        if (marks[j] == 0) continue;
        ++hidden[static_cast<std::size_t>(m)];
        for (const std::string& name : part.plan->reasons(b, h, i, static_cast<index_t>(j)).names())
          if (std::find(reasons.begin(), reasons.end(), name) == reasons.end())
            reasons.push_back(name);
      }
    }
  std::string words;
  for (const std::string& name : reasons)
    words += (words.empty() ? "" : " or ") +
             (name == "mask" ? hidden_words(case_, *part.options) : plural_reason(name));
  if (words.empty()) words = "nothing is hidden";
  if (are_alike)
    return fmt::format("{}, {} of {}{}", words, hidden.empty() ? 0 : hidden[0], total,
                       matrices > 1 ? " in every head" : "");
  index_t sum = 0;
  for (const index_t count : hidden) sum += count;
  return fmt::format("{}, {} of {} in {} heads", words, sum, total * matrices, matrices);
}

std::size_t Builder::add_softmax(std::size_t at) {
  const AttentionPart& part = *part_of(step(at).tap);
  Section& section = add_section(step(at).tap, "softmax");
  section.layout = Section::Layout::softmax;
  section.remark = "per row: subtract the maximum, exp, divide by the sum";
  section.latex = "e_{ij}=\\exp\\bigl(z_{ij}-\\max_j z_{ij}\\bigr),\\quad \\ell_i=\\sum_j e_{ij}";
  const bool is_long = part.shape.kv_len > kLongRow && !options_.print.is_full;
  for (; at < trace_.steps.size() && is_softmax_leaf(leaf(at)) &&
         prefix_of(step(at).tap) == part.prefix;
       ++at) {
    const bool is_pairs = leaf(at) == "exp";
    if (leaf(at) == "row_sum" && !part.sink_exps.empty()) {
      TraceTensor exps = value(at);
      exps.values = part.sink_exps;
      exps = as_column(exps, part);
      TableSource sink = source(part.prefix + "sink", exps);
      sink.name = "sink";
      for (Table& table : make_tables(sink, case_, options_))
        section.tables.push_back(std::move(table));
    }
    if (is_pairs && number(step(at), "shift", 1) == 0)
      section.remark = "per row: exp, divide by the sum (the maximum is not subtracted)";
    const TraceTensor column = is_pairs ? TraceTensor{} : as_column(value(at), part);
    TableSource from = source(step(at).tap, is_pairs ? value(at) : column);
    from.name = leaf(at) == "row_max" ? "max" : leaf(at) == "row_sum" ? "sum" : leaf(at);
    if (is_pairs) {
      if (is_long) continue;
      from.kind = TableKind::exps;
      from.part = &part;
      from.column_labels = sequence_.keys(step(at).tap);
    }
    for (Table& table : make_tables(from, case_, options_)) {
      table.is_repeated = leaf(at) == "lse";
      section.tables.push_back(std::move(table));
    }
  }
  return at;
}

std::size_t Builder::add_weights(std::size_t at) {
  const AttentionPart* part = leaf(at) == "weights" ? part_of(step(at).tap) : nullptr;
  Section& section = add_section(step(at).tap, leaf(at));
  const bool has_softmax = !part || trace_.find(part->prefix + "exp");
  section.remark = !has_softmax                         ? "no softmax: the scores as they are"
                   : part && !part->sink_shares.empty() ? "each row and its sink add to 1"
                                                        : "each row adds to 1";
  section.shape = shape_words(value(at).shape);
  section.latex = !has_softmax ? "A=Z"
                  : part       ? "A=\\operatorname{softmax}_{\\text{row}}(Z)"
                               : "P=\\operatorname{softmax}_{\\text{row}}(\\text{logits})";
  TableSource from = source(step(at).tap, value(at));
  from.kind = TableKind::weights;
  from.symbol = part ? "A" : "P";
  from.part = part;
  from.column_labels = part ? sequence_.keys(step(at).tap) : case_.vocabulary;
  if (part) from.scores = trace_.find(part->prefix + "scores");
  section.tables = make_tables(from, case_, options_);
  return at + 1;
}

std::size_t Builder::add_out(std::size_t at) {
  const AttentionPart& part = *part_of(step(at).tap);
  Section& section = add_section(step(at).tap, "out");
  section.formula = "O = A·V";
  section.latex = "O=AV";
  const std::string &weights_tap = step(at).reads[0], &v_tap = step(at).reads[1];
  const TraceTensor* weights = trace_.find(weights_tap);
  const TraceTensor* v = trace_.find(v_tap);
  if (weights && v)
    section.shape = shape_words(weights->shape) + " · " + shape_words(v->shape) + " → ";
  section.shape += shape_words(value(at).shape);
  TableSource from = source(step(at).tap, value(at));
  from.symbol = "O";
  section.tables = make_tables(from, case_, options_);
  if (!weights || !v || !explains_out(*weights, *v)) return at + 1;
  TableSource w = source(weights_tap, *weights), x = source(v_tap, *v);
  w.kind = leaf_of(weights_tap) == "weights" ? TableKind::weights : TableKind::exps;
  w.part = &part;
  x.are_rows_queries = false;
  DocumentOptions all = options_;
  all.query.reset();
  all.head.reset();
  all.print.is_percent = false;
  const std::vector<Table> w_tables = make_tables(w, case_, all),
                           v_tables = make_tables(x, case_, all);
  for (Table& table : section.tables) {
    const auto m = static_cast<std::size_t>(table.head < 0 ? 0 : table.head);
    if (m >= w_tables.size() || v_tables.empty()) continue;
    const Table& values = v_tables[m * v_tables.size() / w_tables.size()];
    for (std::size_t n = 0; n < table.rows.size(); ++n)
      table.row_notes.push_back(out_note(w_tables[m], values, table, n));
  }
  return at + 1;
}

// "= 0.3302·(1,0) + 0.6698·(0,1)", its sign by rule R5.
std::string Builder::out_note(const Table& weights, const Table& v, const Table& out,
                              std::size_t row) const {
  const auto i = static_cast<std::size_t>(out.row_index[row] - out.first_row);
  std::string terms;
  std::vector<double> sums(out.rows[row].size(), 0.0);
  for (std::size_t j = 0; j < weights.rows[i].size() && j < v.rows.size(); ++j) {
    const Cell& w = weights.rows[i][j];
    if (w.is_hidden) continue;
    std::string vector;
    for (std::size_t d = 0; d < v.rows[j].size(); ++d) {
      vector += (d == 0 ? "" : ",") + v.rows[j][d].text;
      sums[d] += read_printed(w.text) * read_printed(v.rows[j][d].text);
    }
    terms += (terms.empty() ? "" : " + ") + marked(w) + "·(" + vector + ")";
  }
  if (terms.empty()) return "no key, so 0";
  bool is_equal = true;
  for (std::size_t d = 0; d < sums.size(); ++d)
    is_equal = is_equal && std::string_view(equals_sign(sums[d], out.rows[row][d].text)) == "=";
  return (is_equal ? "= " : "≈ ") + terms;
}

std::size_t Builder::add_other(std::size_t at) {
  const Step& s = step(at);
  Section& section = add_section(s.tap, leaf(at));
  if (s.op) {
    section.formula = s.op->formula;
    section.latex = s.op->latex;
  }
  section.shape = shape_words(value(at).shape);
  if (leaf(at) == "next_token") {
    const std::vector<std::string> labels = sequence_.queries(s.tap);
    const std::size_t count = value(at).values.size();
    for (std::size_t n = 0; n < value(at).values.size(); ++n)
      section.lines.push_back(
          next_token_line(case_, labels.size() == count ? labels[n] : "", value(at).values[n]));
    return at + 1;
  }
  const std::string name = leaf(at);
  TableSource from = source(s.tap, value(at));
  if (name.size() > 2 && name[1] == '_' && (name[0] == 'q' || is_key_side(name)))
    from.name = letter_of(name);
  // The operation's formula is written for q.
  if (!from.name.empty() && section.formula.compare(0, 1, "Q") == 0)
    section.formula.replace(0, 1, from.name);
  if (!from.name.empty() && section.latex.compare(0, 1, "Q") == 0)
    section.latex.replace(0, 1, from.name);
  section.tables = make_tables(from, case_, options_);
  return at + 1;
}

}  // namespace

bool is_key_side(const std::string& leaf) {
  return !leaf.empty() && (leaf[0] == 'k' || leaf[0] == 'v') &&
         (leaf.size() == 1 || leaf[1] == '_');
}

Document build_document(const Case& c, const Trace& trace, const DocumentOptions& options) {
  Document document = Builder(c, trace, options).build();
  keep_steps(document, options.steps);
  return document;
}

}  // namespace glasshead::wire
