// Writing, and beam search: where they end, and what they leave of the session they are given.
#include <gtest/gtest.h>

#include "glasshead/model.h"
#include "model/session_impl.h"

namespace glasshead {
namespace {

Model fixture(const std::string& name) {
  return Model::load(GLASSHEAD_SOURCE_DIR "/tests/data/models/" + name);
}

TEST(BeamSearch, ends_at_the_models_last_position) {
  const Model model = fixture("gpt2");
  const index_t limit = model.position_limit();
  ASSERT_GT(limit, 4);
  Session session(model);
  const std::vector<index_t> prompt(static_cast<std::size_t>(limit - 3), 5);
  const std::vector<Beam> beams = beam_search(session, prompt, {.beams = 3, .max_tokens = 50});
  ASSERT_FALSE(beams.empty());
  // The prompt leaves three positions, and one more id follows the last.
  for (const Beam& beam : beams) {
    EXPECT_LE(beam.ids.size(), 4U);
    if (!beam.is_finished) {
      EXPECT_EQ(beam.ids.size(), 4U);
    }
  }
}

TEST(Generate, says_whether_its_length_or_the_models_last_position_ended_it) {
  const Model model = fixture("gpt2");
  const auto limit = static_cast<std::size_t>(model.position_limit());
  const std::vector<index_t> prompt(limit - 3, 5);
  Session session(model);
  const Generation text = generate(session, prompt, {.max_tokens = 50, .stops_at_eos = false});
  EXPECT_EQ(text.why, StopReason::position_limit);
  EXPECT_STREQ(name(text.why), "position_limit");
  EXPECT_EQ(text.ids.size(), 4U);  // three that are read, and one that follows the last position
  for (const index_t most : {3, 4}) {
    Session other(model);
    const Generation cut = generate(other, prompt, {.max_tokens = most, .stops_at_eos = false});
    EXPECT_EQ(cut.why, StopReason::length);
    EXPECT_EQ(static_cast<index_t>(cut.ids.size()), most);
  }
}

TEST(BeamSearch, leaves_the_session_as_it_was) {
  Session session(fixture("llama"));
  session.forward({{.ids = {3, 4, 5}}});
  const index_t bytes = session.cache_bytes();
  beam_search(session, {6, 7}, {.beams = 4, .max_tokens = 20});
  EXPECT_EQ(session.length(0), 3);
  EXPECT_EQ(session.cache_bytes(), bytes);
  EXPECT_EQ(session.add(), 1);
}

TEST(BeamSearch, leaves_nothing_behind_when_the_prompt_is_refused) {
  Session session(fixture("llama"));
  EXPECT_THROW(beam_search(session, {6, 6700}, {.beams = 4, .max_tokens = 20}), OptionError);
  EXPECT_EQ(session.add(), 1);
}

// A step's forks are as many as there are beams, beside those that they come from.
TEST(BeamSearch, uses_the_caches_places_of_dropped_texts_again) {
  Session session(fixture("llama"));
  beam_search(session, {6, 7}, {.beams = 3, .max_tokens = 30});
  for (const KvCache& cache : session.impl().self)
    EXPECT_LE(cache.sequences(), 1 + 1 + 2 * 3);  // an empty one, sequence 0, and the forks
}

}  // namespace
}  // namespace glasshead
