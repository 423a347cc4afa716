// rxnmapper-albert, a trained ALBERT in which reading one attention head is the published answer
// (P. Schwaller and others, Extraction of organic chemistry grammar from unsupervised learning of
// chemical reactions, Science Advances 2021): layer 10, head 5 maps the product's atoms to the
// reactants'. Expected numbers: computed from its files in f64 by an independent program, and the
// published mapping of the project's example reaction,
//   CC(C)S.CN(C)C=O.Fc1cccnc1F.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1ncccc1F
#include <cmath>

#include <gtest/gtest.h>

#include "glasshead/model.h"
#include "model/real_models.h"

namespace glasshead {
namespace {

const std::vector<index_t> kReaction{12, 16, 16, 17, 16, 18, 34, 24, 16, 23, 17, 16, 18, 16,
                                     22, 19, 24, 27, 15, 20, 15, 15, 15, 25, 15, 20, 27, 24,
                                     19, 22, 16, 17, 36, 18, 36, 24, 51, 24, 51, 29, 16, 16,
                                     17, 16, 18, 34, 15, 20, 25, 15, 15, 15, 15, 20, 27, 13};

struct Atom {
  index_t product, reactant;
  double weight;
};
const std::vector<Atom> kMap{{40, 1, .6950},  {41, 2, .8230},  {43, 4, .4894},  {45, 6, .9200},
                             {46, 24, .7372}, {48, 23, .6283}, {49, 22, .7758}, {50, 21, .5941},
                             {51, 20, .4200}, {52, 18, .7966}, {54, 17, .7107}};

index_t best_of(const View<const float, 2>& logits, index_t row) {
  return sample({logits.data + row * logits.strides[0], {logits.shape[1]}}, {}, {}, 0);
}

TEST(AtomMap, one_head_maps_every_product_atom_to_its_reactant) {
  GLASSHEAD_NEED_MODEL("rxnmapper-albert");
  Session session(Model::load(real_model("rxnmapper-albert")));
  Taps taps({{.name = "encoder.10.self.weights", .heads = {5}}});
  session.encode({{.ids = kReaction}}, &taps);
  const NamedTensors seen = taps.results();
  ASSERT_EQ(seen.size(), 1U);
  const index_t n = 56;
  ASSERT_EQ(seen[0].second.shape, (std::vector<index_t>{1, n, n}));
  for (const Atom& atom : kMap) {
    index_t best = 0;
    double sum = 0;
    for (index_t j = 0; j < n; ++j) {
      sum += seen[0].second.load(atom.product * n + j);
      if (seen[0].second.load(atom.product * n + j) > seen[0].second.load(atom.product * n + best))
        best = j;
    }
    EXPECT_EQ(best, atom.reactant) << atom.product;
    // of four decimals
    EXPECT_NEAR(seen[0].second.load(atom.product * n + best), atom.weight, 6e-5);
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

TEST(AtomMap, rows_and_logits_are_the_known_ones) {
  GLASSHEAD_NEED_MODEL("rxnmapper-albert");
  const Model model = Model::load(real_model("rxnmapper-albert"));
  EXPECT_EQ(model.parameters(), 801359);
  Session session(model);
  const View<const float, 2> rows = session.encode({{.ids = kReaction}});
  const double cls[] = {0.056314, -0.227957, 1.021263, 0.281897};
  for (index_t e = 0; e < 4; ++e) EXPECT_NEAR(rows(0, e), cls[e], 5e-6);
  const View<const float, 2> logits = session.logits(rows);
  const double first[] = {-8.69254, -14.57493, -9.47983, -11.02447};
  for (index_t id = 0; id < 4; ++id) EXPECT_NEAR(logits(1, id), first[id], 5e-5);
  for (index_t i = 1; i < 55; ++i)
    EXPECT_EQ(best_of(logits, i), kReaction[static_cast<std::size_t>(i)]) << i;
}

TEST(AtomMap, a_masked_atom_is_filled_in) {
  GLASSHEAD_NEED_MODEL("rxnmapper-albert");
  Session session(Model::load(real_model("rxnmapper-albert")));
  const std::vector<std::pair<index_t, double>> masked{
      {6, .9684}, {17, .9999}, {45, .9649}, {54, .9873}};
  for (const auto& [at, probability] : masked) {
    std::vector<index_t> ids = kReaction;
    ids[static_cast<std::size_t>(at)] = 14;
    const View<const float, 2> logits = session.logits(session.encode({{.ids = ids}}));
    const index_t right = kReaction[static_cast<std::size_t>(at)];
    EXPECT_EQ(best_of(logits, at), right);
    double sum = 0;
    for (index_t id = 0; id < logits.shape[1]; ++id)
      sum += std::exp(static_cast<double>(logits(at, id)) - logits(at, right));
    EXPECT_NEAR(1 / sum, probability, 6e-5);
  }
}

TEST(AtomMap, texts_of_a_batch_have_the_bits_that_each_has_alone) {
  GLASSHEAD_NEED_MODEL("rxnmapper-albert");
  const Model model = Model::load(real_model("rxnmapper-albert"));
  const std::vector<Session::Text> texts{{.ids = {kReaction.begin(), kReaction.begin() + 20}},
                                         {.ids = kReaction},
                                         {.ids = {12, 16, 13}}};
  Session session(model);
  const std::vector<std::uint32_t> together = bits_of(session.encode(texts));
  std::vector<std::uint32_t> alone;
  for (const Session::Text& text : texts) {
    const std::vector<std::uint32_t> more = bits_of(session.encode({text}));
    alone.insert(alone.end(), more.begin(), more.end());
  }
  EXPECT_EQ(together, alone);
  for (const int threads : {1, 2, 4}) {
    const Context context({.isa = {}, .threads = threads, .parallel_for = nullptr});
    Session other(model, {}, context);
    EXPECT_EQ(bits_of(other.encode(texts)), together);
  }
}

TEST(AtomMap, a_texts_vector_is_the_mean_of_its_rows_at_length_1) {
  GLASSHEAD_NEED_MODEL("rxnmapper-albert");
  Session session(Model::load(real_model("rxnmapper-albert")));
  const Tensor<float, 2> vectors =
      session.embed({{.ids = {12, 16, 13}}, {.ids = kReaction}, {.ids = {12, 16, 13}}});
  const View<const float, 2> rows = session.encode({{.ids = {12, 16, 13}}});
  double squares = 0;
  std::vector<double> mean(256);
  for (index_t e = 0; e < 256; ++e) {
    for (index_t i = 0; i < 3; ++i) mean[static_cast<std::size_t>(e)] += rows(i, e) / 3.0;
    squares += mean[static_cast<std::size_t>(e)] * mean[static_cast<std::size_t>(e)];
  }
  for (index_t e = 0; e < 256; ++e) {
    EXPECT_NEAR(vectors(0, e), mean[static_cast<std::size_t>(e)] / std::sqrt(squares), 1e-7);
    EXPECT_EQ(vectors(0, e), vectors(2, e));
  }
}

}  // namespace
}  // namespace glasshead
