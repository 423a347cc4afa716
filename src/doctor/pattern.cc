#include "doctor/pattern.h"

#include <algorithm>

#include "doctor/numbers.h"

namespace glasshead::doctor {
namespace {

std::string label(const AxisNames& names, index_t n) {
  return slot(n) < names.labels.size() ? names.labels[slot(n)] : std::to_string(n);
}

// Whether the wrong ones are exactly the checked ones for which `is_in` holds.
template <class IsIn>
bool is_exactly(const std::vector<index_t>& wrong, const std::vector<index_t>& checked,
                const IsIn& is_in) {
  std::vector<index_t> wanted;
  for (const index_t n : checked)
    if (is_in(n)) wanted.push_back(n);
  return wanted == wrong;
}

// A power of two of which `first` is the last multiple below `extent`: where a last, partial block
// begins.
std::string partial_block(index_t first, index_t extent) {
  for (const index_t block : {256, 128, 64, 32, 16, 8})
    if (first > 0 && first == extent / block * block && first != extent)
      return ", the last, partial block of " + std::to_string(block);
  return "";
}

}  // namespace

std::string describe_axis(const AxisNames& names, const std::vector<index_t>& wrong,
                          const std::vector<index_t>& checked, index_t extent) {
  if (wrong.empty() || wrong.size() == checked.size()) return "";
  const std::string many = names.many;
  const index_t first = wrong.front(), last = wrong.back();
  if (wrong.size() == 1) return std::string("only ") + names.one + " " + label(names, first);
  if (is_exactly(wrong, checked, [&](index_t n) { return n >= first; }))
    return many + " from " + label(names, first) + " on" + partial_block(first, extent);
  if (is_exactly(wrong, checked, [&](index_t n) { return n <= last; }))
    return many + " up to " + label(names, last);
  if (is_exactly(wrong, checked, [&](index_t n) { return n >= first && n <= last; }))
    return many + " " + label(names, first) + " to " + label(names, last);
  for (index_t m = 2; m <= std::min<index_t>(128, extent / 2); m = m < 8 ? m + 1 : m * 2)
    if (is_exactly(wrong, checked, [&](index_t n) { return n % m == first % m; }))
      return many + " that are " + std::to_string(first % m) + " modulo " + std::to_string(m);
  for (index_t m = 2; m <= std::min<index_t>(128, extent / 2); m = m < 8 ? m + 1 : m * 2)
    if (is_exactly(wrong, checked, [&](index_t n) { return n % m != 0; }))
      return "all " + many + " but the multiples of " + std::to_string(m);
  std::string text =
      std::to_string(wrong.size()) + " of " + std::to_string(checked.size()) + " " + many + ": ";
  for (std::size_t n = 0; n < std::min<std::size_t>(wrong.size(), 6); ++n)
    text += (n > 0 ? ", " : "") + label(names, wrong[n]);
  return text + (wrong.size() > 6 ? ", ..." : "");
}

}  // namespace glasshead::doctor
