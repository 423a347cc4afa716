// The command's trace: the same bytes.
#include <optional>
#include <string>

#include "doctor/mistake_document.h"
#include "wasm/calls.h"
#include "wasm/forms.h"
#include "wasm/written.h"
#include "wire/by_hand.h"
#include "wire/render.h"
#include "wire/trace_json.h"

namespace glasshead::wasm {
namespace {

template <class Write>  // write(sink)
std::string lines(Write write) {
  std::string bytes;
  write([&](std::string_view piece) { bytes += piece; });
  return bytes + "\n";
}

std::optional<std::string> mistaken(const std::string& mistake, const wire::Case& c,
                                    const std::string& format, const wire::DocumentOptions& options,
                                    Problems& problems) {
  const auto run = doctor::run_mistake(mistake, c, problems);
  if (!run) return std::nullopt;
  if (format != "json")
    return rendered(doctor::mistake_document(*run, c, options), format, problems);
  return lines([&](const auto& sink) { doctor::write_mistake_json(*run, c, options, sink); });
}

}  // namespace

std::optional<std::string> trace(Request& request, Session& session) {
  Problems& problems = request.problems();
  const std::string format = request.text("format", "json");
  wire::DocumentOptions options = document_options(request);
  options.print.is_full = format == "svg" || format == "csv";
  if (format == "svg") options.map_above = wire::kSvgCells;
  const std::string mistake = request.text("mistake", "");
  constexpr index_t kNotByHand = -1;
  const index_t by_hand = request.integer("by_hand", kNotByHand, 0, wire::kMaxDecimals);
  const EditedCase* edited = session.read(request);
  if (edited == nullptr) return std::nullopt;
  problems = edited->refused();
  if (!problems.empty()) return std::nullopt;

  const wire::Case& c = edited->given();
  if (!mistake.empty()) return mistaken(mistake, c, format, options, problems);
  if (by_hand != kNotByHand) {
    const wire::ByHand hand = wire::run_by_hand(c, {static_cast<int>(by_hand), false});
    if (format != "json")
      return rendered(wire::by_hand_document(c, hand, options), format, problems);
    return lines([&](const auto& sink) { wire::write_by_hand_json(c, hand, sink); });
  }
  if (format != "json")
    return rendered(wire::build_document(c, edited->trace(), options), format, problems);
  return lines([&](const auto& sink) { wire::write_trace_json(c, options, sink); });
}

}  // namespace glasshead::wasm
