// Published models with their real weights, against what transformers and llama.cpp compute with
// them (tests/data/models/real).
#include "published.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "glasshead/model.h"
#include "model/parity.h"

namespace glasshead {
namespace {

using parity::get;
using parity::ids_of;

const std::string kExpected = GLASSHEAD_SOURCE_DIR "/tests/data/models/real/";

void expect_parity(const std::string& path, const std::string& expected, index_t texts) {
  parity::Fixture fixture;
  fixture.path = path;
  fixture.texts = texts;
  fixture.logits = fixture.states = 2e-4;  // the bars of the tiny models
  fixture.weights = 1e-5;
  const parity::Worst worst =
      parity::compare(Model::load(path), fixture, read_safetensors(kExpected + expected));
  EXPECT_LE(worst.error, 1) << worst.where;
  std::printf("%s: %d arrays, worst %.4f of the tolerance (%s)\n", expected.c_str(), worst.arrays,
              worst.error, worst.where.c_str());
}

TEST(Published, stories260K_computes_what_transformers_does) {
  NEED_PUBLISHED(path, "stories260K/model.safetensors");
  expect_parity(path, "stories260K.safetensors", 1);
}

TEST(Published, rxnmapper_computes_what_transformers_does) {
  NEED_PUBLISHED(path, "rxnmapper-albert/model.safetensors");
  expect_parity(path, "rxnmapper-albert.safetensors", 1);
}

TEST(Published, minilm_computes_what_transformers_does) {
  NEED_PUBLISHED(path, "minilm/model.safetensors");
  expect_parity(path, "minilm.safetensors", 8);
}

// The embeddings of sentences, and the same from one call and from many.
TEST(Published, minilms_vectors_are_sentence_transformers_) {
  NEED_PUBLISHED(path, "minilm/model.safetensors");
  const NamedTensors expected = read_safetensors(kExpected + "minilm.safetensors");
  Session session(Model::load(path));
  std::vector<Session::Text> texts;
  for (int t = 0; t < 8; ++t)
    texts.push_back({.ids = ids_of(get(expected, std::to_string(t) + ".ids"))});
  const Tensor<float, 2> vectors = session.embed(texts);
  for (index_t t = 0; t < 8; ++t) {
    const FileTensor& theirs = get(expected, std::to_string(t) + ".embedding");
    const Tensor<float, 2> alone = session.embed({texts[static_cast<std::size_t>(t)]});
    double dot = 0, ours_squared = 0, theirs_squared = 0;
    for (index_t e = 0; e < theirs.size(); ++e) {
      EXPECT_EQ(vectors(t, e), alone(0, e));
      dot += vectors(t, e) * theirs.load(e);
      ours_squared += static_cast<double>(vectors(t, e)) * vectors(t, e);
      theirs_squared += theirs.load(e) * theirs.load(e);
    }
    EXPECT_NEAR(dot / std::sqrt(ours_squared * theirs_squared), 1, 1e-5) << t;
    EXPECT_NEAR(ours_squared, 1, 1e-6);
  }
}

double log_sum_exp(const View<const float, 2>& row) {
  double largest = row(0, 0), sum = 0;
  for (index_t n = 0; n < row.shape[1]; ++n) largest = std::max<double>(largest, row(0, n));
  for (index_t n = 0; n < row.shape[1]; ++n) sum += std::exp(row(0, n) - largest);
  return largest + std::log(sum);
}

// Ten texts go on by the engine's tokens; its log-probabilities of the likely ones are near ours.
void expect_the_same_continuations(const std::string& path, const std::string& engine) {
  const NamedTensors expected = read_safetensors(kExpected + "smollm2.safetensors");
  Session session(Model::load(path));
  constexpr index_t kEndOfTurn = 2;
  double distance = 0;
  index_t tokens = 0;
  for (int text = 0; text < 10; ++text) {
    SCOPED_TRACE("text " + std::to_string(text));
    const std::string prefix = std::to_string(text) + ".";
    const std::vector<index_t> theirs = ids_of(get(expected, prefix + engine + ".greedy"));
    const FileTensor& ids = get(expected, prefix + engine + ".top_ids");
    const FileTensor& scores = get(expected, prefix + engine + ".top_logprobs");
    const index_t top = ids.shape[1];
    session.truncate(0, 0);
    std::vector<index_t> next = ids_of(get(expected, prefix + "ids"));
    index_t step = 0;
    for (const index_t id : theirs) {
      const View<const float, 2> row = session.forward({{.ids = next}});
      ASSERT_EQ(sample({row.data, {row.shape[1]}}, {}, {}, 0), id) << "step " << step;
      const double total = log_sum_exp(row);
      for (index_t n = step * top; n < (step + 1) * top; ++n) {
        const double score = row(0, static_cast<index_t>(ids.load(n))) - total;
        distance = std::max(distance, std::fabs(score - scores.load(n)));
      }
      ++step;
      next = {id};
    }
    tokens += step;
    if (step < 64) {  // it stops there
      EXPECT_EQ(theirs.back(), kEndOfTurn);
    }
  }
  std::printf("%d tokens as %s, log-probabilities within %.2g\n", static_cast<int>(tokens),
              engine.c_str(), distance);
  EXPECT_GE(tokens, 500);
}

// llama.cpp with the file's numbers as f32: from the quantised blocks it multiplies with
// activations rounded to 8 bits, and parts from exact arithmetic where two tokens are nearly equal.
TEST(Published, smollm2_continues_ten_texts_as_llama_cpp_does) {
  NEED_PUBLISHED(path, kSmolLM2);
  expect_the_same_continuations(path, "llama.cpp");
}

TEST(Published, smollm2_continues_ten_texts_as_transformers_does) {
  NEED_PUBLISHED(path, kSmolLM2);
  expect_the_same_continuations(path, "transformers");
}

// Every head's weights of one row: 30 layers of 9 heads over 64 tokens.
TEST(Published, smollm2s_attention_weights_are_transformers_) {
  NEED_PUBLISHED(path, kSmolLM2);
  const NamedTensors expected = read_safetensors(kExpected + "smollm2.safetensors");
  const FileTensor& theirs = get(expected, "0.last_rows");
  Session session(Model::load(path));
  Taps taps({{.name = "decoder.*.self.weights", .positions = std::pair<index_t, index_t>{63, 63}}});
  session.forward({{.ids = ids_of(get(expected, "0.ids"))}}, LogitRows::none, &taps);
  const NamedTensors seen = taps.results();
  ASSERT_EQ(seen.size(), 30U);
  double worst = 0;
  for (index_t l = 0; l < 30; ++l) {
    const FileTensor& ours = seen[static_cast<std::size_t>(l)].second;
    ASSERT_EQ(ours.size(), 9 * 64);
    for (index_t n = 0; n < ours.size(); ++n)
      worst = std::max(worst, std::fabs(ours.load(n) - theirs.load(l * 9 * 64 + n)));
  }
  // transformers' run is itself float32: both are off by about as much.
  EXPECT_LE(worst, 1e-4);
  std::printf("weights within %.2g\n", worst);
}

}  // namespace
}  // namespace glasshead
