#include "core/kept_pairs.h"

#include <algorithm>

#include "base/assert.h"
#include "base/random.h"
#include "core/tile_mask.h"

namespace glasshead {

void keep_pairs(const Dropout& dropout, const PanelRows& rows, KeyRange keys, std::uint32_t* kept) {
  const index_t count = keys.end - keys.begin;
  GLASSHEAD_ASSERT(count <= kTileKeys);
  std::uint8_t flags[kTileKeys];
  std::fill_n(kept, count, std::uint32_t{0});
  for (index_t r = 0; r < rows.count; ++r) {
    dropped_run(dropout.seed, {rows.b, rows.h[r], rows.i[r], keys.begin}, count, dropout.p, flags);
    for (index_t n = 0; n < count; ++n) kept[n] |= std::uint32_t{flags[n] == 0} << r;
  }
}

}  // namespace glasshead
