// One word in two texts: example_two_contexts MODEL TEXT TEXT, of a decoder; the word is the last
// of both. The matrices are the same, so q, k and v differ because the rows X that enter a layer
// do: for each layer the cosine of the two texts' X, q, k and v, and of X with the token's own row,
// with which it entered the first layer.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "glasshead/embedding.h"
#include "glasshead/model.h"
#include "glasshead/tokenizer.h"

using namespace glasshead;

namespace {

// What a tap has kept of the last token: [tokens, size], or [heads, tokens, d] of heads.
std::vector<double> last(const FileTensor& tensor) {
  const std::vector<index_t>& shape = tensor.shape;
  const index_t heads = shape.size() == 3 ? shape[0] : 1, tokens = shape[shape.size() - 2],
                size = shape.back();
  std::vector<double> row;
  for (index_t head = 0; head < heads; ++head)
    for (index_t e = 0; e < size; ++e)
      row.push_back(tensor.load(((head + 1) * tokens - 1) * size + e));
  return row;
}

// X, q, k and v of every layer, in order.
NamedTensors read(const Model& model, const std::vector<index_t>& ids) {
  Taps taps({{.name = "decoder.*.in"},
             {.name = "decoder.*.self.q"},
             {.name = "decoder.*.self.k"},
             {.name = "decoder.*.self.v"}});
  Session session(model);
  session.forward({{.ids = ids}}, LogitRows::none, &taps);
  return taps.results();
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "tests/data/models/llama";
  const Model model = Model::load(path);
  std::vector<index_t> one{5, 6, 7}, other{8, 9, 7};
  if (argc > 3) {
    const Tokenizer words = Tokenizer::load(path);
    one = words.encode(argv[2]).ids;
    other = words.encode(argv[3]).ids;
  }
  const NamedTensors a = read(model, one), b = read(model, other);
  const std::vector<double> first = last(a[0].second);
  std::puts("layer       X       q       k       v   X with its first");
  for (std::size_t layer = 0; 4 * layer < a.size(); ++layer) {
    std::printf("%5d", static_cast<int>(layer));
    for (std::size_t n = 4 * layer; n < 4 * layer + 4; ++n)
      std::printf("  %.4f", cosine(last(a[n].second), last(b[n].second)));
    std::printf("  %.4f\n", cosine(last(a[4 * layer].second), first));
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
