// Changes to a run, on a tiny llama of random weights: what must follow from each follows from its
// definition.
#include <cmath>

#include <gtest/gtest.h>

#include "glasshead/model.h"
#include "model/real_models.h"

namespace glasshead {
namespace {

const std::vector<index_t> kText{5, 17, 3, 60, 9, 31, 22, 8};
const std::vector<index_t> kOther{44, 2, 61, 6, 30, 12, 50, 19};
constexpr index_t kLength = 8;

Model tiny() { return Model::load(GLASSHEAD_SOURCE_DIR "/tests/data/models/llama"); }

std::vector<std::uint32_t> logits_of(Session& session, const std::vector<index_t>& text,
                                     Taps* taps = nullptr) {
  session.truncate(0, 0);
  return bits_of(session.forward({{.ids = text}}, LogitRows::all, taps));
}

FileTensor seen(Session& session, const std::string& name, const std::vector<index_t>& text) {
  Taps taps({{.name = name}});
  logits_of(session, text, &taps);
  return taps.results().at(0).second;
}

TEST(Looking, taps_of_one_model_are_refused_by_another) {
  Taps taps({{.name = "decoder.0.self.q"}});
  Session session(tiny());
  session.forward({{.ids = kText}}, LogitRows::last, &taps);
  Session other(Model::load(GLASSHEAD_SOURCE_DIR "/tests/data/models/mistral"));
  EXPECT_THROW(other.forward({{.ids = kText}}, LogitRows::last, &taps), OptionError);
}

TEST(Changes, a_hidden_key_is_read_by_its_own_row_alone) {
  Session session(tiny());
  const std::vector<std::uint32_t> before = logits_of(session, kText);
  session.change({HidePairs{.keys = {2}}});
  const FileTensor weights = seen(session, "decoder.0.self.weights", kText);
  for (index_t h = 0; h < weights.shape[0]; ++h)
    for (index_t i = 0; i < kLength; ++i) {
      double sum = 0;
      for (index_t j = 0; j < kLength; ++j) sum += weights.load((h * kLength + i) * kLength + j);
      EXPECT_NEAR(sum, 1, 1e-6);
      EXPECT_EQ(weights.load((h * kLength + i) * kLength + 2) > 0, i == 2);
    }
  const std::vector<std::uint32_t> after = logits_of(session, kText);
  const std::size_t row = before.size() / kLength;
  for (std::size_t n = 0; n < 3 * row; ++n) ASSERT_EQ(after[n], before[n]);  // rows 0, 1, 2
  EXPECT_NE(after[7 * row], before[7 * row]);
  session.change({});
  EXPECT_EQ(logits_of(session, kText), before);
}

TEST(Changes, an_edge_is_cut_for_one_query_layer_and_head) {
  Session session(tiny());
  const FileTensor before = seen(session, "decoder.1.self.weights", kText);
  session.change({HidePairs{.keys = {1}, .queries = {4}, .layers = {1}, .heads = {3}}});
  const FileTensor after = seen(session, "decoder.1.self.weights", kText);
  for (index_t n = 0; n < before.size(); ++n) {
    const bool is_row = n / kLength == 3 * kLength + 4;
    if (is_row && n % kLength == 1) {
      EXPECT_GT(before.load(n), 0);
      EXPECT_EQ(after.load(n), 0);
    } else if (!is_row) {
      EXPECT_EQ(after.load(n), before.load(n)) << n;
    }
  }
}

TEST(Changes, steps_and_whole_texts_agree_under_a_change) {
  Session session(tiny());
  session.change({HidePairs{.keys = {0, 3}}, ReplaceHead{.layer = 0, .head = 2}});
  const std::vector<std::uint32_t> whole = logits_of(session, kText);
  session.truncate(0, 0);
  std::vector<std::uint32_t> steps;
  for (const index_t id : kText) {
    const std::vector<std::uint32_t> more = bits_of(session.forward({{.ids = {id}}}));
    steps.insert(steps.end(), more.begin(), more.end());
  }
  EXPECT_EQ(steps, whole);
}

TEST(Changes, without_its_heads_a_layer_adds_nothing) {
  const Model model = tiny();
  Session session(model);
  std::vector<Change> changes;
  for (index_t h = 0; h < model.heads(1); ++h)
    changes.push_back(ReplaceHead{.layer = 1, .head = h});
  session.change(changes);
  const FileTensor projected = seen(session, "decoder.1.self.projected", kText);
  for (index_t n = 0; n < projected.size(); ++n) ASSERT_EQ(projected.load(n), 0);
  // One head: the others keep theirs.
  session.change({});
  const FileTensor out = seen(session, "decoder.1.self.out", kText);
  const std::vector<float> given(static_cast<std::size_t>(out.shape[2]), 0.5F);
  session.change({ReplaceHead{.layer = 1, .head = 1, .out = given}});
  const FileTensor changed = seen(session, "decoder.1.self.out", kText);
  const index_t head = out.shape[1] * out.shape[2];
  for (index_t n = 0; n < out.size(); ++n)
    ASSERT_EQ(changed.load(n), n / head == 1 ? 0.5 : out.load(n)) << n;
}

TEST(Changes, rows_patched_from_another_run_give_that_runs_result) {
  Session session(tiny());
  const std::vector<std::uint32_t> other = logits_of(session, kOther);
  for (const char* name : {"embedding", "decoder.1.in"}) {
    const FileTensor rows = seen(session, name, kOther);
    session.change({Patch{.name = name, .values = rows}});
    EXPECT_EQ(logits_of(session, kText), other) << name;
    session.change({});
  }
  // q of one head's layer, all heads, from the run itself: nothing changes.
  const std::vector<std::uint32_t> plain = logits_of(session, kText);
  const FileTensor q = seen(session, "decoder.1.self.q", kText);
  session.change({Patch{.name = "decoder.1.self.q", .values = q}});
  EXPECT_EQ(logits_of(session, kText), plain);
}

TEST(Changes, a_patch_begins_at_its_position) {
  Session session(tiny());
  const FileTensor rows = seen(session, "decoder.0.out", kText);
  FileTensor one = make_tensor(DType::f32, {1, rows.shape[1]});
  session.change({Patch{.name = "decoder.0.out", .values = one, .position = 5}});
  const FileTensor patched = seen(session, "decoder.0.out", kText);
  for (index_t n = 0; n < rows.size(); ++n)
    ASSERT_EQ(patched.load(n), n / rows.shape[1] == 5 ? 0 : rows.load(n));
}

TEST(Changes, everything_that_the_model_has_no_place_for_is_said) {
  Session session(tiny());
  std::string said;
  try {
    session.change({HidePairs{.keys = {}, .layers = {9}, .heads = {77}},
                    ReplaceHead{.layer = 0, .head = 99},
                    ReplaceHead{.layer = 0, .head = 0, .out = {1}},
                    Patch{.name = "decoder.0.self.weights", .values = {}},
                    Patch{.name = "nowhere", .values = {}},
                    Patch{.name = "decoder.0.out", .values = {DType::f32, {2, 1000}, {}, ""}},
                    Patch{.name = "embedding", .values = make_tensor(DType::f32, {2, 3})}});
  } catch (const OptionError& error) {
    said = error.what();
  }
  for (const char* part :
       {"without keys", "layer 9", "head 77", "head 99", "1 numbers for head 0.0",
        "decoder.0.self.weights: cannot be patched", "nowhere: this model has no such place",
        "decoder.0.out: 0 bytes, which are not the numbers of its shape",
        "embedding: rows of 3 numbers"})
    EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
}

TEST(Changes, the_lens_on_the_last_layer_gives_the_logits) {
  const Model model = tiny();
  Session session(model);
  const std::vector<std::uint32_t> logits = logits_of(session, kText);
  const FileTensor rows =
      seen(session, "decoder." + std::to_string(model.layers() - 1) + ".out", kText);
  Tensor<float, 2> copy({rows.shape[0], rows.shape[1]});
  for (index_t n = 0; n < rows.size(); ++n) copy.data()[n] = static_cast<float>(rows.load(n));
  EXPECT_EQ(bits_of(session.lens(copy)), logits);
}

TEST(Changes, probabilities_and_their_divergence) {
  const std::vector<float> p{0, 0}, q{0, std::log(3.0F)};  // 1/2 1/2, and 1/4 3/4
  const View<const float, 1> before(p.data(), {2}), after(q.data(), {2});
  EXPECT_NEAR(kl_divergence(before, after), 0.5 * std::log(4.0 / 3), 1e-7);
  EXPECT_EQ(kl_divergence(before, before), 0);
  const std::vector<TokenProbability> best = most_probable(after, 5);
  ASSERT_EQ(best.size(), 2U);
  EXPECT_EQ(best[0].id, 1);
  EXPECT_NEAR(best[0].probability, 0.75, 1e-7);
  EXPECT_EQ(most_probable(before, 1)[0].id, 0);
}

}  // namespace
}  // namespace glasshead
