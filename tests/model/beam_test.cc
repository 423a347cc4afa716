// Beam search and the session it is given: what it takes, and what it leaves.
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
