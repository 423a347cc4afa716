// Why a number is what it is: the derivation of a row's weights; the cells one cell came from.
#include <optional>
#include <string>
#include <vector>

#include "wasm/calls.h"
#include "wasm/written.h"
#include "wire/case_reader.h"
#include "wire/derive.h"
#include "wire/document_json.h"
#include "wire/document_tables.h"
#include "wire/explain.h"
#include "wire/provenance.h"
#include "wire/sequence.h"

namespace glasshead::wasm {

std::optional<std::string> why(Request& request, Session& session) {
  wire::DocumentOptions options = document_options(request);
  options.query = request.integer("query", 0, 0, wire::kMostExtent);
  options.head = request.integer("head", 0, 0, wire::kMostExtent);
  const EditedCase* edited = session.read(request);
  if (edited == nullptr) return std::nullopt;
  request.problems() = edited->refused();
  if (!request.problems().empty()) return std::nullopt;
  std::string bytes;
  wire::write_explain_json(edited->given(), edited->trace(), options,
                           [&](std::string_view piece) { bytes += piece; });
  return bytes;
}

namespace {

// The ids of a region's cells.
void write_cells(wire::JsonWriter& json, const wire::Case& c, const Trace& trace,
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

// A cell of a request, by its place as ids have it.
wire::Region read_cell(Request& request) {
  constexpr index_t kNone = -1;
  wire::Region cell;
  cell.tap = request.text("tap", "");
  cell.head = request.integer("head", kNone, kNone, wire::kMostExtent);
  cell.row = request.integer("row", 0, 0, wire::kMostExtent);
  cell.column = request.integer("column", 0, 0, wire::kMostExtent);
  return cell;
}

// Ids count a row from the start of its sequence, traces from that of their own run.
void count_from_run(wire::Region& cell, const EditedCase& edited) {
  const Trace& trace = edited.trace();
  if (trace.steps.empty() || wire::is_key_side(wire::leaf_of(cell.tap))) return;
  if (trace.find(cell.tap) != nullptr)
    cell.row -= wire::Sequence(edited.lenient(), trace).first_row(cell.tap);
}

}  // namespace

std::optional<std::string> origin(Request& request, Session& session) {
  wire::Region cell = read_cell(request);
  const EditedCase* edited = session.read(request);
  if (edited == nullptr) return std::nullopt;
  const Trace& trace = edited->trace();
  count_from_run(cell, *edited);
  const auto& [tap, head, row, column] = cell;
  return written([&](wire::JsonWriter& json) {
    json.begin_object().key("from");
    write_cells(json, edited->lenient(), trace, wire::provenance(trace, tap, head, row, column));
    json.key("feeds");
    write_cells(json, edited->lenient(), trace, wire::fed_by(trace, tap, head, row, column));
    json.end_object();
  });
}

std::optional<std::string> derive(Request& request, Session& session) {
  const wire::DocumentOptions options = document_options(request);
  wire::Region cell = read_cell(request);
  const EditedCase* edited = session.read(request);
  if (edited == nullptr) return std::nullopt;
  count_from_run(cell, *edited);
  const std::optional<wire::Derivation> derivation =
      wire::derive(edited->lenient(), edited->trace(), cell, options.print.decimals);
  return written([&](wire::JsonWriter& json) {
    if (!derivation) {
      json.null();
      return;
    }
    json.begin_object().key("formula").value(derivation->formula);
    json.key("sentence").value(derivation->sentence);
    json.key("lines").values(derivation->lines).key("terms").begin_array();
    for (const wire::DerivedTerm& term : derivation->terms) {
      json.begin_object().key("label").value(term.label).key("left").value(term.left);
      json.key("right").value(term.right).key("product").value(term.product);
      json.key("running").value(term.running).key("exact").value(wire::exact_text(term.exact));
      json.key("share").value(wire::exact_text(term.share)).end_object();
    }
    json.end_array().end_object();
  });
}

}  // namespace glasshead::wasm
