#include "wire/sweep.h"

#include "wasm/calls.h"

namespace glasshead::wasm {

std::optional<std::string> sweep(Request& request, Session&) {
  Problems& problems = request.problems();
  const std::string text = request.text("sweep", ""), format = request.text("format", "json");
  request.refuse_others();
  if (format != "json" && format != "svg")
    problems.push_back({"format", "\"" + format + "\" is neither json nor svg"});
  const auto options = wire::parse_sweep(text, problems);
  if (!options || !problems.empty()) return std::nullopt;
  const auto points = wire::run_sweep(*options);
  if (format == "svg") return wire::sweep_svg(*options, points);
  std::string bytes;
  wire::write_sweep_json(*options, points, [&](std::string_view piece) { bytes += piece; });
  return bytes + "\n";
}

}  // namespace glasshead::wasm
