// Any bytes as a case: parsed, or refused with a reason; what parses and is small is run.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "glasshead/error.h"
#include "small_case.h"
#include "wire/case.h"
#include "wire/case_values.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace glasshead;
  std::vector<Problem> problems;
  const auto c = wire::parse_case({reinterpret_cast<const char*>(data), size}, "fuzz", problems);
  if (c.has_value() != problems.empty()) std::abort();  // refused without a reason, or both
  for (const Problem& problem : problems)
    if (problem.where.empty() || problem.what.empty()) std::abort();
  if (!c || !fuzz::is_small(*c)) return 0;
  try {
    if (wire::run_case(*c).steps.size() < wire::case_steps(*c).size()) std::abort();
    for (const wire::Claim& claim : c->claims) wire::check_claim(*c, claim);
  } catch (const Error&) {
    // Rows with no allowed key are found when the case runs.
  }
  return 0;
}
