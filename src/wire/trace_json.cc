#include "wire/trace_json.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "wire/document_tables.h"
#include "wire/fused_check.h"
#include "wire/sequence.h"

namespace glasshead::wire {
namespace {

bool is_per_row(const std::string& leaf) {
  return leaf == "row_max" || leaf == "row_sum" || leaf == "lse" || leaf == "next_token";
}

class TraceJson {
 public:
  TraceJson(const Case& c, const DocumentOptions& options, const JsonWriter::Sink& sink)
      : case_(c),
        options_(options),
        json_(sink),
        printed_([this](std::string_view piece) { printed_text_ += piece; }) {}

  void begin(const std::vector<Step>& list, const Sequence& sequence);
  void labels(const Sequence& sequence);
  void step(const Step& step, const TraceTensor& value);
  void end(const std::function<void(JsonWriter&)>& more);

 private:
  bool is_wanted(const std::string& tap) const {
    return options_.steps.empty() ||
           std::any_of(options_.steps.begin(), options_.steps.end(), [&](const std::string& name) {
             return name == tap || name == leaf_of(tap);
           });
  }
  void inputs();
  void scale(const AttentionPart& part);
  void mask(const AttentionPart& part);
  template <class Write>
  void nested(const std::vector<index_t>& shape, std::size_t axis, index_t offset,
              const Write& write);
  void tensor(const std::string& key, const std::string& leaf, const TraceTensor& value,
              const AttentionPart* hiding);
  void weights(const Step& step, const TraceTensor& value, const AttentionPart* part);
  void print(const std::string& tap, const TraceTensor& value, TableKind kind,
             const AttentionPart* part);
  void print_tables(const std::string& key, const std::vector<Table>& tables, int what);

