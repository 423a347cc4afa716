#include "doctor/worksheet.h"

#include <cstdint>
#include <limits>

#include "wasm/calls.h"
#include "wasm/forms.h"

namespace glasshead::wasm {

std::optional<std::string> worksheet(Request& request, Session&) {
  Problems& problems = request.problems();
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

}  // namespace glasshead::wasm
