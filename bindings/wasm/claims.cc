// What a case says of itself, checked: its claims, each with the edit that it is about.
#include <optional>
#include <string>

#include "wasm/calls.h"
#include "wasm/view_case.h"
#include "wasm/written.h"
#include "wire/case_values.h"
#include "wire/document_build.h"
#include "wire/sequence.h"

namespace glasshead::wasm {
namespace {

// The first of the cells that a claim is about: "cell-weights-0-2"; empty where it is about a
// number that no cell shows, or about all of a matrix.
std::string first_cell(const wire::Claim& claim, const EditedCase& original) {
  const TraceTensor* value = original.trace().find(claim.tap);
  if (value == nullptr || claim.index.empty() || value->shape.size() < 2) return {};
  std::vector<index_t> index = claim.index;
  index.resize(value->shape.size(), 0);
  const std::size_t rank = index.size();
  if (!wire::is_key_side(wire::leaf_of(claim.tap)))
    index[rank - 2] += wire::Sequence(original.lenient(), original.trace()).first_row(claim.tap);
  std::string id = "cell-" + claim.tap;
  if (rank > 2) id += "-h" + std::to_string(index[rank - 3]);
  return id + "-" + std::to_string(index[rank - 2]) + "-" + std::to_string(index[rank - 1]);
}

}  // namespace

std::optional<std::string> claims(Request& request, Session& session) {
  const EditedCase* read = session.read(request);
  if (read == nullptr) return std::nullopt;
  const EditedCase* original = session.edit({}, request.problems());
  const wire::Case& c = original->given();
  return written([&](wire::JsonWriter& json) {
    json.begin_object().key("claims").begin_array();
    for (const wire::Claim& claim : c.claims) {
      const wire::ClaimResult result = wire::check_claim(c, claim);
      json.begin_object().key("says").value(claim.says).key("holds").value(result.holds);
      json.key("found").value(result.found).key("cell").value(first_cell(claim, *original));
      Problems problems;
      const std::optional<wire::Case> edited = wire::edit_case(c, claim.with, problems);
      if (edited && can_be_made(claim.with)) write_edit(json.key("edit"), c, *edited, claim.with);
      json.end_object();
    }
    json.end_array().end_object();
  });
}

}  // namespace glasshead::wasm
