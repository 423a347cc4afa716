#include "core/panel_rows.h"

#include <cstddef>

namespace glasshead {

void fill_rows(PanelRows& rows, index_t b, index_t g, index_t group, index_t begin, index_t end,
               Order order) {
  rows.b = b;
  rows.count = end - begin;
  for_packed_rows(g, group, begin, end, order, [&rows](index_t r, index_t h, index_t i) {
    rows.h[r] = h;
    rows.i[r] = i;
  });
}

PairStrides::PairStrides(const Broadcast& values) {
  index_t* const strides[4] = {&b, &h, &i, &j};
  for (int n = 0; n < values.rank; ++n) {
    const auto axis = static_cast<std::size_t>(n);
    if (values.shape[axis] != 1) *strides[4 - values.rank + n] = values.strides[axis];
  }
}

SourceRows::SourceRows(const PairStrides& strides, const PanelRows& rows) {
  bool has_heads = false;
  for (index_t r = 1; r < rows.count; ++r) has_heads |= rows.h[r] != rows.h[0];
  // Rows of one head at distinct positions, or of a tensor that repeats over neither, share
  // nothing worth a search.
  const bool is_shared = strides.i == 0 || (strides.h == 0 && has_heads);
  for (index_t r = 0; r < rows.count; ++r) {
    const index_t at = rows.b * strides.b + rows.h[r] * strides.h + rows.i[r] * strides.i;
    index_t n = is_shared ? count - 1 : -1;
    while (n >= 0 && offset[n] != at) --n;
    if (n < 0) {
      n = count++;
      offset[n] = at;
      lanes[n] = 0;
    }
    lanes[n] |= std::uint32_t{1} << r;
  }
}

}  // namespace glasshead
