#include "core/backward_cut.h"

#include <algorithm>
#include <tuple>

#include "core/fused.h"

namespace glasshead {
namespace {

constexpr index_t kItemsPerThread = 4;  // enough for threads to end together
constexpr index_t kBlocksOfItem = 4;    // at most: rows are packed again for each item

index_t ceil_div(index_t a, index_t b) { return (a + b - 1) / b; }

}  // namespace

std::vector<std::vector<BackwardItem>> BackwardCut::passes(index_t threads) const {
  const index_t heads = shape.batch * kv_heads, blocks = ceil_div(shape.kv_len, kBlock);
  const index_t rows = kv_heads == 0 ? 0 : shape.heads / kv_heads * shape.q_len;
  // Rounds of whole heads at five products, or shares of the work at seven.
  const bool is_whole = 5 * ceil_div(heads, threads) * threads <= 7 * heads;
  std::vector<BackwardItem> whole, of_rows, of_keys;
  const index_t step = panels * lanes;
  index_t run = kBlocksOfItem;
  while (run > 1 && heads * ceil_div(blocks, run) < kItemsPerThread * threads) run /= 2;
  for (index_t b = 0; b < shape.batch; ++b) {
    for (index_t g = 0; g < kv_heads; ++g) {
      if (is_whole) {
        whole.push_back(
            {.rows = {b, g, 0, rows}, .block_end = blocks, .wants_dq = true, .wants_dk_dv = true});
        continue;
      }
      for (index_t begin = 0; begin < rows; begin += step)
        of_rows.push_back({.rows = {b, g, begin, std::min(rows, begin + step)},
                           .block_end = blocks,
                           .wants_dq = true});
      for (index_t block = 0; block < blocks; block += run)
        of_keys.push_back({.rows = {b, g, 0, rows},
                           .block_begin = block,
                           .block_end = std::min(blocks, block + run),
                           .wants_dk_dv = true});
    }
  }
  for (std::vector<BackwardItem>* items : {&of_rows, &of_keys}) sort_by_cost(*items);
  return {whole, of_rows, of_keys};
}

// Longest first; ties in the order of memory.
void BackwardCut::sort_by_cost(std::vector<BackwardItem>& items) const {
  for (BackwardItem& item : items) {
    for (index_t begin = item.rows.begin; begin < item.rows.end; begin += lanes) {
      const KeyRange keys =
          plan.key_range(panel_rows(item.rows.b, item.rows.g, shape.heads / kv_heads, begin,
                                    std::min(item.rows.end, begin + lanes)));
      const index_t first = std::max(keys.begin, item.block_begin * kBlock);
      const index_t last = std::min(keys.end, item.block_end * kBlock);
      item.cost += static_cast<double>(std::max<index_t>(0, last - first));
    }
  }
  std::sort(items.begin(), items.end(), [](const BackwardItem& x, const BackwardItem& y) {
    const auto key = [](const BackwardItem& item) {
      return std::tuple(-item.cost, item.rows.b, item.rows.g, item.rows.begin, item.block_begin);
    };
    return key(x) < key(y);
  });
}

KeyRange range_of(const TilePlan& plan, const PackedRows& rows, index_t group, index_t lanes) {
  KeyRange all;
  for (index_t begin = rows.begin; begin < rows.end; begin += lanes)
    all = united(all, plan.key_range(panel_rows(rows.b, rows.g, group, begin,
                                                std::min(rows.end, begin + lanes))));
  return all;
}

}  // namespace glasshead
