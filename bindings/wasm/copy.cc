// An edited case as a command or a program, to run elsewhere: "as": command, numpy, pytorch, cpp.
// Of the command "mistake" and "by_hand" too.
#include <optional>
#include <string>
#include <vector>

#include "wasm/calls.h"
#include "wasm/written.h"
#include "wire/code.h"
#include "wire/command_line.h"

namespace glasshead::wasm {

std::optional<std::string> copy(Request& request, Session& session) {
  Problems& problems = request.problems();
  const std::string as = request.text("as", "command");
  const std::string mistake = request.text("mistake", "");
  constexpr index_t kNotByHand = -1;
  const index_t by_hand = request.integer("by_hand", kNotByHand, 0, wire::kMaxDecimals);
  const EditedCase* edited = session.read(request);
  if (edited == nullptr) return std::nullopt;
  std::optional<std::string> text;
  if (as == "command") {
    std::vector<std::string> more;
    if (!mistake.empty()) more = {"--mistake", mistake};
    if (mistake.empty() && by_hand != kNotByHand) more = {"--by-hand", std::to_string(by_hand)};
    text = wire::command_line(edited->original(), edited->edit(), more, problems);
  } else {
    problems = edited->refused();
    if (problems.empty())
      text = wire::attention_code(edited->given(), edited->trace(), as, problems);
  }
  if (!text) return std::nullopt;
  return written(
      [&](wire::JsonWriter& json) { json.begin_object().key("text").value(*text).end_object(); });
}

}  // namespace glasshead::wasm
