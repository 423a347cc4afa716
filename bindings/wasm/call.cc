#include "wasm/call.h"

#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "doctor/mistake_document.h"
#include "doctor/worksheet.h"
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

using Json = nlohmann::json;
using Problems = std::vector<Problem>;

std::string text_of(const Json& request, const char* key, const char* otherwise) {
  const auto found = request.find(key);
  return found != request.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

index_t integer_of(const Json& request, const char* key, index_t otherwise) {
  const auto found = request.find(key);
  return found != request.end() && found->is_number_integer() ? found->get<index_t>() : otherwise;
}

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

wire::DocumentOptions options_of(const Json& request, const std::string& format,
                                 Problems& problems) {
  wire::DocumentOptions options;
  const index_t decimals = integer_of(request, "decimals", options.print.decimals);
  if (decimals < 0 || decimals > wire::kMaxDecimals)
    problems.push_back({"decimals", std::to_string(decimals) + "; 0 to 12 are possible"});
  options.print.decimals = static_cast<int>(decimals);
  options.print.is_full = format == "svg" || format == "csv";
  if (format == "svg") options.map_above = wire::kSvgCells;
  return options;
}

std::optional<std::string> trace(const Json& request, Problems& problems) {
  const std::string format = text_of(request, "format", "json");
  const wire::DocumentOptions options = options_of(request, format, problems);
  const std::optional<wire::Case> c =
      wire::parse_case(text_of(request, "case", ""), text_of(request, "name", "case"), problems);
  if (!c || !problems.empty()) return std::nullopt;
  problems = wire::empty_row_problems(*c);
  if (!problems.empty()) return std::nullopt;

  if (const std::string mistake = text_of(request, "mistake", ""); !mistake.empty()) {
    const auto run = doctor::run_mistake(mistake, *c, problems);
    if (!run) return std::nullopt;
    if (format != "json")
      return rendered(doctor::mistake_document(*run, *c, options), format, problems);
    return written([&](const auto& sink) { doctor::write_mistake_json(*run, *c, options, sink); });
  }
  if (const index_t decimals = integer_of(request, "by_hand", -1); decimals >= 0) {
    if (decimals > wire::kMaxDecimals) {
      problems.push_back({"by_hand", std::to_string(decimals) + "; 0 to 12 are possible"});
      return std::nullopt;
    }
    const wire::ByHand hand = wire::run_by_hand(*c, {static_cast<int>(decimals), false});
    if (format != "json")
      return rendered(wire::by_hand_document(*c, hand, options), format, problems);
    return written([&](const auto& sink) { wire::write_by_hand_json(*c, hand, sink); });
  }
  if (format != "json")
    return rendered(wire::build_document(*c, wire::run_case(*c), options), format, problems);
  return written([&](const auto& sink) { wire::write_trace_json(*c, options, sink); });
}

std::optional<std::string> sweep(const Json& request, Problems& problems) {
  const auto options = wire::parse_sweep(text_of(request, "sweep", ""), problems);
  if (!options) return std::nullopt;
  const auto points = wire::run_sweep(*options);
  return written([&](const auto& sink) { wire::write_sweep_json(*options, points, sink); });
}

std::optional<std::string> worksheet(const Json& request, Problems& problems) {
  doctor::WorksheetOptions options;
  options.seed = static_cast<std::uint64_t>(integer_of(request, "seed", 1));
  options.level = static_cast<int>(integer_of(request, "level", 1));
  const auto sheet = doctor::make_worksheet(options, problems);
  if (!sheet) return std::nullopt;
  const std::string format = text_of(request, "format", "json");
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
    const std::string name = text_of(parsed, "call", "");
    if (name == "trace")
      bytes = trace(parsed, problems);
    else if (name == "sweep")
      bytes = sweep(parsed, problems);
    else if (name == "worksheet")
      bytes = worksheet(parsed, problems);
    else
      problems.push_back({"call", "\"" + name + "\" is none of trace sweep worksheet"});
  }
  if (bytes && problems.empty()) return {true, std::move(*bytes)};
  return {false, problems_json(problems)};
}

}  // namespace glasshead::wasm
