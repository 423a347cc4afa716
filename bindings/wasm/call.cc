#include "wasm/call.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "doctor/mistake_document.h"
#include "doctor/worksheet.h"
#include "wasm/page.h"
#include "wasm/request.h"
#include "wire/by_hand.h"
#include "wire/case.h"
#include "wire/document_build.h"
#include "wire/given.h"
#include "wire/json_writer.h"
#include "wire/render.h"
#include "wire/sweep.h"
#include "wire/trace_json.h"

namespace glasshead::wasm {
namespace {

template <class Write>  // write(sink)
std::string written(Write write) {
  std::string bytes;
  write([&](std::string_view piece) { bytes += piece; });
  return bytes + "\n";
}

std::optional<std::string> rendered(const wire::Document& document, const std::string& format,
                                    Problems& problems) {
  if (format == "text") return wire::to_text(document);
  if (format == "md") return wire::to_markdown(document);
  if (format == "latex") return wire::to_latex(document);
  if (format == "html") return wire::to_html(document);
  if (format == "svg") return wire::to_svg(document);
  if (format == "csv") return wire::to_csv(document);
  problems.push_back({"format", "\"" + format + "\" is none of json text md latex html svg csv"});
  return std::nullopt;
}

wire::DocumentOptions options_of(Request& request, const std::string& format) {
  wire::DocumentOptions options;
  options.print.decimals =
      static_cast<int>(request.integer("decimals", options.print.decimals, 0, wire::kMaxDecimals));
  options.print.is_full = format == "svg" || format == "csv";
  if (format == "svg") options.map_above = wire::kSvgCells;
  return options;
}

std::optional<std::string> trace(Request& request, Problems& problems) {
  const std::string format = request.text("format", "json");
  const wire::DocumentOptions options = options_of(request, format);
  const std::string mistake = request.text("mistake", "");
  constexpr index_t kNotByHand = -1;
  const index_t by_hand = request.integer("by_hand", kNotByHand, 0, wire::kMaxDecimals);
  const std::optional<ReadCase> read = read_case(request);
  if (!read) return std::nullopt;
  const wire::Case* const c = &read->edited;
  problems = wire::empty_row_problems(*c);
  if (!problems.empty()) return std::nullopt;

  if (!mistake.empty()) {
    const auto run = doctor::run_mistake(mistake, *c, problems);
    if (!run) return std::nullopt;
    if (format != "json")
      return rendered(doctor::mistake_document(*run, *c, options), format, problems);
    return written([&](const auto& sink) { doctor::write_mistake_json(*run, *c, options, sink); });
  }
  if (by_hand != kNotByHand) {
    const wire::ByHand hand = wire::run_by_hand(*c, {static_cast<int>(by_hand), false});
    if (format != "json")
      return rendered(wire::by_hand_document(*c, hand, options), format, problems);
    return written([&](const auto& sink) { wire::write_by_hand_json(*c, hand, sink); });
  }
  if (format != "json")
    return rendered(wire::build_document(*c, wire::run_case(*c), options), format, problems);
  return written([&](const auto& sink) { wire::write_trace_json(*c, options, sink); });
}

std::optional<std::string> sweep(Request& request, Problems& problems) {
  const std::string text = request.text("sweep", "");
  request.refuse_others();
  const auto options = wire::parse_sweep(text, problems);
  if (!options || !problems.empty()) return std::nullopt;
  const auto points = wire::run_sweep(*options);
  return written([&](const auto& sink) { wire::write_sweep_json(*options, points, sink); });
}

std::optional<std::string> worksheet(Request& request, Problems& problems) {
  doctor::WorksheetOptions options;
  constexpr index_t kMostSeed = std::numeric_limits<index_t>::max();
  options.seed = static_cast<std::uint64_t>(request.integer("seed", 1, 0, kMostSeed));
  options.level = static_cast<int>(request.integer("level", 1, 0, std::numeric_limits<int>::max()));
  const std::string format = request.text("format", "json");
  request.refuse_others();
  if (!problems.empty()) return std::nullopt;
  const auto sheet = doctor::make_worksheet(options, problems);
  if (!sheet) return std::nullopt;
  if (format == "json") return doctor::worksheet_json(*sheet, true);
  return rendered(doctor::sheet_document(*sheet), format, problems);
}

std::string problems_json(const Problems& problems) {
  std::string bytes;
  wire::JsonWriter writer([&](std::string_view piece) { bytes += piece; });
  writer.begin_object().key("problems").begin_array();
  for (const Problem& problem : problems) {
    writer.begin_object();
    writer.key("where").value(problem.where).key("what").value(problem.what);
    writer.end_object();
  }
  writer.end_array().end_object();
  writer.flush();
  return bytes;
}

}  // namespace

Answer call(std::string_view request) {
  Problems problems;
  std::optional<std::string> bytes;
  const Json parsed = Json::parse(request, nullptr, false);
  if (!parsed.is_object()) {
    problems.push_back({"request", "not a JSON object"});
  } else {
    Request fields(parsed, problems);
    const std::string name = fields.text("call", "");
    if (name == "trace")
      bytes = trace(fields, problems);
    else if (name == "sweep")
      bytes = sweep(fields, problems);
    else if (name == "worksheet")
      bytes = worksheet(fields, problems);
    else if (const PageCall page = find_page_call(name))
      bytes = page(fields);
    else if (problems.empty())
      problems.push_back({"call", "\"" + name +
                                      "\" is none of trace sweep worksheet view why origin "
                                      "mistakes grade step"});
  }
  if (bytes && problems.empty()) return {true, std::move(*bytes)};
  return {false, problems_json(problems)};
}

}  // namespace glasshead::wasm
