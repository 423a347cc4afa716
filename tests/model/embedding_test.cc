// The token table as geometry: by exact arithmetic on small integers, on quantised tables by what
// transformers reads in them, on a published model by NumPy.
#include "glasshead/embedding.h"

#include <cmath>

#include <gtest/gtest.h>

#include "model/made_files.h"
#include "model/model_impl.h"
#include "model/parity.h"
#include "published.h"

namespace glasshead {
namespace {

using Vector = std::vector<double>;

// The tutorial's four words, in tenths, and a token of zeros.
constexpr index_t kKing = 0, kQueen = 1, kUncle = 2, kAunt = 3, kNothing = 4;
const std::vector<float> kTable{9, 8, 9, 2, 3, 7, 4, 1, 0, 0};

Model with_table(const std::vector<float>& table) {
  model::MadeFiles made(R"({"model_type": "llama", "hidden_size": 2, "num_hidden_layers": 1,
    "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 2, "intermediate_size": 3,
    "vocab_size": 5, "tie_word_embeddings": true})");
  const std::string layer = "model.layers.0.";
  made.add("model.embed_tokens.weight", {5, 2}, table)
      .add(layer + "input_layernorm.weight", {2})
      .add(layer + "self_attn.q_proj.weight", {2, 2})
      .add(layer + "self_attn.k_proj.weight", {2, 2})
      .add(layer + "self_attn.v_proj.weight", {2, 2})
      .add(layer + "self_attn.o_proj.weight", {2, 2})
      .add(layer + "post_attention_layernorm.weight", {2})
      .add(layer + "mlp.gate_proj.weight", {3, 2})
      .add(layer + "mlp.up_proj.weight", {3, 2})
      .add(layer + "mlp.down_proj.weight", {2, 3})
      .add("model.norm.weight", {2});
  return model_of(made.open());
}

Model words() { return with_table(kTable); }

Vector row(const Model& model, index_t id) { return word_vector(model, {id}); }

template <class Call>
std::string refused(const Call& call) {
  try {
    call();
  } catch (const OptionError& error) {
    std::string text;
    for (const Problem& problem : error.problems())
      text += problem.where + ": " + problem.what + "\n";
    return text;
  }
  ADD_FAILURE() << "not refused";
  return "";
}

TEST(Embedding, a_word_of_several_tokens_is_their_mean) {
  const Model model = words();
  EXPECT_EQ(row(model, kKing), (Vector{9, 8}));
  EXPECT_EQ(word_vector(model, {kKing, kQueen}), (Vector{9, 5}));
  EXPECT_EQ(word_vector(model, {kAunt, kAunt, kNothing, kNothing}), (Vector{2, 0.5}));
}

TEST(Embedding, cosine_is_of_directions_alone) {
  const Model model = words();
  const Vector king = row(model, kKing), queen = row(model, kQueen);
  // 9·9 + 8·2 = 97; 9² + 8² = 145; 9² + 2² = 85
  EXPECT_NEAR(cosine(king, queen), 97 / std::sqrt(145.0 * 85.0), 1e-15);
  EXPECT_NEAR(cosine(sum_of({{7, king}}), sum_of({{0.5, queen}})), cosine(king, queen), 1e-15);
  EXPECT_NEAR(cosine(king, sum_of({{-1, king}})), -1, 1e-15);
  EXPECT_EQ(cosine(king, row(model, kNothing)), 0);
}

TEST(Embedding, two_pairs_differ_in_nearly_the_same_way) {
  const Model model = words();
  const Vector way = sum_of({{1, row(model, kQueen)}, {-1, row(model, kKing)}});
  const Vector other = sum_of({{1, row(model, kAunt)}, {-1, row(model, kUncle)}});
  EXPECT_EQ(way, (Vector{0, -6}));
  EXPECT_EQ(other, (Vector{1, -6}));
  EXPECT_NEAR(cosine(way, other), 6 / std::sqrt(37.0), 1e-15);
  EXPECT_NEAR(cosine(way, other), .9864, 5e-5);  // the tutorial's digits
}

TEST(Embedding, nearest_tokens_come_by_cosine_without_those_left_out) {
  const Model model = words();
  const Vector king = row(model, kKing);
  const std::vector<Neighbour> all = nearest_tokens(model, king, 10);
  ASSERT_EQ(all.size(), 5U);
  // cosines with (9, 8): itself 1, uncle 83/√(145·58), queen 97/√(145·85), aunt 44/√(145·17)
  EXPECT_EQ(all[0].id, kKing);
  EXPECT_NEAR(all[0].cosine, 1, 1e-15);
  EXPECT_EQ(all[1].id, kUncle);
  EXPECT_NEAR(all[1].cosine, 83 / std::sqrt(145.0 * 58.0), 1e-15);
  EXPECT_EQ(all[2].id, kAunt);
  EXPECT_NEAR(all[2].cosine, 44 / std::sqrt(145.0 * 17.0), 1e-15);
  EXPECT_EQ(all[3].id, kQueen);
  EXPECT_EQ(all[4].id, kNothing);
  EXPECT_EQ(all[4].cosine, 0);
  const std::vector<Neighbour> some = nearest_tokens(model, king, 1, {kKing, kUncle});
  ASSERT_EQ(some.size(), 1U);
  EXPECT_EQ(some[0].id, kAunt);
}

TEST(Embedding, an_analogy_is_a_sum_and_what_is_near_to_it) {
  const Model model = words();
  const Vector sum =
      sum_of({{1, row(model, kKing)}, {-1, row(model, kUncle)}, {1, row(model, kAunt)}});
  EXPECT_EQ(sum, (Vector{10, 2}));
  const std::vector<Neighbour> found = nearest_tokens(model, sum, 1, {kKing, kUncle, kAunt});
  EXPECT_EQ(found[0].id, kQueen);
  EXPECT_NEAR(found[0].cosine, 94 / std::sqrt(104.0 * 85.0), 1e-15);
}

TEST(Embedding, of_equal_tokens_the_lower_id_comes_first) {
  const Model model = with_table({0, 1, 2, 0, 1, 0, 4, 0, -1, 0});
  const std::vector<Neighbour> found = nearest_tokens(model, {1, 0}, 5);
  std::vector<index_t> ids;
  for (const Neighbour& one : found) ids.push_back(one.id);
  EXPECT_EQ(ids, (std::vector<index_t>{1, 2, 3, 0, 4}));
}

TEST(Embedding, a_row_that_is_not_a_number_is_near_to_nothing) {
  const Model model = with_table({NAN, 1, 1, 0, INFINITY, 0, 0, 1, 1, 1});
  const std::vector<Neighbour> found = nearest_tokens(model, {1, 0}, 5);
  EXPECT_EQ(found[0].id, 1);
  EXPECT_EQ(found[1].id, 4);
  for (std::size_t n = 2; n < 5; ++n) EXPECT_EQ(found[n].cosine, 0);
}

TEST(Embedding, a_place_between_two_words_is_exact) {
  const Model model = words();
  const Vector king = row(model, kKing), queen = row(model, kQueen);
  EXPECT_EQ(place_between(king, queen, king), 0);
  EXPECT_EQ(place_between(king, queen, queen), 1);
  // (4 - 9, 1 - 8)·(0, -6) / 36 = 42 / 36, and (3 - 9, 7 - 8)·(0, -6) / 36 = 6 / 36
  EXPECT_EQ(place_between(king, queen, row(model, kAunt)), 42.0 / 36.0);
  EXPECT_EQ(place_between(king, queen, row(model, kUncle)), 6.0 / 36.0);
  EXPECT_EQ(place_between(king, queen, {-100, 5}), 0.5);  // as far from both
}

TEST(Embedding, what_makes_no_sense_is_refused) {
  const Model model = words();
  EXPECT_EQ(refused([&] { word_vector(model, {}); }), "ids: there is none; at least one\n");
  EXPECT_EQ(refused([&] { word_vector(model, {0, 5, -1}); }),
            "ids: 5; the vocabulary has the ids 0 to 4\nids: -1; the vocabulary has the ids 0 to "
            "4\n");
  EXPECT_EQ(refused([&] { nearest_tokens(model, {0, 0}, 0); }),
            "count: 0; at least 1\nvector: is 0 everywhere or not finite; it must point "
            "somewhere\n");
  EXPECT_EQ(refused([&] { nearest_tokens(model, {1, 2, 3}, 1); }),
            "vector: has 3 coordinates; must have 2\n");
  EXPECT_EQ(refused([&] { cosine({1}, {1, 2}); }), "b: has 2 coordinates; must have 1\n");
  EXPECT_EQ(refused([&] { sum_of({}); }), "terms: there is none; at least one\n");
  EXPECT_EQ(refused([&] { place_between({1, 2}, {1, 2}, {0, 0}); }),
            "b: is a; there is no way from one to the other\n");
}

// What enters the first layer of these is the table's row, as the `gguf` package reads it.
TEST(Embedding, a_quantised_row_is_what_transformers_reads) {
  int models = 0;
  for (const parity::Fixture& fixture : parity::fixtures()) {
    if (fixture.name != "llama-legacy-quants.gguf" && fixture.name != "llama-k-quants.gguf")
      continue;
    const Model model = Model::load(fixture.path);
    const NamedTensors expected = read_safetensors(fixture.expected);
    const std::vector<index_t> ids = parity::ids_of(parity::get(expected, "0.ids"));
    const FileTensor& rows = parity::get(expected, "0.in.0");
    for (std::size_t n = 0; n < ids.size(); ++n) {
      const Vector vector = row(model, ids[n]);
      for (std::size_t e = 0; e < vector.size(); ++e)
        // f16 numbers times small integers, and added: rounded to f32 once or twice
        EXPECT_NEAR(vector[e], rows.load(static_cast<index_t>(n * vector.size() + e)),
                    2e-7 * std::fabs(vector[e]) + 1e-8);
    }
    ++models;
  }
  EXPECT_EQ(models, 2);
}

// By NumPy, in f64, from the numbers that the `gguf` package reads in the table; to five decimals.
void expect_nearest(const std::vector<Neighbour>& found, const std::vector<Neighbour>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t n = 0; n < found.size(); ++n) {
    EXPECT_EQ(found[n].id, expected[n].id);
    EXPECT_NEAR(found[n].cosine, expected[n].cosine, 6e-6);
  }
}

TEST(Published, smollm2s_queen_is_king_less_man_plus_woman) {
  NEED_PUBLISHED(path, kSmolLM2);
  const Model model = Model::load(path);
  const index_t king = 4197, man = 555, woman = 4166;
  expect_nearest(nearest_tokens(model, row(model, king), 4, {king, 644}),
                 {{3261, .81539}, {19787, .71647}, {13367, .70390}, {15731, .61947}});
  const Vector sum = sum_of({{1, row(model, king)}, {-1, row(model, man)}, {1, row(model, woman)}});
  expect_nearest(
      nearest_tokens(model, sum, 5, {king, 644, man, 1483, woman, 24626}),
      {{15731, .71576}, {9568, .62884}, {29347, .62451}, {36926, .60682}, {13367, .60675}});
}

}  // namespace
}  // namespace glasshead
