// What a head reads, without a matrix of weights: one row, the largest few, a picture of the head.
#include <cstdio>

#include "glasshead/attention_weights.h"

int main() {
  using namespace glasshead;
  const index_t heads = 2, length = 256, d = 16;
  Tensor<float, 4> q({1, heads, length, d}), k({1, 1, length, d}), v({1, 1, length, d});
  Tensor<float, 4> out({1, heads, length, d});
  for (index_t i = 0; i < length; ++i)  // every key is like the one 32 before it
    q(0, 0, i, i % 16) = k(0, 0, i, i / 2 % 16) = q(0, 1, i, i / 2 % 16) = v(0, 0, i, i % 16) = 8;

  AttentionOptions options;
  options.mask = Mask::causal();
  Tensor<float, 3> max({1, heads, length}), sum({1, heads, length});
  const RowState rows{max, sum, {}};
  attend(q, k, v, out, options, rows);

  // The weights of one row of one head.
  const RowRange last{1, 2, length - 1, length};
  Tensor<float, 4> weights({1, 1, 1, length});
  attention_weights(q, k, rows, options, last, weights);
  std::printf("head 1, last row: %.4f on itself\n",
              static_cast<double>(weights(0, 0, 0, length - 1)));

  // Its three largest.
  Tensor<index_t, 4> keys({1, 1, 1, 3});
  Tensor<float, 4> best({1, 1, 1, 3});
  top_weights(q, k, rows, options, last, keys, best);
  for (index_t n = 0; n < 3; ++n)
    std::printf("  key %d: %.4f\n", static_cast<int>(keys(0, 0, 0, n)),
                static_cast<double>(best(0, 0, 0, n)));

  // Both heads as pictures of 4 x 4 cells, in the same call as out.
  Tensor<float, 4> mean({1, heads, 4, 4}), largest({1, heads, 4, 4});
  attend_with_maps(q, k, v, out, {64, 64, mean, largest}, options);
  for (index_t i = 0; i < 4; ++i)
    std::printf("%.4f %.4f %.4f %.4f\n", static_cast<double>(mean(0, 1, i, 0)),
                static_cast<double>(mean(0, 1, i, 1)), static_cast<double>(mean(0, 1, i, 2)),
                static_cast<double>(mean(0, 1, i, 3)));
}
