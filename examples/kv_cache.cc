// Decoding with a cache: a prompt, then one more token in two versions that share the prompt.
#include "glasshead/kv_cache.h"

#include <cstdio>

namespace {

using namespace glasshead;

// Stands for what a model computes: [1, heads, n, 2].
Tensor<float, 4> numbers(index_t heads, index_t n, int kind) {
  Tensor<float, 4> x({1, heads, n, 2});
  for (index_t h = 0; h < heads; ++h)
    for (index_t i = 0; i < n; ++i) {
      x(0, h, i, 0) = static_cast<float>((i + kind) % 3);
      x(0, h, i, 1) = static_cast<float>(h + 1) / 2;
    }
  return x;
}
ConstTensor<3> of_one_sequence(const Tensor<float, 4>& x) {
  return View<const float, 3>(x.data(), {x.shape()[1], x.shape()[2], x.shape()[3]});
}

}  // namespace

int main() {
  KvCache cache({.batch = 1, .kv_heads = 1, .d_k = 2, .d_v = 2, .type = KvType::bf16});
  AttentionOptions options;
  options.mask = Mask::causal();

  cache.append(numbers(1, 5, 0), numbers(1, 5, 1));  // keys and values of a prompt of 5 tokens
  const index_t other = cache.fork(0);               // a second sequence, in the same pages

  const Tensor<float, 4> k = numbers(1, 1, 2), v = numbers(1, 1, 0), w = numbers(1, 1, 1);
  cache.append(0, of_one_sequence(k), of_one_sequence(v));
  cache.append(other, of_one_sequence(k), of_one_sequence(w));

  // One query of two heads for each sequence; it stands at the last key, position 5.
  Tensor<float, 4> q({2, 2, 1, 2}), out({2, 2, 1, 2});
  for (index_t b = 0; b < 2; ++b) q(b, 0, 0, 0) = q(b, 1, 0, 1) = 1;
  attend(q, cache.input(), out, options);

  for (index_t b = 0; b < 2; ++b)
    for (index_t h = 0; h < 2; ++h)
      std::printf("sequence %d head %d: %.4f %.4f\n", static_cast<int>(b), static_cast<int>(h),
                  static_cast<double>(out(b, h, 0, 0)), static_cast<double>(out(b, h, 0, 1)));
}
