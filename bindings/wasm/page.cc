#include "wasm/page.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "doctor/mistake_document.h"
#include "doctor/mistakes.h"
#include "wire/by_hand.h"
#include "wire/case_reader.h"
#include "wire/case_values.h"
#include "wire/decimal.h"
#include "wire/diff.h"
#include "wire/document_build.h"
#include "wire/document_compare.h"
#include "wire/document_json.h"
#include "wire/document_tables.h"
#include "wire/explain.h"
#include "wire/given.h"
#include "wire/json_writer.h"
#include "wire/provenance.h"
#include "wire/render.h"
#include "wire/sequence.h"

namespace glasshead::wasm {
namespace {

using wire::Case;
using wire::Document;
using wire::DocumentOptions;
using wire::JsonWriter;

template <class Write>  // write(JsonWriter&)
std::string written(Write write) {
  std::string bytes;
  {
    JsonWriter json([&](std::string_view piece) { bytes += piece; });
    write(json);
  }
  return bytes;
}

DocumentOptions options_of(Request& request) {
  DocumentOptions options;
  options.print.decimals =
      static_cast<int>(request.integer("decimals", options.print.decimals, 0, wire::kMaxDecimals));
  return options;
}

void write_problems(JsonWriter& json, const Problems& problems) {
  json.begin_array();
  for (const Problem& problem : problems)
    json.begin_object()
        .key("where")
        .value(problem.where)
        .key("what")
        .value(problem.what)
        .end_object();
  json.end_array();
}

void set_empty_row(Case& c, EmptyRow rule) {
  for (nn::Block& block : c.network.blocks) {
    block.attention.options.empty_row = rule;
    if (block.cross_attention) block.cross_attention->options.empty_row = rule;
  }
}

// Up to the mask: what follows it is undefined in a row with no allowed key.
void drop_after_mask(Document& document) {
  const auto is_after = [](const wire::Section& section) {
    return section.title.ends_with("masked");
  };
  const auto masked = std::find_if(document.sections.begin(), document.sections.end(), is_after);
  if (masked != document.sections.end())
    document.sections.erase(masked + 1, document.sections.end());
  document.checks.clear();
  document.footnotes.clear();
}

// "causal+padding"; "": the pair may attend.
std::string reason_names(const Reasons& reasons) {
  std::string words;
  for (const std::string& name : reasons.names()) words += (words.empty() ? "" : "+") + name;
  return words;
}

void write_mask(JsonWriter& json, const Trace& trace) {
  const std::vector<wire::AttentionPart> parts = wire::attentions(trace);
  if (parts.empty() || !parts[0].plan) {
    json.null();
    return;
  }
  const wire::AttentionPart& part = parts[0];
  json.begin_object().key("kind").value(wire::mask_words(*part.options));
  json.key("rows").begin_array();
  for (index_t i = 0; i < part.shape.q_len; ++i) {
    json.begin_array();
    for (index_t j = 0; j < part.shape.kv_len; ++j)
      json.value(reason_names(part.plan->reasons(0, 0, i, j)));
    json.end_array();
  }
  json.end_array().end_object();
}

void write_scale(JsonWriter& json, const Trace& trace, int decimals) {
  const std::vector<wire::AttentionPart> parts = wire::attentions(trace);
  if (parts.empty()) {
    json.null();
    return;
  }
  json.begin_object().key("words").value(wire::scale_words(parts[0], decimals));
  json.key("exact").value(wire::exact_text(parts[0].scale)).end_object();
}

void write_steps(JsonWriter& json, const Trace& trace) {
  json.begin_array();
  for (const TracedStep& traced : trace.steps) {
    if (traced.step.op == nullptr) continue;
    json.begin_object().key("tap").value(traced.step.tap).key("op").value(traced.step.op->id);
    json.key("formula").value(traced.step.op->formula);
    json.key("sentence").value(traced.step.op->sentence).end_object();
  }
  json.end_array();
}

// The numbers that an edit changed, by index; a row of many is one entry for each.
void write_sets(JsonWriter& json, const Case& before, const Case& after) {
  json.begin_array();
  for (const auto& [tap, value] : after.inputs) {
    const auto old = std::find_if(before.inputs.begin(), before.inputs.end(),
                                  [&name = tap](const auto& input) { return input.first == name; });
    if (old == before.inputs.end() || old->second.shape != value.shape) continue;
    for (std::size_t n = 0; n < value.values.size(); ++n) {
      if (old->second.values[n] == value.values[n]) continue;
      std::vector<index_t> at;
      auto rest = static_cast<index_t>(n);
      for (std::size_t axis = value.shape.size(); axis-- > 0;) {
        at.insert(at.begin(), rest % value.shape[axis]);
        rest /= value.shape[axis];
      }
      json.begin_object().key("matrix").value(tap).key("at").values(std::span<const index_t>(at));
      json.key("to").value(wire::shortest(value.values[n])).end_object();
    }
  }
  json.end_array();
}

void write_edit(JsonWriter& json, const Case& before, const Case& after, const wire::Edit& edit) {
  json.begin_object().key("set");
  write_sets(json, before, after);
  json.key("hide").begin_array();
  for (const std::string& name : edit.hide) {
    std::string why_not;
    if (const std::optional<index_t> key = wire::find_row(after.key_labels, name, why_not))
      json.value(*key);
  }
  json.end_array();
  if (edit.mask) json.key("mask").value(*edit.mask);
  if (edit.scale) json.key("scale").value(wire::shortest(*edit.scale));
  if (edit.empty_row)
    json.key("empty_row").value(*edit.empty_row == EmptyRow::zero ? "zero" : "error");
  json.end_object();
}

// A drill that a page's edits can carry out.
bool is_drill_shown(const wire::Drill& drill) {
  return !drill.edit.is_empty() && !drill.edit.softmax && !drill.edit.d_k &&
         !drill.edit.correlation && !drill.edit.untie;
}

void write_drills(JsonWriter& json, const Case& original) {
  json.begin_array();
  for (std::size_t n = 0; n < original.drills.size(); ++n) {
    const wire::Drill& drill = original.drills[n];
    Problems problems;
    const std::optional<Case> edited = wire::edit_case(original, drill.edit, problems);
    if (!edited || !is_drill_shown(drill)) continue;
    json.begin_object().key("drill").value(n).key("question").value(drill.question).key("edit");
    write_edit(json, original, *edited, drill.edit);
    json.end_object();
  }
  json.end_array();
}

void write_case(JsonWriter& json, const Case& c, const Case& original) {
  json.key("inputs").begin_array();
  for (const auto& [tap, value] : c.inputs)
    if (tap != "ids" && !c.random) json.value(tap);
  json.end_array().key("from").value(original.from).key("ours").values(original.ours);
  json.key("labels").begin_object().key("q").values(c.query_labels);
  json.key("k").values(c.key_labels).end_object();
  json.key("drills");
  write_drills(json, original);
}

bool is_same_right_row(const std::vector<wire::Cell>& row) {
  return !row.empty() && row[0].text == "same";
}

// The wrong tables' cells get what the right ones say there.
void mark_wrong(Document& document) {
  std::vector<wire::Section>& sections = document.sections;
  for (std::size_t n = 0; n + 1 < sections.size(); n += 2)
    for (std::size_t t = 0; t < sections[n].tables.size() && t < sections[n + 1].tables.size();
         ++t) {
      wire::Table right = sections[n + 1].tables[t];
      wire::Table& wrong = sections[n].tables[t];
      for (std::size_t i = 0; i < right.rows.size() && i < wrong.rows.size(); ++i)
        if (is_same_right_row(right.rows[i])) right.rows[i] = wrong.rows[i];
      wire::Moved moved;
      wire::mark_moved(wrong, right, moved);
    }
}

void write_mistake(JsonWriter& json, const doctor::MistakenRun& run, const Case& c,
                   const DocumentOptions& options) {
  const doctor::Mistake& mistake = *run.chosen.mistake;
  json.begin_object().key("id").value(run.chosen.name()).key("title").value(mistake.title);
  json.key("done").value(mistake.done).key("tell_tale").value(mistake.tell_tale);
  json.key("cause").value(mistake.cause).key("fix").value(mistake.fix);
  json.key("fix_code").value(mistake.fix_code);
  json.key("hidden_because").value(run.hidden_because);
  json.key("stops_because").value(run.stops_because).key("document");
  Document document = doctor::mistake_document(run, c, options);
  mark_wrong(document);
  wire::write_document_json(json, document);
  json.end_object();
}

struct ViewOptions {
  DocumentOptions document;
  std::optional<int> by_hand;
  std::string mistake;
  const Json* before = nullptr;
};

void write_moved(JsonWriter& json, const wire::Moved& moved) {
  json.begin_object().key("moved").value(moved.moved).key("of").value(moved.of);
  json.key("words").value(std::to_string(moved.moved) + " of " + std::to_string(moved.of) +
                          " cells changed");
  json.end_object();
}

// The exact document, its cells marked with what they were before; writes "moved" and "why".
void compare_with(JsonWriter& json, Document& document, const Case& was, const Case& is,
                  const Trace& trace, const DocumentOptions& options) {
  Case before = was;
  set_empty_row(before, EmptyRow::zero);
  wire::Comparison comparison{before, is, wire::run_case(before), trace};
  json.key("moved");
  write_moved(json,
              wire::mark_moved(document, wire::build_document(before, comparison.before, options)));
  json.key("why").values(wire::diff_summaries(comparison, options));
}

void by_hand(JsonWriter& json, Document& document, const Case& c, const DocumentOptions& options,
             int decimals) {
  const wire::ByHand hand = wire::run_by_hand(c, {decimals, false});
  DocumentOptions rounded = options;
  rounded.print.decimals = decimals;
  rounded.print.rounding = wire::RowRounding::nearest;
  const Document exact = wire::build_document(c, hand.exact, options);
  document = wire::build_document(c, hand.rounded, rounded);
  wire::mark_moved(document, exact);
  json.key("by_hand").values(wire::by_hand_lines(c, hand, options));
}

std::optional<std::string> view(Request& request) {
  ViewOptions options;
  Problems& problems = request.problems();
  options.document = options_of(request);
  constexpr index_t kNotByHand = -1;
  const index_t decimals = request.integer("by_hand", kNotByHand, 0, wire::kMaxDecimals);
  options.mistake = request.text("mistake", "");
  const Json* before = request.object("before");
  const wire::Edit before_edit = wire::Edit(read_edit(before, "before", problems));
  const std::optional<ReadCase> read = read_case(request);
  if (!read) return std::nullopt;
  Case c = read->edited;
  const Problems refused = wire::empty_row_problems(c);
  if (!refused.empty()) set_empty_row(c, EmptyRow::zero);
  const bool is_whole = c.feed == 0 && c.generate == 0;

  std::optional<Case> was;
  if (before != nullptr && refused.empty())
    was = before_edit.is_empty() ? read->original
                                 : wire::edit_case(read->original, before_edit, problems);
  std::optional<doctor::MistakenRun> mistaken;
  if (!options.mistake.empty() && refused.empty())
    mistaken = doctor::run_mistake(options.mistake, c, problems);
  if (!problems.empty()) return std::nullopt;

  const Trace trace = wire::run_case(c);
  Document document = wire::build_document(c, trace, options.document);
  return written([&](JsonWriter& json) {
    json.begin_object().key("schema").value("glasshead.view/1");
    write_case(json, c, read->original);
    json.key("refused");
    write_problems(json, refused);
    if (!refused.empty())
      drop_after_mask(document);
    else if (decimals != kNotByHand && is_whole)
      by_hand(json, document, c, options.document, static_cast<int>(decimals));
    else if (was)
      compare_with(json, document, *was, c, trace, options.document);
    json.key("document");
    wire::write_document_json(json, document);
    json.key("mask");
    write_mask(json, trace);
    json.key("scale");
    write_scale(json, trace, options.document.print.decimals);
    json.key("steps");
    write_steps(json, trace);
    if (mistaken) write_mistake(json.key("mistake"), *mistaken, c, options.document);
    json.end_object();
  });
}

std::optional<std::string> why(Request& request) {
  DocumentOptions options = options_of(request);
  options.query = request.integer("query", 0, 0, wire::kMostExtent);
  const index_t head = request.integer("head", 0, 0, wire::kMostExtent);
  const std::optional<ReadCase> read = read_case(request);
  if (!read) return std::nullopt;
  request.problems() = wire::empty_row_problems(read->edited);
  if (!request.problems().empty()) return std::nullopt;
  options.head = head;
  std::string bytes;
  wire::write_explain_json(read->edited, wire::run_case(read->edited), options,
                           [&](std::string_view piece) { bytes += piece; });
  return bytes;
}

// The ids of a region's cells.
void write_cells(JsonWriter& json, const Case& c, const Trace& trace,
                 const std::vector<wire::Region>& regions) {
  const wire::Sequence sequence(c, trace);
  json.begin_array();
  for (const wire::Region& region : regions) {
    const TraceTensor* tensor = trace.find(region.tap);
    if (tensor == nullptr) continue;
    const wire::Matrices matrices = wire::matrices_of(tensor->shape);
    const std::string leaf = wire::leaf_of(region.tap);
    const index_t first =
        wire::is_key_side(leaf) || trace.steps.empty() ? 0 : sequence.first_row(region.tap);
    const std::string name = "cell-" + region.tap + "-" +
                             (region.head < 0 ? "" : "h" + std::to_string(region.head) + "-");
    for (index_t i = 0; i < matrices.rows; ++i)
      for (index_t j = 0; j < matrices.columns; ++j)
        if ((region.row < 0 || region.row == i) && (region.column < 0 || region.column == j))
          json.value(name + std::to_string(first + i) + "-" + std::to_string(j));
  }
  json.end_array();
}

std::optional<std::string> origin(Request& request) {
  const std::string tap = request.text("tap", "");
  constexpr index_t kNone = -1;
  const index_t head = request.integer("head", kNone, kNone, wire::kMostExtent);
  const index_t row = request.integer("row", 0, 0, wire::kMostExtent);
  const index_t column = request.integer("column", 0, 0, wire::kMostExtent);
  const std::optional<ReadCase> read = read_case(request);
  if (!read) return std::nullopt;
  Case c = read->edited;
  set_empty_row(c, EmptyRow::zero);
  const Trace trace = wire::run_case(c);
  return written([&](JsonWriter& json) {
    json.begin_object().key("from");
    write_cells(json, c, trace, wire::provenance(trace, tap, head, row, column));
    json.key("feeds");
    write_cells(json, c, trace, wire::fed_by(trace, tap, head, row, column));
    json.end_object();
  });
}

std::optional<std::string> mistakes(Request& request) {
  const std::optional<ReadCase> read = read_case(request);
  if (!read) return std::nullopt;
  request.problems() = wire::empty_row_problems(read->edited);
  if (!request.problems().empty()) return std::nullopt;
  return written([&](JsonWriter& json) {
    json.begin_object().key("mistakes").begin_array();
    for (const doctor::Mistake& mistake : doctor::mistakes()) {
      Problems problems;
      const auto run = doctor::run_mistake(mistake.id, read->edited, problems);
      if (!run || !problems.empty()) continue;
      json.begin_object().key("id").value(mistake.id).key("title").value(mistake.title);
      json.key("hidden_because").value(run->hidden_because).end_object();
    }
    json.end_array().end_object();
  });
}

// The ids of the weights that a drill's edit moves, and of all that could.
struct DrillOutcome {
  std::vector<std::string> moved, all;
};
DrillOutcome outcome_of(const Document& after, const wire::Moved& moved) {
  DrillOutcome outcome;
  for (const wire::Section& section : after.sections)
    for (const wire::Table& table : section.tables) {
      if (wire::leaf_of(table.tap) != "weights") continue;
      for (std::size_t n = 0; n < table.rows.size(); ++n)
        for (std::size_t j = 0; j < table.rows[n].size(); ++j) {
          const std::string id = wire::cell_id(table, n, static_cast<index_t>(j));
          const bool has_moved =
              std::find(moved.ids.begin(), moved.ids.end(), id) != moved.ids.end();
          outcome.all.push_back(id);
          if (has_moved) outcome.moved.push_back(id);
        }
    }
  return outcome;
}

std::optional<std::string> grade(Request& request) {
  Problems& problems = request.problems();
  const index_t number = request.integer("drill", 0, 0, wire::kMostExtent);
  const Json* list = request.list("ticked");
  const DocumentOptions options = options_of(request);
  std::vector<std::string> ticked;
  for (std::size_t n = 0; list != nullptr && n < list->size(); ++n)
    if ((*list)[n].is_string()) ticked.push_back((*list)[n].get<std::string>());
  const std::optional<ReadCase> read = read_case(request);
  if (!read) return std::nullopt;
  const Case& c = read->original;
  if (number >= static_cast<index_t>(c.drills.size())) {
    problems.push_back({"drill", "the case has " + std::to_string(c.drills.size()) + " drills"});
    return std::nullopt;
  }
  const wire::Drill& drill = c.drills[static_cast<std::size_t>(number)];
  const std::optional<Case> edited = wire::edit_case(c, drill.edit, problems);
  if (edited) problems = wire::empty_row_problems(*edited);
  if (!edited || !problems.empty()) return std::nullopt;
  const wire::Comparison comparison{c, *edited, wire::run_case(c), wire::run_case(*edited)};
  Document after = wire::build_document(*edited, comparison.after, options);
  const wire::Moved moved =
      wire::mark_moved(after, wire::build_document(c, comparison.before, options));
  const DrillOutcome outcome = outcome_of(after, moved);
  const auto has = [](const std::vector<std::string>& ids, const std::string& id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  return written([&](JsonWriter& json) {
    index_t right = 0;
    json.begin_object().key("cells").begin_array();
    for (const std::string& id : outcome.all) {
      const bool is_right = has(ticked, id) == has(outcome.moved, id);
      right += is_right ? 1 : 0;
      json.begin_object().key("id").value(id).key("ticked").value(has(ticked, id));
      json.key("moved").value(has(outcome.moved, id)).key("right").value(is_right).end_object();
    }
    json.end_array().key("right").value(right == static_cast<index_t>(outcome.all.size()));
    json.key("words").value(std::to_string(right) + " of " + std::to_string(outcome.all.size()) +
                            " right");
    json.key("answer").value(drill.answer);
    json.key("why").values(wire::diff_summaries(comparison, options)).end_object();
  });
}

// A typed number moved by a typed step, in the digits of both.
std::optional<std::string> step(Request& request) {
  const std::string text = request.text("text", ""), by = request.text("by", "");
  request.refuse_others();
  const std::optional<double> from = wire::finite_number(text), move = wire::finite_number(by);
  if (!from || !move)
    request.problems().push_back({"step", "\"" + (from ? by : text) + "\" is not a finite number"});
  if (!request.problems().empty()) return std::nullopt;
  const bool has_exponent = text.find_first_of("eE") != std::string::npos;
  const int decimals = std::max(wire::decimals_of(text), wire::decimals_of(by));
  std::string moved =
      has_exponent ? wire::shortest(*from + *move) : wire::fixed(*from + *move, decimals);
  if (!has_exponent && moved.find('.') != std::string::npos) {
    moved.erase(moved.find_last_not_of('0') + 1);
    if (moved.back() == '.') moved.pop_back();
  }
  return written(
      [&](JsonWriter& json) { json.begin_object().key("text").value(moved).end_object(); });
}

}  // namespace

PageCall find_page_call(std::string_view name) {
  constexpr std::pair<std::string_view, PageCall> kCalls[] = {
      {"view", view},         {"why", why},     {"origin", origin},
      {"mistakes", mistakes}, {"grade", grade}, {"step", step}};
  for (const auto& [known, call] : kCalls)
    if (known == name) return call;
  return nullptr;
}

}  // namespace glasshead::wasm
