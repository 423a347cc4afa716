#include "port/theirs.h"

#include <algorithm>
#include <numeric>

namespace glasshead::port {
namespace {

using model::Point;

index_t product(const std::vector<index_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), index_t{1}, std::multiplies<>());
}

std::vector<index_t> without_ones(const std::vector<index_t>& sizes) {
  std::vector<index_t> left;
  std::copy_if(sizes.begin(), sizes.end(), std::back_inserter(left),
               [](index_t n) { return n != 1; });
  return left;
}

// Whether axes of these sizes, in this order, are `theirs` once neighbours are merged; the words
// for it: "[tokens, heads*d]".
bool merges_into(const std::vector<index_t>& sizes, const std::vector<std::string>& names,
                 const std::vector<index_t>& theirs, std::string& words) {
  words = "[";
  std::size_t at = 0;
  for (const index_t size : theirs) {
    std::string axis;
    index_t merged = 1;
    while (at < sizes.size() && (merged < size || sizes[at] == 1)) {
      merged *= sizes[at];
      if (sizes[at] != 1) axis += (axis.empty() ? "" : "*") + names[at];
      ++at;
    }
    if (merged != size) return false;
    words += (words.size() > 1 ? ", " : "") + axis;
  }
  while (at < sizes.size() && sizes[at] == 1) ++at;
  words += "]";
  return at == sizes.size();
}

// Where each of our numbers lies if our axes are stored in the order `order`.
std::vector<index_t> indices(const std::vector<index_t>& sizes, const std::vector<int>& order) {
  std::vector<index_t> strides(sizes.size());
  index_t step = 1;
  for (std::size_t n = order.size(); n-- > 0;) {
    strides[static_cast<std::size_t>(order[n])] = step;
    step *= sizes[static_cast<std::size_t>(order[n])];
  }
  std::vector<index_t> at;
  at.reserve(static_cast<std::size_t>(step));
  std::vector<index_t> index(sizes.size(), 0);
  for (index_t n = 0; n < step; ++n) {
    index_t where = 0;
    for (std::size_t a = 0; a < sizes.size(); ++a) where += index[a] * strides[a];
    at.push_back(where);
    for (std::size_t a = sizes.size(); a-- > 0;) {
      if (++index[a] < sizes[a]) break;
      index[a] = 0;
    }
  }
  return at;
}

// Orders of our axes: as they are; tokens first; then the others.
std::vector<std::vector<int>> orders(std::size_t rank) {
  if (rank == 2) return {{0, 1}, {1, 0}};
  return {{0, 1, 2}, {1, 0, 2}, {0, 2, 1}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
}

void add_layouts(const Shape& ours, const std::vector<index_t>& theirs,
                 std::vector<Layout>& found) {
  const std::vector<index_t> squeezed = without_ones(theirs);
  for (const std::vector<int>& order : orders(ours.sizes.size())) {
    std::vector<index_t> sizes;
    std::vector<std::string> names;
    for (const int axis : order) {
      sizes.push_back(ours.sizes[static_cast<std::size_t>(axis)]);
      names.push_back(ours.axes[static_cast<std::size_t>(axis)]);
    }
    std::string words;
    if (!merges_into(sizes, names, squeezed, words)) continue;
    const bool is_ours = std::is_sorted(order.begin(), order.end()) &&
                         squeezed.size() == without_ones(ours.sizes).size();
    Layout layout{is_ours ? "" : words, indices(ours.sizes, order)};
    if (std::none_of(found.begin(), found.end(),
                     [&](const Layout& other) { return other.at == layout.at; }))
      found.push_back(std::move(layout));
  }
}

// Key/value heads that are stored once for every query head: ours among the copies, where all
// copies are equal.
void add_repeated(const Shape& ours, const FileTensor& theirs, std::vector<Layout>& found) {
  const index_t heads = ours.query_heads, kv_heads = ours.sizes[0];
  Shape all = ours;
  all.sizes[0] = heads;
  std::vector<Layout> whole;
  add_layouts(all, theirs.shape, whole);
  const index_t size = product(ours.sizes) / kv_heads;  // of one head
  for (const Layout& layout : whole)
    for (const bool is_tiled : {false, true}) {
      Layout some;
      some.words = (layout.words.empty() ? "" : layout.words + ", ") +
                   std::string(is_tiled ? "key/value heads tiled (0 1 0 1)"
                                        : "key/value heads repeated (0 0 1 1)");
      some.at.resize(static_cast<std::size_t>(product(ours.sizes)));
      bool is_equal = true;
      for (index_t h = heads; h-- > 0 && is_equal;)
        for (index_t n = 0; n < size; ++n) {
          const index_t g = is_tiled ? h % kv_heads : h / (heads / kv_heads);
          const index_t copy = is_tiled ? g : g * (heads / kv_heads);  // the first of them
          const index_t first = layout.at[static_cast<std::size_t>(copy * size + n)];
          const index_t here = layout.at[static_cast<std::size_t>(h * size + n)];
          some.at[static_cast<std::size_t>(g * size + n)] = first;
          is_equal = is_equal && theirs.load(first) == theirs.load(here);
        }
      if (is_equal) found.push_back(std::move(some));
    }
}

}  // namespace

Shape shape_of(const model::NamedPlace& place, const model::Attention* attention, index_t tokens,
               index_t memory) {
  const auto by_heads = [&](index_t heads, index_t rows) {
    return Shape{{heads, rows, place.width / heads}, {"heads", "tokens", "d"}};
  };
  switch (place.place.point) {
    case Point::self_q:
    case Point::cross_q:
    case Point::self_out:
    case Point::cross_out:
      return by_heads(attention->heads, tokens);
    case Point::self_k:
    case Point::self_v:
    case Point::cross_k:
    case Point::cross_v: {
      const bool is_self = place.place.point < Point::cross_norm;
      Shape shape = by_heads(attention->kv_heads, is_self ? tokens : memory);
      shape.is_of_kv_heads = attention->heads > attention->kv_heads;
      shape.query_heads = attention->heads;
      return shape;
    }
    case Point::self_weights:
      return {{attention->heads, tokens, tokens}, {"heads", "queries", "keys"}};
    case Point::cross_weights:
      return {{attention->heads, tokens, memory}, {"heads", "queries", "keys"}};
    case Point::self_lse:
    case Point::cross_lse:
      return {{attention->heads, tokens}, {"heads", "tokens"}};
    default:
      return {{tokens, place.width}, {"tokens", "size"}};
  }
}

std::vector<Layout> layouts_of(const Shape& ours, const FileTensor& theirs) {
  std::vector<Layout> found;
  add_layouts(ours, theirs.shape, found);
  if (ours.is_of_kv_heads && found.empty()) add_repeated(ours, theirs, found);
  return found;
}

}  // namespace glasshead::port
