// Weights in blocks, as GGUF files have them (Q4_0, Q4_1, Q5_0, Q5_1, Q8_0; Q4_K, Q5_K, Q6_K), give
// the same bits however a text is read, as weights in floating point do.
#include <algorithm>

#include <gtest/gtest.h>

#include "glasshead/context.h"
#include "glasshead/model.h"
#include "model/real_models.h"

namespace glasshead {
namespace {

using Ids = std::vector<index_t>;
using Bits = std::vector<std::uint32_t>;

// Some ids of the fixtures' 67, no two neighbours alike.
Ids text_of(index_t length, index_t first = 1) {
  Ids ids;
  for (index_t n = 0; n < length; ++n) ids.push_back((first + 7 * n * n + 3 * n) % 67);
  return ids;
}

class Quantised : public testing::TestWithParam<const char*> {
 protected:
  Model model() const {
    return Model::load(std::string(GLASSHEAD_SOURCE_DIR "/tests/data/models/") + GetParam() +
                       "/model.gguf");
  }
};

// The logits of every token, read in parts of this size.
Bits logits_in_parts(Session& session, const Ids& ids, index_t part) {
  session.truncate(0, 0);
  Bits bits;
  for (index_t begin = 0; begin < static_cast<index_t>(ids.size()); begin += part) {
    const index_t end = std::min(begin + part, static_cast<index_t>(ids.size()));
    const Bits more = bits_of(
        session.forward({{.ids = {ids.begin() + begin, ids.begin() + end}}}, LogitRows::all));
    bits.insert(bits.end(), more.begin(), more.end());
  }
  return bits;
}

TEST_P(Quantised, parts_of_any_size_and_any_threads_give_the_same_bits) {
  const Ids ids = text_of(60);
  Session whole(model());
  const Bits expected = logits_in_parts(whole, ids, 60);
  ASSERT_EQ(expected.size(), 60U * 67U);
  for (const index_t part : {1, 7, 32}) EXPECT_EQ(logits_in_parts(whole, ids, part), expected);
  for (const int threads : {1, 2, 4}) {
    const Context context({.isa = {}, .threads = threads, .parallel_for = nullptr});
    Session session(model(), {.rows_at_once = 17}, context);
    EXPECT_EQ(logits_in_parts(session, ids, 60), expected) << threads << " threads";
    EXPECT_EQ(logits_in_parts(session, ids, 1), expected) << threads << " threads, by token";
  }
}

TEST_P(Quantised, every_instruction_set_gives_the_same_bits) {
  const Ids ids = text_of(12);
  Session session(model());
  const Bits expected = logits_in_parts(session, ids, 12);
  for (const KernelSetInfo& set : kernel_sets()) {
    if (!set.is_supported) continue;
    const Context context({.isa = set.name, .threads = 1, .parallel_for = nullptr});
    Session with_set(model(), {}, context);
    EXPECT_EQ(logits_in_parts(with_set, ids, 12), expected) << set.name;
  }
}

TEST_P(Quantised, texts_of_a_batch_have_the_bits_that_each_has_alone) {
  const std::vector<Ids> texts{text_of(9), text_of(1, 5), text_of(40, 11), text_of(23, 2)};
  Session together(model(), {.rows_at_once = 16});
  std::vector<Session::Part> parts, next;
  for (const Ids& text : texts) {
    const index_t sequence = parts.empty() ? 0 : together.add();
    parts.push_back({sequence, text});
    next.push_back({sequence, {3}});
  }
  const View<const float, 2> prompts = together.forward(parts);
  std::vector<Bits> first;
  for (std::size_t n = 0; n < texts.size(); ++n)
    first.push_back(row_bits(prompts, static_cast<index_t>(n)));
  const View<const float, 2> steps = together.forward(next);
  for (std::size_t n = 0; n < texts.size(); ++n) {
    Session alone(model());
    EXPECT_EQ(bits_of(alone.forward({{.ids = texts[n]}})), first[n]);
    EXPECT_EQ(bits_of(alone.forward({{.ids = {3}}})), row_bits(steps, static_cast<index_t>(n)));
  }
}

TEST_P(Quantised, a_text_cut_back_or_forked_goes_on_as_if_read_anew) {
  const Ids ids = text_of(30), before(ids.begin(), ids.end() - 1);
  Session session(model()), fresh(model());
  const Bits expected = bits_of(fresh.forward({{.ids = ids}}));
  session.forward({{.ids = before}});
  const index_t fork = session.fork(0);
  session.forward({{.ids = {5, 6, 7}}});
  session.truncate(0, 29);
  EXPECT_EQ(bits_of(session.forward({{0, {ids.back()}}})), expected);
  EXPECT_EQ(bits_of(session.forward({{fork, {ids.back()}}})), expected);
  // A fork that takes the place of a dropped one, in the caches too.
  session.drop(fork);
  session.truncate(0, 29);
  const index_t again = session.fork(0);
  EXPECT_EQ(again, fork);
  session.forward({{0, {8, 9}}});
  EXPECT_EQ(bits_of(session.forward({{again, {ids.back()}}})), expected);
}

INSTANTIATE_TEST_SUITE_P(blocks, Quantised,
                         testing::Values("llama-legacy-quants", "llama-k-quants"));

}  // namespace
}  // namespace glasshead
