#include "wire/given.h"

#include "wire/case_builder.h"
#include "wire/case_values.h"
#include "wire/display.h"

namespace glasshead::wire {
namespace {

template <class Network, class Visit>
void each_attention(Network& network, const Visit& visit) {
  for (auto& block : network.blocks) {
    visit(block.attention);
    if (block.cross_attention) visit(*block.cross_attention);
  }
}

}  // namespace

std::optional<Case> with_mask(const Case& original, const Broadcast& allowed,
                              std::vector<Problem>& problems) {
  Case c = original;
  for (nn::Block& block : c.network.blocks) block.attention.options.mask = Mask::allowed(allowed);
  const std::size_t before = problems.size();
  CaseReader read(problems);
  check_case(c, read);
  read.finish();
  if (problems.size() > before) return std::nullopt;
  return c;
}

std::vector<Problem> empty_row_problems(const Case& c) {
  bool is_refused = false;
  each_attention(c.network, [&](const nn::Attention& attention) {
    is_refused = is_refused || attention.options.empty_row == EmptyRow::error;
  });
  std::vector<Problem> problems;
  if (!is_refused) return problems;
  for (const std::string& label : rows_without_keys(c))
    problems.push_back({"row " + escape_controls(label),
                        "has no allowed key, and softmax of nothing is undefined; allow it a key, "
                        "or choose --empty-row zero (its weights and output are then 0)"});
  return problems;
}

}  // namespace glasshead::wire
