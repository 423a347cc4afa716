// The mistakes that can be made on a case, and one of them beside the right run.
#include <cstddef>
#include <optional>
#include <utility>

#include "doctor/mistake_document.h"
#include "doctor/mistakes.h"
#include "wasm/calls.h"
#include "wasm/written.h"
#include "wire/document_compare.h"
#include "wire/document_json.h"

namespace glasshead::wasm {

std::optional<std::string> mistakes(Request& request, Session& session) {
  const EditedCase* edited = session.read(request);
  if (edited == nullptr) return std::nullopt;
  request.problems() = edited->refused();
  if (!request.problems().empty()) return std::nullopt;
  return written([&](wire::JsonWriter& json) {
    json.begin_object().key("mistakes").begin_array();
    for (const doctor::Mistake& mistake : doctor::mistakes()) {
      Problems problems;
      const auto run = doctor::run_mistake(mistake.id, edited->given(), problems);
      if (!run || !problems.empty()) continue;
      json.begin_object().key("id").value(mistake.id).key("title").value(mistake.title);
      json.key("hidden_because").value(run->hidden_because).end_object();
    }
    json.end_array().end_object();
  });
}

namespace {

bool is_same_right_row(const std::vector<wire::Cell>& row) {
  return !row.empty() && row[0].text == "same";
}

// The wrong tables' cells get what the right ones say there.
void mark_wrong(wire::Document& document) {
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

}  // namespace

std::optional<std::string> mistake(Request& request, Session& session) {
  const std::string id = request.text("mistake", "");
  const wire::DocumentOptions options = document_options(request);
  const EditedCase* edited = session.read(request);
  if (edited == nullptr) return std::nullopt;
  Problems& problems = request.problems();
  problems = edited->refused();
  if (!problems.empty()) return std::nullopt;
  const wire::Case& c = edited->given();
  const std::optional<doctor::MistakenRun> found = doctor::run_mistake(id, c, problems);
  if (!found) return std::nullopt;
  const doctor::MistakenRun& run = *found;
  return written([&](wire::JsonWriter& json) {
    const doctor::Mistake& mistake = *run.chosen.mistake;
    json.begin_object().key("id").value(run.chosen.name()).key("title").value(mistake.title);
    json.key("done").value(mistake.done).key("tell_tale").value(mistake.tell_tale);
    json.key("cause").value(mistake.cause).key("fix").value(mistake.fix);
    json.key("fix_code").value(mistake.fix_code);
    json.key("hidden_because").value(run.hidden_because);
    json.key("stops_because").value(run.stops_because).key("document");
    wire::Document document = doctor::mistake_document(run, c, options);
    mark_wrong(document);
    wire::write_document_json(json, document);
    json.end_object();
  });
}

}  // namespace glasshead::wasm
