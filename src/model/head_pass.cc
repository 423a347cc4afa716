#include "model/head_pass.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/math.h"
#include "core/context_impl.h"

namespace glasshead::model {
namespace {

// p is exactly 0 where a score is further below the maximum: 0 times a number that is finite, also
// where the score is -inf.
constexpr float kFurthest = 104;

constexpr int kSideBySide = 8;  // rows of a tile in vectors: compilers leave these loops as scalars

// A NaN is the largest.
template <class T>
T larger(T x, T y) {
  return x > y || x != x ? x : y;
}

}  // namespace

void Repeats::add(const std::vector<index_t>& ids) {
  for (const index_t id : ids) {
    std::vector<index_t>& places = places_[id];
    places.push_back(size());
    occurrences_.push_back(&places);
  }
}

index_t Repeats::bytes() const {
  constexpr index_t kLinks = 4 * sizeof(void*);  // of a node of the map, beside what it holds
  index_t bytes = bytes_of(occurrences_);
  for (const auto& place : places_)
    bytes += kLinks + static_cast<index_t>(sizeof place) + bytes_of(place.second);
  return bytes;
}

index_t HeadPass::bytes() const { return bytes_of(kept_) + bytes_of(cells_) + bytes_of(rows_); }

void HeadPass::start(const Sizes& sizes) {
  sizes_ = sizes;
  cell_ = sizes.cell > 0 ? sizes.cell : kBlock;
  blocks_ = (sizes.keys + kBlock - 1) / kBlock;
  of_block_ = kBlock % cell_ == 0 ? kBlock / cell_ : std::min(kBlock, (kBlock - 1) / cell_ + 2);
  const auto rows = static_cast<std::size_t>(sizes.heads * sizes.rows);
  kept_.assign(rows * static_cast<std::size_t>(blocks_), {});
  cells_.assign(kept_.size() * static_cast<std::size_t>(of_block_), {});
  rows_.assign(rows, {});
}

void HeadPass::see(const SeenTile& tile) {
  index_t r = 0;
  if (tile.row_step == 1 && tile.key_step % kSideBySide == 0)
    for (; r < tile.rows.count; r += kSideBySide) add_rows<kSideBySide>(tile, r);
  for (; r < tile.rows.count; ++r) add_rows<1>(tile, r);
  for (r = 0; r < tile.rows.count; ++r) add_pairs(tile, r);
}

// Rows [row, row + R) of the tile, of which those at and above its count are room.
template <int R>
void HeadPass::add_rows(const SeenTile& tile, index_t row) {
  constexpr int W = R == 1 ? 1 : 4;
  constexpr int kVectors = R / W;
  typedef float V __attribute__((vector_size(W * sizeof(float))));
  const index_t keys = tile.keys.end - tile.keys.begin, block = tile.keys.begin / kBlock;
  const index_t first_cell = cell_of(block * kBlock);
  const index_t count = std::min<index_t>(R, tile.rows.count - row);
  float max_of[R] = {}, behind_of[R] = {};  // how far the row's position is behind the key's
  for (index_t r = 0; r < count; ++r) {
    max_of[r] = tile.max[row + r];
    behind_of[r] = static_cast<float>(sizes_.position + tile.rows.i[row + r] - tile.keys.begin);
  }
  V max[kVectors], behind[kVectors], entropy[kVectors] = {}, distance[kVectors] = {};
  std::memcpy(max, max_of, sizeof max);
  std::memcpy(behind, behind_of, sizeof behind);
  index_t at[R] = {};
  for (index_t r = 0; r < count; ++r)
    at[r] = row_at(tile.rows.h[row + r], tile.rows.i[row + r]) * blocks_ + block;

  const index_t from = row * tile.row_step;
  for (index_t n = 0; n < keys;) {
    const index_t cell = cell_of(tile.keys.begin + n);
    const index_t end = std::min(keys, (cell + 1) * cell_ - tile.keys.begin);
    V sum[kVectors] = {}, largest[kVectors] = {};
    for (; n < end; ++n) {
      for (index_t c = 0; c < kVectors; ++c) {
        V p, s;
        std::memcpy(&p, tile.p + n * tile.key_step + from + c * W, sizeof p);
        std::memcpy(&s, tile.scores + n * tile.key_step + from + c * W, sizeof s);
        const V below = max[c] - s;
        sum[c] += p;
        largest[c] = p > largest[c] ? p : largest[c];
        entropy[c] += p * (below < kFurthest ? below : V{} + kFurthest);
        distance[c] += p * (behind[c] < 0 ? -behind[c] : behind[c]);
        behind[c] -= 1;
      }
    }
    for (index_t r = 0; r < count; ++r)
      cells_[static_cast<std::size_t>(at[r] * of_block_ + cell - first_cell)] = {
          sum[r / W][r % W], largest[r / W][r % W]};
  }
  for (index_t r = 0; r < count; ++r)
    kept_[static_cast<std::size_t>(at[r])] = {max_of[r], entropy[r / W][r % W],
                                              distance[r / W][r % W], 0};
}

// The single pairs that have a number of their own.
void HeadPass::add_pairs(const SeenTile& tile, index_t row) {
  const index_t i = tile.rows.i[row], position = sizes_.position + i;
  const index_t begin = tile.keys.begin, end = tile.keys.end;
  const auto p = [&](index_t key) {
    return tile.p[(key - begin) * tile.key_step + row * tile.row_step];
  };
  const auto has = [&](index_t key) { return key >= begin && key < end; };
  const index_t at = row_at(tile.rows.h[row], i);
  Row& to = rows_[static_cast<std::size_t>(at)];
  if (has(0)) to.first = p(0);
  if (sizes_.text == nullptr) return;
  if (has(position)) to.self = p(position);
  if (has(position - 1)) to.previous = p(position - 1);
  const std::vector<index_t>& places = sizes_.text->of(position);
  float sum = 0;
  for (auto place = std::lower_bound(places.begin(), places.end(), begin - 1);
       place != places.end() && *place < position && *place + 1 < end; ++place)
    sum += p(*place + 1);
  kept_[static_cast<std::size_t>(at * blocks_ + begin / kBlock)].induction = sum;
}

void HeadPass::finish(const RowState& state, std::vector<HeadSums>& sums, const Context& context) {
  context.impl().pool.run(sizes_.heads, [&](index_t h, int) {
    HeadSums& of_head = sums[static_cast<std::size_t>(h)];
    for (index_t i = 0; i < sizes_.rows; ++i) {
      const HeadNumbers row = finish_row(h, i, state, of_head);
      HeadNumbers& sum = of_head.sum;
      sum.first += row.first;
      sum.previous += row.previous;
      sum.self += row.self;
      sum.entropy += row.entropy;
      sum.distance += row.distance;
      sum.induction += row.induction;
      if (sizes_.keeps_rows) of_head.rows.push_back(counted(row, i));
    }
  });
}

// NaN for the numbers whose means this row does not count in.
HeadNumbers HeadPass::counted(HeadNumbers row, index_t i) const {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const index_t position = sizes_.position + i;
  if (sizes_.text == nullptr) return {row.first, kNone, kNone, row.entropy, kNone, kNone};
  if (position == 0) row.previous = kNone;
  if (!sizes_.text->came_before(position)) row.induction = kNone;
  return row;
}

// Where the weights of one row of pairs go in the pictures; null: there are none.
HeadPass::Picture HeadPass::picture_of(index_t position, HeadSums& sums) const {
  if (sizes_.cell == 0) return {};
  const auto row = static_cast<std::size_t>(cell_of(position));
  const auto columns = static_cast<std::size_t>(cell_of(sizes_.keys - 1) + 1);
  if (sums.total.size() <= row) {
    sums.total.resize(row + 1);
    sums.largest.resize(row + 1);
  }
  if (sums.total[row].size() < columns) {
    sums.total[row].resize(columns, 0);
    sums.largest[row].resize(columns, 0);
  }
  return {sums.total[row].data(), sums.largest[row].data()};
}

void HeadPass::add_cells(index_t at, double factor, const Picture& to) const {
  const index_t first = cell_of(at % blocks_ * kBlock);
  const Cell* const cells = cells_.data() + at * of_block_;
  for (index_t c = 0; c < of_block_; ++c) {
    if (cells[c].sum == 0) continue;
    float& largest = to.largest[first + c];
    to.total[first + c] += factor * static_cast<double>(cells[c].sum);
    largest = larger(static_cast<float>(factor * static_cast<double>(cells[c].max)), largest);
  }
}

// A weight is exp(score - max) / sum = p · exp(block's max - max) / sum, in f64 from here on.
HeadNumbers HeadPass::finish_row(index_t h, index_t i, const RowState& state, HeadSums& sums) {
  const double max = ConstTensor<3>(state.max).load(0, h, i);
  const double sum = ConstTensor<3>(state.sum).load(0, h, i);
  if (sum == 0) return {};
  const index_t row = row_at(h, i), position = sizes_.position + i;
  const Picture picture = picture_of(position, sums);
  const auto factor_of = [&](double max_of_block) { return math::exp(max_of_block - max) / sum; };
  double known = max, factor = 1 / sum;  // neighbours share their maximum more often than not
  HeadNumbers made;
  double mass = 0;
  for (index_t at = row * blocks_; at < (row + 1) * blocks_; ++at) {
    const Block& block = kept_[static_cast<std::size_t>(at)];
    double here = 0;
    for (index_t c = 0; c < of_block_; ++c)
      here += static_cast<double>(cells_[static_cast<std::size_t>(at * of_block_ + c)].sum);
    if (here == 0) continue;
    if (static_cast<double>(block.max) != known) {
      known = block.max;
      factor = factor_of(known);
    }
    mass += factor * here;
    made.entropy += factor * (static_cast<double>(block.entropy) + (max - known) * here);
    made.distance += factor * static_cast<double>(block.distance);
    made.induction += factor * static_cast<double>(block.induction);
    if (picture.total != nullptr) add_cells(at, factor, picture);
  }
  // The weight of one key, from its block's maximum.
  const auto weight = [&](index_t key, float p) {
    if (p == 0) return sum != sum ? sum : 0;
    return static_cast<double>(p) *
           factor_of(kept_[static_cast<std::size_t>(row * blocks_ + key / kBlock)].max);
  };
  const Row& pairs = rows_[static_cast<std::size_t>(row)];
  made.first = weight(0, pairs.first);
  made.entropy += mass * math::log(sum);
  if (sizes_.text == nullptr) return made;
  made.self = weight(position, pairs.self);
  if (position > 0) made.previous = weight(position - 1, pairs.previous);
  return made;
}

}  // namespace glasshead::model
