// Any bytes as a case: parsed, or refused with a reason; what parses and is small is run.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "glasshead/error.h"
#include "wire/case.h"
#include "wire/case_values.h"

namespace {

// Whether a run is a matter of microseconds: a few thousand pairs, short vectors.
bool is_small(const glasshead::wire::Case& c) {
  constexpr std::size_t kMostRows = 64;
  constexpr std::size_t kMostNumbers = 4096;
  constexpr glasshead::index_t kMostTokens = 8;
  std::size_t numbers = 0;
  for (const auto& input : c.inputs) numbers += input.second.values.size();
  return numbers <= kMostNumbers && c.query_labels.size() <= kMostRows &&
         c.key_labels.size() <= kMostRows && c.generate <= kMostTokens &&
         c.network.blocks.size() <= 4;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace glasshead;
  std::vector<Problem> problems;
  const auto c = wire::parse_case({reinterpret_cast<const char*>(data), size}, "fuzz", problems);
  if (c.has_value() != problems.empty()) std::abort();  // refused without a reason, or both
  for (const Problem& problem : problems)
    if (problem.where.empty() || problem.what.empty()) std::abort();
  if (!c || !is_small(*c)) return 0;
  try {
    if (wire::run_case(*c).steps.size() < wire::case_steps(*c).size()) std::abort();
    for (const wire::Claim& claim : c->claims) wire::check_claim(*c, claim);
  } catch (const Error&) {
    // Rows with no allowed key are found when the case runs.
  }
  return 0;
}
