#include "wasm/call.h"

#include <optional>
#include <utility>

#include "wasm/calls.h"
#include "wasm/written.h"
#include "wire/case_json.h"

namespace glasshead::wasm {
namespace {

std::optional<std::string> answer(const wire::JsonTree& tree, Session& session,
                                  Problems& problems) {
  Request request(tree.root(), problems);
  const std::string name = request.text("call", "");
  if (!problems.empty()) return std::nullopt;
  std::string names;
  for (const NamedCall& known : calls()) {
    if (known.name == name) return known.call(request, session);
    names += (names.empty() ? "" : " ") + std::string(known.name);
  }
  problems.push_back({"call", "\"" + wire::excerpt(name) + "\" is none of " + names});
  return std::nullopt;
}

}  // namespace

Answer call(std::string_view request, Session& session) {
  Problems problems;
  std::optional<std::string> bytes;
  const std::optional<wire::JsonTree> tree = wire::JsonTree::parse(request, problems);
  for (Problem& problem : problems) problem.where = "request";
  if (tree && !tree->root().is(wire::JsonKind::object))
    problems.push_back({"request", "not a JSON object"});
  if (problems.empty()) bytes = answer(*tree, session, problems);
  if (bytes && problems.empty()) return {true, std::move(*bytes)};
  return {false, written([&](wire::JsonWriter& json) {
            json.begin_object().key("problems");
            write_problems(json, problems);
            json.end_object();
          })};
}

}  // namespace glasshead::wasm
