// The query rows of one panel, and those of them that read the same row of a broadcast tensor.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/mask_plan.h"

namespace glasshead {

inline constexpr index_t kMostRows = 32;

// The query rows of one panel: all of one batch entry.
struct PanelRows {
  index_t b = 0;
  index_t count = 0;          // 1 to kMostRows
  index_t h[kMostRows] = {};  // query head of each row
  index_t i[kMostRows] = {};  // query index of each row
};

// The same rows in the opposite order.
inline PanelRows reversed(const PanelRows& rows) {
  PanelRows other = rows;
  std::reverse(other.h, other.h + rows.count);
  std::reverse(other.i, other.i + rows.count);
  return other;
}

// Bits of the rows in use.
inline std::uint32_t lanes_of(const PanelRows& rows) {
  return rows.count >= 32 ? ~std::uint32_t{0} : (std::uint32_t{1} << rows.count) - 1;
}

// Which rows of a panel dropout leaves each key: bit r of kept[j - keys.begin].
void fill_kept(const Dropout& dropout, const PanelRows& rows, KeyRange keys, std::uint32_t* kept);

// The strides of a tensor broadcast to [batch, heads, q_len, kv_len]; 0 where it repeats.
struct PairStrides {
  index_t b = 0, h = 0, i = 0, j = 0;
  explicit PairStrides(const Broadcast& values);
};

// The distinct kv rows that a panel reads: where each begins, and the lanes that read it.
struct SourceRows {
  index_t count = 0;
  index_t offset[kMostRows];
  std::uint32_t lanes[kMostRows];
  SourceRows(const PairStrides& strides, const PanelRows& rows);
};

}  // namespace glasshead
