// Somebody's dumped tensor as the numbers of one of our places.
//
//   Theirs theirs(shape of ours, tensor);
//   if (theirs.layouts().empty()) ...                 // it can't be these numbers
//   theirs.read(theirs.layouts()[0])                  // in our order
#pragma once

#include <string>
#include <vector>

#include "glasshead/tensor_file.h"
#include "model/places.h"

namespace glasshead::port {

// What a place's tensor looks like: [tokens, size], [heads, tokens, d], [heads, tokens] ...
struct Shape {
  std::vector<index_t> sizes;
  std::vector<std::string> axes;  // "heads", "tokens", "d"
  bool is_of_kv_heads = false;    // may be repeated for query heads
  index_t query_heads = 0;
};
// `tokens` rows, of cross-attention's keys `memory`.
Shape shape_of(const model::NamedPlace& place, const model::Attention* attention, index_t tokens,
               index_t memory);

// Number n of ours is theirs[at[n]].
struct Layout {
  std::string words;  // empty: as ours
  std::vector<index_t> at;
};

// Every way in which a tensor of their shape can hold these numbers, the likelier first.
std::vector<Layout> layouts_of(const Shape& ours, const FileTensor& theirs);

}  // namespace glasshead::port
