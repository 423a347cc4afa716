// What dropout leaves of a tile.
#pragma once

#include <cstdint>

#include "core/panel_rows.h"

namespace glasshead {

// Which rows of a panel dropout leaves each key: bit r of kept[j - keys.begin]. At most 128 keys.
void keep_pairs(const Dropout& dropout, const PanelRows& rows, KeyRange keys, std::uint32_t* kept);

}  // namespace glasshead
