#include <algorithm>
#include <bit>
#include <tuple>

#include "core/chunk_tree.h"
#include "core/fused.h"

namespace glasshead {
namespace {

constexpr index_t kPanels = 8;          // a block of keys is read once for so many panels
constexpr index_t kItemsPerThread = 4;  // enough for threads to end together

index_t ceil_div(index_t a, index_t b) { return (a + b - 1) / b; }

KeyRange range_of(const TilePlan& plan, const FusedItem& item, index_t group, index_t lanes) {
  KeyRange all;
  for (index_t begin = item.row_begin; begin < item.row_end; begin += lanes) {
    all = united(all, plan.key_range(panel_rows(item.b, item.g, group, begin,
                                                std::min(item.row_end, begin + lanes))));
  }
  return all;
}

}  // namespace

int levels_of(const FusedCut& cut, index_t kv_len) {
  const index_t chunks = cut.node_chunks != 0 ? cut.node_chunks : ceil_div(kv_len, kChunk);
  return std::max(tree_levels(chunks), tree_levels(cut.nodes));
}

FusedCut cut_fused(const PairShape& shape, index_t kv_heads, index_t lanes, int threads,
                   const PlanOfBatch& plans) {
  FusedCut cut;
  const index_t group = shape.heads / kv_heads;
  const index_t rows = shape.q_len * group;
  const index_t wanted = threads == 1 ? 1 : kItemsPerThread * threads;
  const auto blocks = [&] { return shape.batch * kv_heads * ceil_div(rows, cut.panels * lanes); };
  cut.panels = std::clamp<index_t>(ceil_div(rows, lanes), 1, kPanels);
  while (cut.panels > 1 && blocks() < wanted) cut.panels /= 2;
  cut.row_blocks = blocks();

  const index_t chunks = ceil_div(shape.kv_len, kChunk);
  if (cut.row_blocks < wanted && chunks > 1) {
    const index_t nodes = std::min(chunks, ceil_div(wanted, cut.row_blocks));
    cut.node_chunks = static_cast<index_t>(
        std::bit_floor(static_cast<std::uint64_t>(std::max<index_t>(1, chunks / nodes))));
    cut.nodes = ceil_div(chunks, cut.node_chunks);
  }
  const index_t step = cut.panels * lanes;
  index_t row_block = 0;
  for (index_t b = 0; b < shape.batch; ++b) {
    for (index_t g = 0; g < kv_heads; ++g) {
      for (index_t begin = 0; begin < rows; begin += step, ++row_block) {
        FusedItem item{b, g, begin, std::min(rows, begin + step), 0, 0, 0, row_block, 0};
        const KeyRange keys = range_of(plans[b], item, group, lanes);
        for (index_t node = 0; node < cut.nodes; ++node) {
          item.node = node;
          item.chunk_begin = node * cut.node_chunks;
          item.chunk_end =
              cut.node_chunks == 0 ? chunks : std::min(chunks, item.chunk_begin + cut.node_chunks);
          const index_t first = std::max(keys.begin, item.chunk_begin * kChunk);
          const index_t last = std::min(keys.end, item.chunk_end * kChunk);
          item.cost = std::max<index_t>(0, last - first) * (item.row_end - item.row_begin);
          cut.items.push_back(item);
        }
      }
    }
  }
  // Head by head, so that a head's keys stay in the caches; of each the longest first, so that the
  // last items of all are short and threads end together.
  std::sort(cut.items.begin(), cut.items.end(), [](const FusedItem& x, const FusedItem& y) {
    return std::tuple(x.b, x.g, -x.cost, x.row_block, x.node) <
           std::tuple(y.b, y.g, -y.cost, y.row_block, y.node);
  });
  return cut;
}

}  // namespace glasshead
