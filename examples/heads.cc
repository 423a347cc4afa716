// Every head of a model at a glance: example_heads FOLDER. The head that reads the token before the
// most, the weights of its last query, and what it does while the text goes on.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

#include "glasshead/head_study.h"

using namespace glasshead;

int main(int argc, char** argv) try {
  const Model model = Model::load(argc > 1 ? argv[1] : "tests/data/models/llama");
  const std::vector<index_t> ids{5, 6, 7, 5, 6, 7, 5, 6};
  const auto last = static_cast<index_t>(ids.size()) - 1;

  Session session(model);
  HeadStudy heads({.cell = 64, .keeps_rows = true});
  session.forward({{.ids = ids}}, LogitRows::none, nullptr, &heads);
  const std::vector<HeadMetrics> all = heads.metrics();  // every layer and head
  const HeadMetrics& best = *std::max_element(
      all.begin(), all.end(), [](const auto& x, const auto& y) { return x.previous < y.previous; });
  const Tensor<float, 2> weights =
      heads.weights(best.attention, best.head, {last, last + 1, 0, last + 1});

  std::printf("%s, head %d: %.4f on the token before\n", best.attention.c_str(),
              static_cast<int>(best.head), best.previous);
  for (index_t j = 0; j <= last; ++j) std::printf(" %.4f", static_cast<double>(weights(0, j)));
  std::puts("");

  // The same head while the model goes on with the text: each token that it reads is one more row.
  session.truncate(0, 0);
  HeadStudy writing({.cell = 64, .keeps_rows = true});
  generate(session, ids, {.max_tokens = 4, .heads = &writing});
  const Tensor<double, 3> rows = writing.rows(best.attention);  // [heads, queries, 6]
  for (index_t i = last + 1; i < rows.shape()[1]; ++i)          // of the tokens that were written
    std::printf("query %d: %.4f on the token before\n", static_cast<int>(i), rows(best.head, i, 1));
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
