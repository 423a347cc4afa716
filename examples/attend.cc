// Attention from a program: two query heads that share one key/value head, causal.
#include <cstdio>

#include "glasshead/attention.h"

int main() {
  using namespace glasshead;
  Tensor<float, 4> q({1, 2, 3, 2}), k({1, 1, 3, 2}), v({1, 1, 3, 2}), out({1, 2, 3, 2});
  for (index_t i = 0; i < 3; ++i) {
    k(0, 0, i, 0) = v(0, 0, i, 0) = q(0, 0, i, 0) = q(0, 1, i, 1) = static_cast<float>(i != 1);
    k(0, 0, i, 1) = v(0, 0, i, 1) = q(0, 0, i, 1) = q(0, 1, i, 0) = static_cast<float>(i != 0);
  }

  AttentionOptions options;
  options.mask = Mask::causal();
  attend(q, k, v, out, options);

  for (index_t h = 0; h < 2; ++h)
    for (index_t i = 0; i < 3; ++i)
      std::printf("head %d row %d: %.4f %.4f\n", static_cast<int>(h), static_cast<int>(i),
                  static_cast<double>(out(0, h, i, 0)), static_cast<double>(out(0, h, i, 1)));

  // Everything that is wrong with a call, without throwing.
  options.query_start = Align::end;
  options.softcap = -1;
  Tensor<float, 4> wrong({1, 3, 4, 2});
  for (const Problem& problem : check(q, wrong, v, options))
    std::printf("%s: %s\n", problem.where.c_str(), problem.what.c_str());
}
