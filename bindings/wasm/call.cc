#include "wasm/call.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
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

// The fields of a request. Nothing falls back in silence: a value of another kind, a number out of
// range and a field that the call does not have are problems.
class Request {
 public:
  Request(const Json& json, Problems& problems) : json_(json), problems_(problems) {}

  std::string text(const char* key, const char* otherwise) {
    const Json* found = find(key);
    if (found == nullptr) return otherwise;
    if (found->is_string()) return found->get<std::string>();
    problems_.push_back({key, "not a text"});
    return otherwise;
  }

  index_t integer(const char* key, index_t otherwise, index_t least, index_t most) {
    const Json* found = find(key);
    if (found == nullptr) return otherwise;
    const bool is_beyond = found->is_number_unsigned() &&
                           found->get<std::uint64_t>() > static_cast<std::uint64_t>(most);
    if (!found->is_number_integer()) {
      problems_.push_back({key, "not a whole number"});
    } else if (is_beyond || found->get<index_t>() < least || found->get<index_t>() > most) {
      problems_.push_back({key, found->dump() + "; " + std::to_string(least) + " to " +
                                    std::to_string(most) + " are possible"});
    } else {
      return found->get<index_t>();
    }
    return otherwise;
  }

  // To be called when all fields of the call have been asked for.
  void refuse_others() {
    for (const auto& [key, value] : json_.items()) {
      if (std::find(asked_.begin(), asked_.end(), key) == asked_.end())
        problems_.push_back({key, "no such field in this call"});
    }
  }

 private:
  const Json* find(const char* key) {
    asked_.emplace_back(key);
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }

  const Json& json_;
  Problems& problems_;
  std::vector<std::string> asked_;
};

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
  const std::string text = request.text("case", ""), name = request.text("name", "case"),
                    mistake = request.text("mistake", "");
  constexpr index_t kNotByHand = -1;
  const index_t by_hand = request.integer("by_hand", kNotByHand, 0, wire::kMaxDecimals);
  request.refuse_others();
  const std::optional<wire::Case> c = wire::parse_case(text, name, problems);
  if (!c || !problems.empty()) return std::nullopt;
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
    else if (problems.empty())
      problems.push_back({"call", "\"" + name + "\" is none of trace sweep worksheet"});
  }
  if (bytes && problems.empty()) return {true, std::move(*bytes)};
  return {false, problems_json(problems)};
}

}  // namespace glasshead::wasm
