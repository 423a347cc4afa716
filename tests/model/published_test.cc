// Published models with their real weights, against what transformers computes with them
// (tests/data/models/real). The weights are in build/models after `make test-models`, in
// tests/data/models, in $GLASSHEAD_MODELS or in ../shared/models; a model that is in none of them
// is skipped, and says so.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "glasshead/model.h"
#include "model/parity.h"

namespace glasshead {
namespace {

namespace fs = std::filesystem;
using parity::get;
using parity::ids_of;

const std::string kSource = GLASSHEAD_SOURCE_DIR;
const std::string kExpected = kSource + "/tests/data/models/real/";

// Where `file` ("minilm/model.safetensors") is, or empty.
std::string published(const std::string& file) {
  std::vector<std::string> places{kSource + "/build/models/", kSource + "/tests/data/models/",
                                  kSource + "/../shared/models/"};
  if (const char* named = std::getenv("GLASSHEAD_MODELS"))
    places.insert(places.begin(), std::string(named) + "/");
  for (const std::string& place : places)
    if (fs::exists(place + file)) return place + file;
  return "";
}

#define NEED_PUBLISHED(path, file)          \
  const std::string path = published(file); \
  if (path.empty()) GTEST_SKIP() << file << " is not there: make test-models fetches it"

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

}  // namespace
}  // namespace glasshead
