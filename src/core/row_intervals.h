// The parts of a mask that leave each row one interval of keys (causal, windows, key lengths,
// prefixes), put together once into one rule per batch entry:
//
//     begin(p) = max(0, p - left)
//     end(b,p) = min(kv_len, length[b], p + right + 1, max(prefix[b], p + 1))
//
//   RowIntervals rule(mask, kv_len);
//   KeyRange keys = rule.at(b, position);
//
// Neither end ever moves back as p grows, so of a set of rows the first and the last position
// decide whether all of them see a run of keys.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "glasshead/mask.h"

namespace glasshead {

// Keys [begin, end).
struct KeyRange {
  index_t begin = 0, end = 0;
  bool is_empty() const { return begin >= end; }
};

// The smallest range that has the keys of both.
inline KeyRange united(KeyRange a, KeyRange b) {
  if (b.is_empty()) return a;
  if (a.is_empty()) return b;
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

// Windows may be as wide as index_t allows: their ends stop at the ends of index_t.
inline index_t saturating_add(index_t a, index_t b) {
  index_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? std::numeric_limits<index_t>::max() : std::numeric_limits<index_t>::min();
}
inline index_t saturating_sub(index_t a, index_t b) {
  index_t difference = 0;
  if (!__builtin_sub_overflow(a, b, &difference)) return difference;
  return b > 0 ? std::numeric_limits<index_t>::min() : std::numeric_limits<index_t>::max();
}

class RowIntervals {
 public:
  RowIntervals() = default;
  RowIntervals(const Mask& mask, index_t kv_len);

  // Some part narrows the interval: without one, every row has [0, kv_len).
  bool narrows() const { return narrows_; }

  // As the formula says; begin >= end where the row has no key.
  KeyRange at(index_t b, index_t position) const {
    const index_t after = saturating_add(position, 1);
    const index_t begin = std::max<index_t>(0, saturating_sub(position, left_));
    const index_t end = std::min(of(end_, b), saturating_add(after, right_));
    return {begin, std::min(end, std::max(of(prefix_, b), after))};
  }

 private:
  static constexpr index_t kNoLimit = std::numeric_limits<index_t>::max();

  static index_t of(const std::vector<index_t>& list, index_t b) {
    return list[list.size() == 1 ? 0 : static_cast<std::size_t>(b)];
  }
  static void narrow(std::vector<index_t>& list, const std::vector<index_t>& limits);

  bool narrows_ = false;
  index_t left_ = kNoLimit, right_ = kNoLimit;
  std::vector<index_t> end_{0};            // one for all, or one per batch entry
  std::vector<index_t> prefix_{kNoLimit};  // likewise
};

}  // namespace glasshead
