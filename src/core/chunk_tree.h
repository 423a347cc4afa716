// The fixed binary tree in which the states of chunks are merged: a stack, one node per level, like
// the digits of a binary counter. Node c of level 0 is chunk c; a missing node (no visible key) is
// an identity and is never merged.
//
//   ChunkTree tree(levels);
//   for (c in chunks, ascending, none left out) tree.push(c, state or kMissing, merge);
//   int whole = tree.finish(merge);            // kMissing: no chunk had a visible key
//
// States are numbers of the caller's; merge(x, y) puts y, the later one, into x, after which y is
// free. A state pushed belongs to the tree until it is merged into another or returned.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/arithmetic.h"

namespace glasshead {

inline constexpr int kMissing = -1;

// Of a tree over so many chunks or nodes.
inline int tree_levels(index_t nodes) {
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(nodes <= 1 ? 0 : nodes - 1))) +
         1;
}

class ChunkTree {
 public:
  // For chunks whose numbers, counted from `first`, which is a multiple of 2^(levels - 1), are
  // below 2^(levels - 1).
  explicit ChunkTree(int levels) : nodes_(static_cast<std::size_t>(levels), kMissing) {}

  template <class Merge>
  void push(index_t chunk, int state, const Merge& merge) {
    std::size_t level = 0;
    for (; (chunk & 1) != 0 && level + 1 < nodes_.size(); chunk >>= 1, ++level) {
      state = joined(nodes_[level], state, merge);
      nodes_[level] = kMissing;
    }
    nodes_[level] = state;
  }

  template <class Merge>
  int finish(const Merge& merge) {
    int state = kMissing;
    for (int& node : nodes_) {
      state = joined(node, state, merge);
      node = kMissing;
    }
    return state;
  }

 private:
  template <class Merge>
  static int joined(int x, int y, const Merge& merge) {
    if (x == kMissing) return y;
    if (y != kMissing) merge(x, y);
    return x;
  }

  std::vector<int> nodes_;
};

}  // namespace glasshead
