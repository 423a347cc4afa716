// What somebody who looks at attend's tiles sees, and that nothing changes by it.
#include "core/tile_watch.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "glasshead/attention.h"

namespace glasshead {
namespace {

Tensor<float, 4> some_numbers(const std::array<index_t, 4>& shape, std::uint32_t seed) {
  Tensor<float, 4> x(shape);
  for (index_t n = 0; n < shape[0] * shape[1] * shape[2] * shape[3]; ++n) {
    seed = seed * 1664525U + 1013904223U;
    x.data()[n] = static_cast<float>(seed >> 8) / float{1 << 23} - 1;
  }
  return x;
}

struct Sizes {
  index_t q_len, kv_len;
  int threads;
};

// Heads 0 and 1 share a key head; a window, soft-capped scores.
void expect_seen(const Sizes& sizes) {
  const index_t heads = 2, d = 5, n = sizes.q_len, keys = sizes.kv_len;
  const Tensor<float, 4> q = some_numbers({1, heads, n, d}, 1),
                         k = some_numbers({1, 1, keys, d}, 2), v = some_numbers({1, 1, keys, d}, 3);
  AttentionOptions options;
  options.mask = Mask::causal() & Mask::window(1500, index_t{0});
  options.softcap = 2;
  options.query_start = Align::end;
  const Context context({.isa = {}, .threads = sizes.threads, .parallel_for = nullptr});
  Tensor<float, 4> plain({1, heads, n, d}), seen({1, heads, n, d});
  Tensor<float, 3> max({1, heads, n}), sum({1, heads, n});
  attend(q, k, v, plain, options, {}, context);

  const float hidden = -std::numeric_limits<float>::infinity();
  std::vector<float> scores(static_cast<std::size_t>(heads * n * keys), hidden);
  std::vector<int> times(scores.size(), 0);
  std::vector<double> sums(static_cast<std::size_t>(heads * n * keys), 0);  // exp(max) · p
  attend_watched(
      q, k, v, seen, options, {.max = max, .sum = sum, .lse = {}},
      [&](const SeenTile& tile) {
        EXPECT_EQ(tile.keys.begin / 128, (tile.keys.end - 1) / 128);
        for (index_t r = 0; r < tile.rows.count; ++r)
          for (index_t j = tile.keys.begin; j < tile.keys.end; ++j) {
            const index_t from = (j - tile.keys.begin) * tile.key_step + r * tile.row_step;
            const auto to =
                static_cast<std::size_t>((tile.rows.h[r] * n + tile.rows.i[r]) * keys + j);
            scores[to] = tile.scores[from];
            ++times[to];
            sums[to] =
                std::exp(static_cast<double>(tile.max[r])) * static_cast<double>(tile.p[from]);
          }
      },
      context);
  EXPECT_EQ(std::memcmp(plain.data(), seen.data(),
                        static_cast<std::size_t>(heads * n * d) * sizeof(float)),
            0);
  for (index_t h = 0; h < heads; ++h)
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j < keys; ++j) {
        const index_t behind = i + keys - n - j;
        const auto at = static_cast<std::size_t>((h * n + i) * keys + j);
        ASSERT_LE(times[at], 1);
        if (behind < 0 || behind > 1500) {
          ASSERT_EQ(scores[at], hidden);
          ASSERT_EQ(sums[at], 0);
          continue;
        }
        ASSERT_EQ(times[at], 1);
        double dot = 0;
        for (index_t e = 0; e < d; ++e)
          dot += static_cast<double>(q(0, h, i, e)) * static_cast<double>(k(0, 0, j, e));
        const double expected = 2 * std::tanh(dot / std::sqrt(5.0) / 2);
        // A dozen roundings of numbers below 2.
        ASSERT_NEAR(scores[at], expected, 24 * std::ldexp(1, -24));
        ASSERT_NEAR(sums[at], std::exp(expected), 60 * std::ldexp(1, -24) * std::exp(2));
      }
}

TEST(TileWatch, every_allowed_pair_is_seen_once_and_no_bit_changes) {
  expect_seen({300, 300, 1});
  expect_seen({70, 2300, 3});  // keys are cut for threads, and older ones are out of sight
  expect_seen({1, 2100, 2});   // a few rows, in the form of decoding
  expect_seen({3, 5, 1});
}

}  // namespace
}  // namespace glasshead
