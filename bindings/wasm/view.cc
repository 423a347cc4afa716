// Everything that is shown of an edited case:
//
//   view    "before": an edit; what moved since it. "by_hand": decimals; the numbers as on paper
//           beside the exact ones. "decimals". "since": the serial number of the view that the page
//           holds
//
// glasshead.view/1. Where "since" names the view answered last and the tables are the same, only
// what changed is answered (view_delta.h), with "since" among its members; else all.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "wasm/calls.h"
#include "wasm/view_by_hand.h"
#include "wasm/view_case.h"
#include "wasm/view_delta.h"
#include "wasm/written.h"
#include "wire/diff.h"
#include "wire/document_compare.h"
#include "wire/document_json.h"

namespace glasshead::wasm {
namespace {

using wire::Document;
using wire::DocumentOptions;
using wire::JsonWriter;

constexpr index_t kNotByHand = -1;

struct ViewOptions {
  DocumentOptions document;
  index_t by_hand = kNotByHand;
  std::optional<wire::Edit> before;
  index_t since = 0;
};

ViewOptions view_options(Request& request) {
  ViewOptions options;
  options.document = document_options(request);
  options.by_hand = request.integer("by_hand", kNotByHand, 0, wire::kMaxDecimals);
  if (const wire::JsonValue before = request.object("before"))
    options.before = read_edit(before, "before", request.problems());
  options.since = request.integer("since", 0, 0, index_t{1} << 52);
  return options;
}

// Up to the mask: what follows it is undefined in a row with no allowed key.
void drop_after_mask(Document& document) {
  const auto is_masked = [](const wire::Section& section) {
    return section.title.ends_with("masked");
  };
  const auto masked = std::find_if(document.sections.begin(), document.sections.end(), is_masked);
  if (masked != document.sections.end())
    document.sections.erase(masked + 1, document.sections.end());
  document.checks.clear();
  document.footnotes.clear();
}

void write_moved(JsonWriter& json, const wire::Moved& moved) {
  json.begin_object().key("moved").value(moved.moved).key("of").value(moved.of);
  json.key("words").value(std::to_string(moved.moved) + " of " + std::to_string(moved.of) +
                          " cells changed");
  json.end_object();
}

// The exact document, its cells marked with what they were before; writes "moved" and "why".
void compare_with(JsonWriter& json, Document& document, const EditedCase& was, const EditedCase& is,
                  const DocumentOptions& options) {
  json.key("moved");
  write_moved(json, wire::mark_moved(document, was.document(options.print.decimals)));
  const wire::Comparison comparison{was.lenient(), is.given(), was.trace(), is.trace()};
  json.key("why").values(wire::diff_summaries(comparison, options));
}

// "document", "mask" and "steps", whole or as what changed of `shown`, which they then are.
void write_shown(JsonWriter& json, Document document, const Trace& trace, bool is_whole,
                 ShownView& shown) {
  std::string mask = written([&](JsonWriter& inner) { write_mask(inner, trace); });
  std::string steps = written([&](JsonWriter& inner) { write_steps(inner, trace); });
  json.key("document");
  if (is_whole)
    wire::write_document_json(json, document);
  else
    write_changes(json, document, shown.document);
  if (is_whole || mask != shown.mask) json.key("mask").raw(mask);
  if (is_whole || steps != shown.steps) json.key("steps").raw(steps);
  shown.document = std::move(document);
  shown.mask = std::move(mask);
  shown.steps = std::move(steps);
}

}  // namespace

std::optional<std::string> view(Request& request, Session& session) {
  const ViewOptions options = view_options(request);
  Problems& problems = request.problems();
  const EditedCase* edited = session.read(request);
  if (edited == nullptr) return std::nullopt;
  const wire::Case& c = edited->lenient();
  const bool is_refused = !edited->refused().empty();
  const bool is_one_run = c.feed == 0 && c.generate == 0;

  const EditedCase* was = nullptr;
  if (options.before && !is_refused) was = session.edit(*options.before, problems);
  if (!problems.empty()) return std::nullopt;

  Document document = edited->document(options.document.print.decimals);
  ShownView& shown = session.shown();
  return written([&](JsonWriter& json) {
    json.begin_object().key("schema").value("glasshead.view/1").key("refused");
    write_problems(json, edited->refused());
    if (is_refused)
      drop_after_mask(document);
    else if (options.by_hand != kNotByHand && is_one_run)
      show_by_hand(json, document, *edited, options.document, static_cast<int>(options.by_hand),
                   problems);
    else if (was != nullptr)
      compare_with(json, document, *was, *edited, options.document);
    const bool is_whole = options.since == 0 || options.since != shown.serial ||
                          !has_same_form(document, shown.document);
    if (is_whole)
      write_case(json, *edited);
    else
      json.key("since").value(options.since);
    json.key("serial").value(++shown.serial).key("scale");
    write_scale(json, edited->trace(), options.document.print.decimals);
    write_shown(json, std::move(document), edited->trace(), is_whole, shown);
    json.end_object();
  });
}

}  // namespace glasshead::wasm
