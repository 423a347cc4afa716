// The query rows of one panel, and those of them that read the same row of a broadcast tensor.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/mask_plan.h"

namespace glasshead {

inline constexpr index_t kMostRows = 32;

// The query rows of one panel: all of one batch entry, their indices ascending or descending.
struct PanelRows {
  index_t b = 0;
  index_t count = 0;     // 1 to kMostRows
  index_t h[kMostRows];  // query head of each row
  index_t i[kMostRows];  // query index of each row

  index_t first() const { return std::min(i[0], i[count - 1]); }
  index_t last() const { return std::max(i[0], i[count - 1]); }
};

enum class Order : std::uint8_t { ascending, descending };

// Calls f(r, h, i) for the packed rows [begin, end), r from 0: query row i of the n-th of the
// `group` heads that share kv head g is packed row i * group + n. From the last to the first if
// descending.
template <class F>
inline void for_packed_rows(index_t g, index_t group, index_t begin, index_t end, Order order,
                            const F& f) {
  const bool descends = order == Order::descending;
  const index_t from = descends ? end - 1 : begin;
  const index_t step = descends ? -1 : 1;
  index_t i = from / group;
  index_t n = from % group;
  for (index_t r = 0; r < end - begin; ++r) {
    f(r, g * group + n, i);
    n += step;
    if (n == group || n < 0) {
      n = descends ? group - 1 : 0;
      i += step;
    }
  }
}

// Those rows, at most kMostRows, in place: a copy of what was just written one by one waits until
// it has left the processor's store buffer.
void fill_rows(PanelRows& rows, index_t b, index_t g, index_t group, index_t begin, index_t end,
               Order order);
inline PanelRows panel_rows(index_t b, index_t g, index_t group, index_t begin, index_t end) {
  PanelRows rows;
  fill_rows(rows, b, g, group, begin, end, Order::ascending);
  return rows;
}

// Bits of the rows in use.
inline std::uint32_t lanes_of(const PanelRows& rows) {
  return rows.count >= 32 ? ~std::uint32_t{0} : (std::uint32_t{1} << rows.count) - 1;
}

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