  const Case& case_;
  const DocumentOptions& options_;
  JsonWriter json_;
  std::string printed_text_;
  JsonWriter printed_;
  std::map<std::string, std::vector<index_t>> shapes_;
  std::vector<std::pair<std::string, std::vector<index_t>>> shown_shapes_;
  std::vector<Step> list_;
  std::optional<AttentionPart> part_;
  TraceTensor row_max_;  // of part_, where there are sinks
  CheckLine rows_{"rows-sum-1", "", true, {}}, hidden_{"no-weight-on-hidden", "", true, {}};
  bool has_weights_ = false;
  std::optional<FusedCheck> fused_;
};

// Marks of the row with this number, counted over all matrices: 1 where hidden.
std::vector<char> hidden_row_at(const AttentionPart& part, index_t row) {
  const index_t m = row / part.shape.q_len;
  return hidden_row(*part.plan, m / part.shape.heads, m % part.shape.heads, row % part.shape.q_len);
}

// A tensor's shape without leading axes of size 1: what is left has at least `least` axes.
std::vector<index_t> dropped_axes(std::vector<index_t> shape, std::size_t least) {
  while (shape.size() > least && shape.front() == 1) shape.erase(shape.begin());
  return shape;
}

template <class Write>
void TraceJson::nested(const std::vector<index_t>& shape, std::size_t axis, index_t offset,
                       const Write& write) {
  if (axis == shape.size()) {
    write(offset);
    return;
  }
  json_.begin_array();
  for (index_t n = 0; n < shape[axis]; ++n)
    nested(shape, axis + 1, offset * shape[axis] + n, write);
  json_.end_array();
}

void TraceJson::tensor(const std::string& key, const std::string& leaf, const TraceTensor& value,
                       const AttentionPart* hiding) {
  const std::vector<index_t> shape = dropped_axes(
      value.shape, is_per_row(leaf) ? 1 : std::min<std::size_t>(value.shape.size(), 2));
  json_.key(key);
  shown_shapes_.emplace_back(key, shape);
  if (!hiding) {
    nested(shape, 0, 0, [&](index_t n) { json_.value(value.values[static_cast<std::size_t>(n)]); });
    return;
  }
  nested({shape.begin(), shape.end() - 1}, 0, 0, [&](index_t row) {
    const std::vector<char> marks = hidden_row_at(*hiding, row);
    const double* number = value.values.data() + static_cast<std::size_t>(row) * marks.size();
    json_.begin_array();
    for (const char mark : marks) {
      if (mark == 0)
        json_.value(*number);
      else
        json_.null();
      ++number;
    }
    json_.end_array();
  });
}

void TraceJson::inputs() {
  json_.key("inputs").begin_object();
  for (const auto& [tap, value] : case_.inputs) {
    shapes_[tap] = value.shape;
    fused_->see(tap, value);
    if (!is_wanted(tap)) continue;
    tensor(tap, leaf_of(tap), value, nullptr);
    print(tap, value, TableKind::given, nullptr);
  }
  json_.end_object();
}

// Those of the first run, then of each later one: "step.1.labels", with the position of its row in
// the whole sequence.
void TraceJson::labels(const Sequence& sequence) {
  json_.key("labels").begin_object();
  json_.key("q").values(sequence.query_tokens("")).key("k").values(sequence.key_tokens(""));
  if (!case_.context_labels.empty()) json_.key("context").values(case_.context_labels);
  if (!case_.vocabulary.empty()) json_.key("vocabulary").values(case_.vocabulary);
  json_.end_object();
  for (index_t run = 1; run < sequence.runs(); ++run) {
    const std::string prefix = fmt::format("step.{}.", run);
    json_.key(prefix + "labels").begin_object().key("row").value(sequence.first_row(prefix));
    json_.key("q").values(sequence.query_tokens(prefix));
    json_.key("k").values(sequence.key_tokens(prefix)).end_object();
  }
}

void TraceJson::begin(const std::vector<Step>& list, const Sequence& sequence) {
  list_ = list;
  fused_.emplace(list);
  json_.begin_object();
  json_.key("schema").value("glasshead.trace/1");
  json_.key("case").value(case_.name);
  labels(sequence);
  json_.key("steps").begin_array();
  for (const Step& s : list_) {
    json_.begin_object().key("tap").value(s.tap).key("op").value(s.op ? s.op->id : "");
    json_.key("reads").values(s.reads).end_object();
  }
  json_.end_array();
  printed_.begin_object();
  printed_.key("decimals").value(options_.print.decimals);
  printed_.key("rule").value(options_.print.rounding == RowRounding::sum_to_one ? "sum1"
                                                                                : "nearest");
  if (options_.print.is_percent) printed_.key("percent").value(true);
  inputs();
}

void TraceJson::scale(const AttentionPart& part) {
  json_.key(part.prefix + "scale").begin_object().key("value").value(part.scale);
  json_.key("rule").value(part.options->scale ? "given" : "1/sqrt(d_k)");
  json_.key("d_k").value(part.d_k).end_object();
}

void TraceJson::mask(const AttentionPart& part) {
  const PairShape& pairs = part.shape;
  std::vector<index_t> shape{pairs.q_len, pairs.kv_len};
  if (pairs.heads > 1 || pairs.batch > 1) shape.insert(shape.begin(), pairs.heads);
  if (pairs.batch > 1) shape.insert(shape.begin(), pairs.batch);
  const std::vector<index_t> rows(shape.begin(), shape.end() - 1);
  json_.key(part.prefix + "mask").begin_object().key("kind").value(mask_words(*part.options));
  json_.key("allowed");
  nested(rows, 0, 0, [&](index_t row) {
    json_.begin_array();
    for (const char mark : hidden_row_at(part, row)) json_.value(mark == 0);
    json_.end_array();
  });
  json_.key("reason");
  nested(rows, 0, 0, [&](index_t row) {
    const index_t m = row / pairs.q_len;
    const std::vector<char> marks = hidden_row_at(part, row);
    json_.begin_array();
    for (std::size_t j = 0; j < marks.size(); ++j) {
      if (marks[j] == 0) {
        json_.null();
        continue;
      }
      std::string names;
      for (const std::string& name : part.plan
                                         ->reasons(m / pairs.heads, m % pairs.heads,
                                                   row % pairs.q_len, static_cast<index_t>(j))
                                         .names())
        names += (names.empty() ? "" : "+") + name;
      json_.value(names);
    }
    json_.end_array();
  });
  json_.end_object();
}

void TraceJson::weights(const Step& step, const TraceTensor& value, const AttentionPart* part) {
  const Matrices matrices = matrices_of(value.shape);
  std::vector<index_t> shape = value.shape;
  if (!shape.empty()) shape.pop_back();
  shape = dropped_axes(shape, 1);
  json_.key(step.tap == "weights" ? "row_sum"
                                  : prefix_of(step.tap) + (part ? "row_sum" : "probability_sum"));
  nested(shape, 0, 0, [&](index_t n) {
    json_.value(sum_of_row(row_of(value, n / matrices.rows, n % matrices.rows)));
  });
  std::vector<std::vector<index_t>> empty;
  for (index_t m = 0; m < matrices.count; ++m)
    for (index_t i = 0; i < matrices.rows; ++i) {
      const std::span<const double> row = row_of(value, m, i);
      const double sum = sum_of_row(row);
      index_t allowed = matrices.columns;
      if (part) {
        const std::vector<char> marks =
            hidden_row(*part->plan, m / part->shape.heads, m % part->shape.heads, i);
        for (std::size_t j = 0; j < marks.size(); ++j) {
          if (marks[j] == 0) continue;
          --allowed;
          if (row[j] != 0) hidden_.is_ok = false;
        }
      }
      if (allowed == 0) empty.push_back(matrices.count > 1 ? std::vector{m, i} : std::vector{i});
      const std::optional<double> sink = sink_share(part, m, i);
      if (allowed > 0 &&
          !row_adds_to_one(sum + sink.value_or(0), matrices.columns + (sink ? 1 : 0)))
        rows_.is_ok = false;
    }
  has_weights_ = true;
  if (!part) return;
  json_.key(part->prefix + "empty_rows").begin_array();
  for (const std::vector<index_t>& at : empty) {
    if (at.size() == 1)
      json_.value(at[0]);
    else
      json_.values(at);
  }
  json_.end_array();
}

void TraceJson::step(const Step& step, const TraceTensor& value) {
  fused_->see(step.tap, value);
  const std::string leaf = leaf_of(step.tap);
  if (leaf == "scores" && !step.reads.empty()) {
    TraceTensor q;  // its shape alone
    const auto found = shapes_.find(step.reads[0]);
    if (found != shapes_.end()) q.shape = found->second;
    part_ = attention_of(step, value, q);
    for (const Step& later : list_)
      if (later.tap == part_->prefix + "scaled") part_->scale = number(later, "scale", 1);
    scale(*part_);
    mask(*part_);
  }
  if (part_ && part_->prefix == prefix_of(step.tap) && !part_->options->sinks.empty()) {
    if (leaf == "row_max") row_max_ = value;
    if (leaf == "row_sum") add_sinks(*part_, row_max_, step, value);
  }
  shapes_[step.tap] = value.shape;
  const AttentionPart* part = part_ && part_->prefix == prefix_of(step.tap) ? &*part_ : nullptr;
  if (!is_wanted(step.tap)) return;
  const std::string key = leaf == "row_sum" ? prefix_of(step.tap) + "exp_sum" : step.tap;
  tensor(key, leaf, value, leaf == "masked" ? part : nullptr);
  const bool is_weights = (leaf == "weights" && part) || leaf == "probabilities";
  if (is_weights) weights(step, value, leaf == "weights" ? part : nullptr);
  if (is_per_row(leaf)) {
    print(key, value, TableKind::plain, nullptr);
    return;
  }
  const TableKind kind = is_weights         ? TableKind::weights
                         : leaf == "masked" ? TableKind::scores
                         : leaf == "exp"    ? TableKind::exps
                                            : TableKind::plain;
  print(key, value, kind, kind == TableKind::plain || leaf == "probabilities" ? nullptr : part);
}

void TraceJson::print_tables(const std::string& key, const std::vector<Table>& tables, int what) {
  constexpr int kTexts = 0, kMoved = 1;
  printed_.key(key);
  const bool has_leading = tables.size() > 1;
  if (has_leading) printed_.begin_array();
  for (const Table& table : tables) {
    printed_.begin_array();
    for (std::size_t n = 0; n < table.long_rows.size() && what == kTexts; ++n) {
      const Table::LongRow& row = table.long_rows[n];
      printed_.begin_object().key("top").begin_array();
      for (const Table::LongEntry& entry : row.top)
        printed_.begin_array().value(entry.key).value(marked(entry.cell)).end_array();
      printed_.end_array().key("others").begin_array();
      printed_.value(row.other_count).value(marked(row.others)).end_array().end_object();
    }
    for (const auto& row : table.rows) {
      if (what > kMoved) break;
      printed_.begin_array();
      for (const Cell& cell : row) {
        if (what == kTexts)
          printed_.value(marked(cell));
        else
          printed_.value(cell.moved);
      }
      printed_.end_array();
    }
    for (std::size_t n = 0; n < table.sums.size() && what > kMoved; ++n)
      printed_.value(table.sums[n].text);
    printed_.end_array();
  }
  if (has_leading) printed_.end_array();
}

void TraceJson::print(const std::string& tap, const TraceTensor& value, TableKind kind,
                      const AttentionPart* part) {
  const bool is_pairs = part || leaf_of(tap) == "scores" || leaf_of(tap) == "scaled" ||
                        leaf_of(tap) == "biased" || leaf_of(tap) == "capped";
  const Matrices matrices = matrices_of(value.shape);
  if (is_pairs && kind != TableKind::weights && matrices.columns > kLongRow &&
      !options_.print.is_full)
    return;  // rule R7: long rows print as weights alone
  if (value.values.empty()) return;
  TableSource source;
  source.tap = tap;
  source.value = &value;
  source.kind = kind;
  source.part = part;
  DocumentOptions all;
  all.print = options_.print;
  const std::vector<Table> tables = make_tables(source, case_, all);
  print_tables(tap, tables, 0);
  if (kind != TableKind::weights) return;
  const std::string prefix = tap == "weights" ? std::string() : tap + ".";
  if (tables.front().long_rows.empty()) print_tables(prefix + "moved", tables, 1);
  print_tables(prefix + "sums", tables, 2);
}

void TraceJson::end(const std::function<void(JsonWriter&)>& more) {
  json_.key("shapes").begin_object();
  for (const auto& [tap, shape] : shown_shapes_) json_.key(tap).values(shape);
  json_.end_object();
  printed_.end_object();
  printed_.flush();
  json_.key("printed").raw(printed_text_);
  json_.key("checks").begin_array();
  const std::optional<CheckLine> fused = fused_->line();
  std::vector<const CheckLine*> checks;
  if (has_weights_) checks = {&rows_, &hidden_};
  if (has_weights_ && fused) checks.push_back(&*fused);
  for (const CheckLine* check : checks)
    json_.begin_object().key("id").value(check->id).key("ok").value(check->is_ok).end_object();
  json_.end_array();
  if (more) more(json_);
  json_.end_object();
  json_.flush();
}

}  // namespace

void write_trace_json(const Case& c, const DocumentOptions& options, const std::vector<Step>& list,
                      const std::function<void(JsonWriter&)>& more, const JsonWriter::Sink& sink) {
  TraceJson json(c, options, sink);
  json.begin(list, Sequence(c));
  run_steps(list, c.inputs, [&](const Step& step, TraceTensor& value) { json.step(step, value); });
  json.end(more);
}

void write_trace_json(const Case& c, const DocumentOptions& options, const JsonWriter::Sink& sink) {
  if (c.feed == 0 && c.generate == 0) {
    write_trace_json(c, options, case_steps(c), {}, sink);
    return;
  }
  const Trace trace = run_case(c);  // later pieces depend on earlier ones
  std::vector<Step> list;
  for (const TracedStep& traced : trace.steps) list.push_back(traced.step);
  TraceJson json(c, options, sink);
  json.begin(list, Sequence(c, trace));
  for (const TracedStep& traced : trace.steps) json.step(traced.step, traced.value);
  json.end({});
}

}  // namespace glasshead::wire
