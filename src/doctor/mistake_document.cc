#include "doctor/mistake_document.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>

#include "doctor/comparison.h"
#include "wire/document_tables.h"
#include "wire/trace_json.h"

namespace glasshead::doctor {
namespace {

using wire::Section;
using wire::Table;

// Rows that are the same in both runs say so on the right.
void mark_same_rows(Table& right, const TraceTensor& a, const TraceTensor& b, index_t matrix) {
  for (std::size_t n = 0; n < right.rows.size(); ++n) {
    if (a.shape != b.shape || !is_same_row(a, b, matrix, right.row_index[n])) continue;
    bool is_first = true;
    for (wire::Cell& cell : right.rows[n]) {
      cell = {};
      if (is_first) cell.text = "same";
      is_first = false;
    }
  }
}

class Builder {
 public:
  Builder(const MistakenRun& run, const wire::Case& c, const wire::DocumentOptions& options)
      : run_(run), case_(c), options_(options) {}

  wire::Document build() {
    add_words();
    if (run_.fit == Fit::runs) {
      const wire::AttentionPart wrong_part = shown_part(run_.wrong, run_.right);
      const wire::AttentionPart right_part = shown_part(run_.right, run_.right);
      add_pair("weights", weights_used(run_.wrong), &wrong_part, weights_used(run_.right),
               &right_part);
      add_pair("out", attention_out(run_.wrong), nullptr, attention_out(run_.right), nullptr);
    }
    add_lines();
    return std::move(document_);
  }

 private:
  void add_words() {
    const Mistake& mistake = *run_.chosen.mistake;
    document_.name = case_.name;
    document_.question = case_.title;
    document_.title = case_.name + " · mistake " + run_.chosen.name() + ": " + mistake.title;
    document_.preamble.push_back(mistake.done);
  }

  std::vector<Table> tables(const char* tap, const TraceTensor& value,
                            const wire::AttentionPart* part) const {
    wire::TableSource source;
    source.tap = tap;
    source.symbol = part != nullptr ? "A" : "O";
    source.value = &value;
    source.kind = part != nullptr ? wire::TableKind::weights : wire::TableKind::plain;
    source.part = part;
    source.row_labels = case_.query_labels;
    if (part != nullptr) source.column_labels = case_.key_labels;
    source.are_rows_queries = true;
    return make_tables(source, case_, options_);
  }

  void add_pair(const char* tap, const TraceTensor& wrong, const wire::AttentionPart* wrong_part,
                const TraceTensor& right, const wire::AttentionPart* right_part) {
    Section left, beside;
    left.title = tap;
    left.remark = "wrong";
    left.tables = tables(tap, wrong, wrong_part);
    beside.title = "right";
    beside.tables = tables(tap, right, right_part);
    for (std::size_t m = 0; m < beside.tables.size(); ++m)
      mark_same_rows(beside.tables[m], wrong, right, static_cast<index_t>(m));
    for (Table& table : beside.tables) table.sums.clear();
    left.layout = beside.layout = Section::Layout::beside;
    document_.sections.push_back(std::move(left));
    document_.sections.push_back(std::move(beside));
  }

  void add_lines() {
    const Mistake& mistake = *run_.chosen.mistake;
    if (run_.fit == Fit::stops) document_.footnotes.push_back("stops      " + run_.stops_because);
    document_.footnotes.push_back(std::string("tell-tale  ") + mistake.tell_tale);
    const std::string hidden = why_hidden(run_);
    if (!hidden.empty()) document_.footnotes.push_back("hidden     " + hidden);
    document_.footnotes.push_back(std::string("look for   ") + mistake.cause);
    document_.footnotes.push_back(std::string("fix        ") + mistake.fix + ": " +
                                  mistake.fix_code);
  }

  const MistakenRun& run_;
  const wire::Case& case_;
  const wire::DocumentOptions& options_;
  wire::Document document_;
};

void write_rows(wire::JsonWriter& json, const TraceTensor& t, std::size_t axis, std::size_t& next) {
  json.begin_array();
  for (index_t n = 0; n < t.shape[axis]; ++n) {
    if (axis + 1 < t.shape.size())
      write_rows(json, t, axis + 1, next);
    else
      json.value(t.values[next++]);
  }
  json.end_array();
}

void write_mistake(wire::JsonWriter& json, const MistakenRun& run) {
  const Mistake& mistake = *run.chosen.mistake;
  json.begin_object();
  json.key("id").value(mistake.id);
  if (!run.chosen.parameter.empty()) json.key("parameter").value(run.chosen.parameter);
  json.key("title").value(mistake.title);
  json.key("done").value(mistake.done);
  json.key("tell_tale").value(mistake.tell_tale);
  json.key("cause").value(mistake.cause);
  json.key("fix").value(mistake.fix);
  json.key("fix_code").value(mistake.fix_code);
  json.key("runs").value(run.fit == Fit::runs);
  if (run.fit == Fit::stops) json.key("stops_because").value(run.stops_because);
  const std::string hidden = why_hidden(run);
  if (!hidden.empty()) json.key("hidden_because").value(hidden);
  json.key("right").begin_object();
  std::size_t next = 0;
  json.key("weights");
  write_rows(json, weights_used(run.right), 0, next);
  next = 0;
  json.key("out");
  write_rows(json, attention_out(run.right), 0, next);
  json.end_object();
  json.end_object();
}

}  // namespace

wire::Document mistake_document(const MistakenRun& run, const wire::Case& c,
                                const wire::DocumentOptions& options) {
  return Builder(run, c, options).build();
}

void write_mistake_json(const MistakenRun& run, const wire::Case& c,
                        const wire::DocumentOptions& options, const wire::JsonWriter::Sink& sink) {
  const auto more = [&](wire::JsonWriter& json) { write_mistake(json.key("mistake"), run); };
  if (run.fit == Fit::runs) {
    StepList steps;
    for (const TracedStep& traced : run.wrong.steps) steps.push_back(traced.step);
    wire::write_trace_json(c, options, steps, more, sink);
    return;
  }
  wire::JsonWriter json(sink);
  json.begin_object().key("schema").value("glasshead.trace/1").key("case").value(c.name);
  more(json);
  json.end_object().flush();
}

}  // namespace glasshead::doctor
