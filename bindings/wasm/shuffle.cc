// The tokens in the opposite order: the edit that does it, and whether the outputs move along, as
// those of attention without mask and positions do.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "wasm/calls.h"
#include "wasm/view_case.h"
#include "wasm/written.h"
#include "wire/decimal.h"
#include "wire/document_build.h"
#include "wire/document_tables.h"

namespace glasshead::wasm {
namespace {

// The rows of an input in the opposite order, in the digits they are written in.
wire::Edit::Set turned(const wire::Case& c, const std::string& tap, const TraceTensor& value) {
  const wire::Matrices matrices = wire::matrices_of(value.shape);
  wire::Edit::Set set;
  set.matrix = tap;
  for (index_t m = 0; m < matrices.count; ++m)
    for (index_t i = 0; i < matrices.rows; ++i)
      for (index_t j = 0; j < matrices.columns; ++j) {
        const index_t from = matrices.rows - 1 - i;
        const auto n = static_cast<std::size_t>((m * matrices.rows + from) * matrices.columns + j);
        const std::string_view text = wire::given_text(c, tap, n);
        set.values.push_back(value.values[n]);
        set.texts.push_back(text.empty() ? wire::shortest(value.values[n]) : std::string(text));
      }
  return set;
}

bool is_of_tokens(const std::string& tap) {
  return tap == "X" || tap == "q" || tap == "k" || tap == "v";
}

// The largest |out of row n - the other's out of row n from the end|.
double largest_difference(const TraceTensor& a, const TraceTensor& b) {
  const wire::Matrices matrices = wire::matrices_of(a.shape);
  double largest = 0;
  for (index_t m = 0; m < matrices.count; ++m)
    for (index_t i = 0; i < matrices.rows; ++i)
      for (index_t j = 0; j < matrices.columns; ++j) {
        const auto column = static_cast<std::size_t>(j);
        const double difference =
            wire::row_of(a, m, i)[column] - wire::row_of(b, m, matrices.rows - 1 - i)[column];
        largest = std::max(largest, std::fabs(difference));
      }
  return largest;
}

constexpr double kRounding = 1e-12;  // sums run in key order, so their last bits may differ

}  // namespace

std::optional<std::string> shuffle(Request& request, Session& session) {
  Problems& problems = request.problems();
  const EditedCase* read = session.read(request);
  if (read == nullptr) return std::nullopt;
  const EditedCase* original = session.edit({}, problems);
  const wire::Case& c = original->given();
  wire::Edit edit;
  for (const auto& [tap, value] : c.inputs)
    if (is_of_tokens(tap)) edit.set.push_back(turned(c, tap, value));
  const TraceTensor* before = original->trace().find("out");
  const bool is_square = c.query_labels.size() == c.key_labels.size();
  if (edit.set.empty() || before == nullptr || !is_square || c.feed > 0 || c.generate > 0) {
    problems.push_back({"shuffle", "the case has no rows of tokens that attend to each other"});
    return std::nullopt;
  }
  const std::optional<EditedCase> edited = session.apart(edit, problems);
  if (!edited) return std::nullopt;
  const double difference = largest_difference(edited->trace().at("out"), *before);
  const bool moves_along = difference <= kRounding;
  return written([&](wire::JsonWriter& json) {
    json.begin_object().key("edit");
    write_edit(json, c, edited->given(), edit);
    json.key("moves_along").value(moves_along);
    json.key("difference").value(wire::shortest(difference));
    const std::string words =
        moves_along ? "The outputs move along with their rows: nothing here knows of positions. "
                      "Largest difference " +
                          wire::shortest(difference) + "."
                    : "The outputs do not just move along: the largest differs by " +
                          wire::print_number(difference, 4) +
                          ", as the mask or the positions treat the rows by their places.";
    json.key("words").value(words).end_object();
  });
}

}  // namespace glasshead::wasm
