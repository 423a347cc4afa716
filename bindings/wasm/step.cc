// A typed number moved by a typed step, in the digits of both.
#include <algorithm>
#include <optional>

#include "wasm/calls.h"
#include "wasm/written.h"
#include "wire/case_reader.h"
#include "wire/decimal.h"

namespace glasshead::wasm {

std::optional<std::string> step(Request& request, Session&) {
  const std::string text = request.text("text", ""), by = request.text("by", "");
  request.refuse_others();
  const std::optional<double> from = wire::finite_number(text), move = wire::finite_number(by);
  if (!from || !move)
    request.problems().push_back({"step", "\"" + (from ? by : text) + "\" is not a finite number"});
  if (!request.problems().empty()) return std::nullopt;
  const bool has_exponent = text.find_first_of("eE") != std::string::npos;
  const int decimals = std::max(wire::decimals_of(text), wire::decimals_of(by));
  std::string moved =
      has_exponent ? wire::shortest(*from + *move) : wire::fixed(*from + *move, decimals);
  if (!has_exponent && moved.find('.') != std::string::npos) {
    moved.erase(moved.find_last_not_of('0') + 1);
    if (moved.back() == '.') moved.pop_back();
  }
  return written(
      [&](wire::JsonWriter& json) { json.begin_object().key("text").value(moved).end_object(); });
}

}  // namespace glasshead::wasm
