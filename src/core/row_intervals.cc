#include "core/row_intervals.h"

#include <variant>

namespace glasshead {

void RowIntervals::narrow(std::vector<index_t>& list, const std::vector<index_t>& limits) {
  if (limits.empty()) return;  // a batch of none
  if (list.size() < limits.size()) list.assign(limits.size(), list[0]);
  for (std::size_t b = 0; b < list.size(); ++b)
    list[b] = std::min(list[b], limits[limits.size() == 1 ? 0 : b]);
}

RowIntervals::RowIntervals(const Mask& mask, index_t kv_len) : end_{kv_len} {
  for (const Mask::Part& part : mask.parts()) {
    if (std::holds_alternative<Mask::Causal>(part)) {
      right_ = std::min<index_t>(right_, 0);
    } else if (const auto* window = std::get_if<Mask::Window>(&part)) {
      if (window->left) left_ = std::min(left_, *window->left);
      if (window->right) right_ = std::min(right_, *window->right);
    } else if (const auto* lengths = std::get_if<Mask::KeyLengths>(&part)) {
      narrow(end_, lengths->lengths);
    } else if (const auto* prefix = std::get_if<Mask::Prefix>(&part)) {
      // min over prefixes of max(length, p + 1) is max(the least length, p + 1).
      narrow(prefix_, prefix->lengths);
    } else {
      continue;
    }
    narrows_ = true;
  }
}

}  // namespace glasshead
