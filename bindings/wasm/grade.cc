// A drill's answer, checked.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "wasm/calls.h"
#include "wasm/written.h"
#include "wire/case_reader.h"
#include "wire/diff.h"
#include "wire/document_compare.h"
#include "wire/render.h"

namespace glasshead::wasm {
namespace {

// The ids of the weights that a drill's edit moves, and of all that could.
struct DrillOutcome {
  std::vector<std::string> moved, all;
};
DrillOutcome outcome_of(const wire::Document& marked) {
  DrillOutcome outcome;
  for (const wire::Section& section : marked.sections)
    for (const wire::Table& table : section.tables) {
      if (wire::leaf_of(table.tap) != "weights") continue;
      for (std::size_t n = 0; n < table.rows.size(); ++n)
        for (std::size_t j = 0; j < table.rows[n].size(); ++j) {
          const std::string id = wire::cell_id(table, n, static_cast<index_t>(j));
          outcome.all.push_back(id);
          if (!table.rows[n][j].before.empty()) outcome.moved.push_back(id);
        }
    }
  return outcome;
}

bool has(const std::vector<std::string>& ids, const std::string& id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

void write_graded(wire::JsonWriter& json, const DrillOutcome& outcome,
                  const std::vector<std::string>& ticked) {
  index_t right = 0;
  json.key("cells").begin_array();
  for (const std::string& id : outcome.all) {
    const bool is_ticked = has(ticked, id), has_moved = has(outcome.moved, id);
    right += is_ticked == has_moved ? 1 : 0;
    json.begin_object().key("id").value(id).key("ticked").value(is_ticked);
    json.key("moved").value(has_moved).key("right").value(is_ticked == has_moved).end_object();
  }
  const auto all = static_cast<index_t>(outcome.all.size());
  json.end_array().key("right").value(right == all);
  json.key("words").value(std::to_string(right) + " of " + std::to_string(all) + " right");
}

}  // namespace

std::optional<std::string> grade(Request& request, Session& session) {
  Problems& problems = request.problems();
  const index_t number = request.integer("drill", 0, 0, wire::kMostExtent);
  const wire::JsonValue list = request.list("ticked");
  const wire::DocumentOptions options = document_options(request);
  std::vector<std::string> ticked;
  for (wire::JsonValue id = list ? list.first() : list; id; id = id.next())
    if (id.is(wire::JsonKind::string)) ticked.emplace_back(id.text());
  const EditedCase* read = session.read(request);
  if (read == nullptr) return std::nullopt;
  const wire::Case& c = read->original();
  if (number >= static_cast<index_t>(c.drills.size())) {
    problems.push_back({"drill", "the case has " + std::to_string(c.drills.size()) + " drills"});
    return std::nullopt;
  }
  const wire::Drill& drill = c.drills[static_cast<std::size_t>(number)];
  const std::optional<EditedCase> edited = session.apart(drill.edit, problems);
  if (edited) problems = edited->refused();
  if (!edited || !problems.empty()) return std::nullopt;
  const EditedCase* original = session.edit({}, problems);
  const wire::Comparison comparison{c, edited->given(), original->trace(), edited->trace()};
  wire::Document after = edited->document(options.print.decimals);
  wire::mark_moved(after, original->document(options.print.decimals));
  const DrillOutcome outcome = outcome_of(after);
  return written([&](wire::JsonWriter& json) {
    json.begin_object();
    write_graded(json, outcome, ticked);
    json.key("answer").value(drill.answer);
    json.key("why").values(wire::diff_summaries(comparison, options)).end_object();
  });
}

}  // namespace glasshead::wasm
