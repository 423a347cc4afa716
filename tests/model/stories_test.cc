// stories260K, a trained llama of 260,032 parameters, against numbers computed from its files in
// f64 by an independent program. In the text that it writes the best logit leads by 0.0042 or more,
// so f32 must choose the same tokens.
#include <cmath>

#include <gtest/gtest.h>

#include "glasshead/model.h"
#include "model/real_models.h"

namespace glasshead {
namespace {

const std::vector<index_t> kGreedy{
    403, 407, 261, 378, 432, 383, 286, 261, 376, 298, 315, 421, 395, 317, 426, 338, 401, 396, 267,
    337, 410, 408, 419, 292, 411, 322, 265, 282, 295, 433, 426, 385, 328, 432, 358, 394, 261, 370,
    432, 352, 266, 268, 388, 426, 338, 391, 266, 267, 337, 335, 312, 432, 398, 312, 286, 267, 414,
    270, 333, 415, 426, 13,  438, 310, 439, 419, 357, 336, 432, 313, 438, 310, 432, 278, 316, 439,
    419, 298, 414, 267, 265, 282, 295, 433, 426, 436, 317, 286, 296, 418, 269, 279, 292, 416, 439,
    413, 409, 416, 327, 263, 415, 294, 267, 400, 426, 338, 336, 432, 313, 442, 391, 267, 337, 335,
    364, 420, 268, 388, 432, 398, 359, 280, 303, 439, 413, 272, 417, 264, 312, 426, 436, 13,  438,
    310, 286, 296, 418, 269, 279, 292, 416, 439, 413, 409, 416, 327, 263, 415, 294, 267, 400, 426,
    338, 336, 432, 313, 442, 439, 423, 262, 304, 420, 422, 432, 317, 426, 359, 279, 292, 416, 439,
    413, 409, 416, 327, 263, 415, 294, 267, 400, 426, 436, 13,  438, 310, 279, 292, 416, 439, 413,
    391, 267, 281, 421, 427, 311, 357, 432, 384, 358, 336, 432, 313, 442, 439, 423, 262, 304, 420,
    422, 432, 357, 426, 359, 279, 292, 416, 439, 413, 409, 416, 327, 263, 415, 294, 267, 400, 426,
    436, 320, 285, 357, 336, 432, 313, 455, 289, 439, 413, 263, 304, 420, 422, 432, 317, 426, 410,
    448, 411, 280, 303, 281, 421, 427, 364, 426};

std::vector<index_t> prompt_of(index_t tokens) {
  std::vector<index_t> ids{1};
  ids.insert(ids.end(), kGreedy.begin(), kGreedy.begin() + tokens - 1);
  return ids;
}

TEST(Stories, continues_from_bos_with_the_known_text) {
  GLASSHEAD_NEED_MODEL("stories260K");
  const Model model = Model::load(real_model("stories260K"));
  Session session(model);
  const Generation text = generate(session, {1}, {.max_tokens = 256});
  EXPECT_EQ(text.ids, kGreedy);
  EXPECT_EQ(text.why, StopReason::length);
  EXPECT_EQ(session.length(0), 256);  // the last token chosen was not read
}

TEST(Stories, says_what_it_is) {
  GLASSHEAD_NEED_MODEL("stories260K");
  const Model model = Model::load(real_model("stories260K"));
  EXPECT_EQ(model.kind(), ModelKind::decoder);
  EXPECT_EQ(model.layers(), 5);
  EXPECT_EQ(model.heads(4), 8);
  EXPECT_EQ(model.d_model(), 64);
  EXPECT_EQ(model.vocab(), 512);
  EXPECT_EQ(model.parameters(), 260032);
}

TEST(Stories, logits_after_bos) {
  GLASSHEAD_NEED_MODEL("stories260K");
  Session session(Model::load(real_model("stories260K")));
  const View<const float, 2> logits = session.forward({{.ids = {1}}});
  const double expected[] = {-6.22291, 8.40434, -6.22374, -6.22254, -6.22195, -6.22288};
  double sum = 0;
  index_t best = 0;
  for (index_t id = 0; id < 512; ++id) {
    if (id < 6) {
      // printed with five decimals; f32's own error is below 1e-5 here
      EXPECT_NEAR(logits(0, id), expected[id], 1.5e-5);
    }
    sum += std::exp(static_cast<double>(logits(0, id)));
    if (logits(0, id) > logits(0, best)) best = id;
  }
  EXPECT_EQ(best, 403);
  EXPECT_NEAR(logits(0, best), 17.02352, 1.5e-5);
  EXPECT_NEAR(std::log(sum), 17.26726, 1.5e-5);
}

TEST(Stories, attention_weights_of_three_heads) {
  GLASSHEAD_NEED_MODEL("stories260K");
  Session session(Model::load(real_model("stories260K")));
  const std::vector<std::pair<Tap, std::vector<double>>> known{
      {{.name = "decoder.0.self.weights", .heads = {0}},
       {0.025631, 0.016113, 0.045659, 0.309499, 0.603098}},
      {{.name = "decoder.2.self.weights", .heads = {3}},
       {0.262486, 0.460443, 0.173613, 0.040340, 0.063117}},
      {{.name = "decoder.4.self.weights", .heads = {7}},
       {0.545061, 0.277723, 0.090500, 0.025924, 0.060791}}};
  std::vector<Tap> wanted;
  for (const auto& [tap, row] : known) wanted.push_back(tap);
  Taps taps(wanted);
  session.forward({{.ids = prompt_of(5)}}, LogitRows::none, &taps);
  const NamedTensors seen = taps.results();
  ASSERT_EQ(seen.size(), known.size());
  for (std::size_t n = 0; n < known.size(); ++n) {
    EXPECT_EQ(seen[n].first, known[n].first.name);
    ASSERT_EQ(seen[n].second.shape, (std::vector<index_t>{1, 5, 5}));
    for (index_t j = 0; j < 5; ++j)  // of six decimals
      EXPECT_NEAR(seen[n].second.load(4 * 5 + j), known[n].second[static_cast<std::size_t>(j)],
                  1e-6);
    EXPECT_EQ(seen[n].second.load(3 * 5 + 4), 0);  // a later key
  }
}

// The logits of every token of a text, read in parts of the given sizes.
std::vector<std::uint32_t> logits_in_parts(Session& session, const std::vector<index_t>& ids,
                                           index_t part) {
  session.truncate(0, 0);
  std::vector<std::uint32_t> bits;
  for (index_t begin = 0; begin < static_cast<index_t>(ids.size()); begin += part) {
    const index_t end = std::min(begin + part, static_cast<index_t>(ids.size()));
    const std::vector<std::uint32_t> more = bits_of(
        session.forward({{.ids = {ids.begin() + begin, ids.begin() + end}}}, LogitRows::all));
    bits.insert(bits.end(), more.begin(), more.end());
  }
  return bits;
}

TEST(Stories, parts_of_any_size_and_any_threads_give_the_same_bits) {
  GLASSHEAD_NEED_MODEL("stories260K");
  const Model model = Model::load(real_model("stories260K"));
  const std::vector<index_t> ids = prompt_of(137);  // beyond a block of 128 keys
  Session whole(model);
  const std::vector<std::uint32_t> expected = logits_in_parts(whole, ids, 137);
  for (const index_t part : {1, 7, 64}) EXPECT_EQ(logits_in_parts(whole, ids, part), expected);
  for (const int threads : {1, 2, 4}) {
    const Context context({.isa = {}, .threads = threads, .parallel_for = nullptr});
    Session session(model, {.rows_at_once = 50}, context);
    EXPECT_EQ(logits_in_parts(session, ids, 137), expected);
  }
}

TEST(Stories, every_instruction_set_gives_the_same_bits) {
  GLASSHEAD_NEED_MODEL("stories260K");
  const Model model = Model::load(real_model("stories260K"));
  const std::vector<index_t> ids = prompt_of(20);
  Session session(model);
  const std::vector<std::uint32_t> expected = logits_in_parts(session, ids, 20);
  for (const KernelSetInfo& set : kernel_sets()) {
    if (!set.is_supported) continue;
    const Context context({.isa = set.name, .threads = 1, .parallel_for = nullptr});
    Session with_set(model, {}, context);
    EXPECT_EQ(logits_in_parts(with_set, ids, 20), expected) << set.name;
  }
}

TEST(Stories, texts_of_a_batch_have_the_bits_that_each_has_alone) {
  GLASSHEAD_NEED_MODEL("stories260K");
  const Model model = Model::load(real_model("stories260K"));
  const std::vector<std::vector<index_t>> texts{prompt_of(9), prompt_of(1), prompt_of(140),
                                                prompt_of(33)};
  Session together(model, {.rows_at_once = 64});
  std::vector<Session::Part> parts, next;
  for (const std::vector<index_t>& text : texts) {
    const index_t sequence = parts.empty() ? 0 : together.add();
    parts.push_back({sequence, text});
    next.push_back({sequence, {403}});
  }
  const View<const float, 2> prompts = together.forward(parts);
  ASSERT_EQ(prompts.shape[0], 4);
  std::vector<std::vector<std::uint32_t>> first;
  for (index_t n = 0; n < 4; ++n) first.push_back(row_bits(prompts, n));
  const View<const float, 2> steps = together.forward(next);
  for (std::size_t n = 0; n < texts.size(); ++n) {
    Session alone(model);
    EXPECT_EQ(bits_of(alone.forward({{.ids = texts[n]}})), first[n]);
    EXPECT_EQ(bits_of(alone.forward({{.ids = {403}}})), row_bits(steps, static_cast<index_t>(n)));
    EXPECT_EQ(together.length(parts[n].sequence), alone.length(0));
  }
}

TEST(Stories, a_text_cut_back_or_forked_goes_on_as_if_read_anew) {
  GLASSHEAD_NEED_MODEL("stories260K");
  const Model model = Model::load(real_model("stories260K"));
  Session session(model), fresh(model);
  const std::vector<std::uint32_t> expected = bits_of(fresh.forward({{.ids = prompt_of(40)}}));
  session.forward({{.ids = prompt_of(39)}});
  const index_t fork = session.fork(0);
  session.forward({{.ids = {1, 2, 3}}});
  session.truncate(0, 39);
  EXPECT_EQ(bits_of(session.forward({{0, {kGreedy[38]}}})), expected);
  EXPECT_EQ(bits_of(session.forward({{fork, {kGreedy[38]}}})), expected);
  session.drop(fork);
  const index_t again = session.add();
  EXPECT_EQ(again, fork);
  EXPECT_EQ(bits_of(session.forward({{again, prompt_of(40)}})), expected);
}

TEST(Stories, looking_changes_no_bit_and_parts_add_up_to_the_whole) {
  GLASSHEAD_NEED_MODEL("stories260K");
  const Model model = Model::load(real_model("stories260K"));
  std::vector<Tap> all;
  for (const std::string& name : model.tap_names()) all.push_back({.name = name});
  Session session(model);
  const std::vector<index_t> ids = prompt_of(30);
  const std::vector<std::uint32_t> plain = bits_of(session.forward({{.ids = ids}}, LogitRows::all));
  session.truncate(0, 0);
  Taps whole(all), parts(all);
  EXPECT_EQ(bits_of(session.forward({{.ids = ids}}, LogitRows::all, &whole)), plain);
  session.truncate(0, 0);
  for (const index_t id : ids) session.forward({{.ids = {id}}}, LogitRows::all, &parts);
  const NamedTensors a = whole.results(), b = parts.results();
  ASSERT_EQ(a.size(), all.size());
  ASSERT_EQ(b.size(), a.size());
  for (std::size_t n = 0; n < a.size(); ++n) {
    EXPECT_EQ(a[n].first, all[n].name);
    EXPECT_TRUE(a[n].second == b[n].second) << a[n].first;
  }
}

TEST(Stories, keys_and_values_take_memory_by_the_page) {
  GLASSHEAD_NEED_MODEL("stories260K");
  Session session(Model::load(real_model("stories260K")));
  session.forward({{.ids = prompt_of(100)}});
  const index_t one_page = session.cache_bytes();
  EXPECT_EQ(one_page, 5 * 128 * 4 * (8 + 8) * 4);  // layers, keys, kv heads, numbers, bytes
  session.forward({{.ids = prompt_of(100)}});
  EXPECT_EQ(session.cache_bytes(), 2 * one_page);
  session.truncate(0, 0);
  EXPECT_EQ(session.cache_bytes(), 0);
}

template <class F>
std::string said_by(F call) {
  try {
    call();
  } catch (const OptionError& error) {
    return error.what();
  }
  return "nothing";
}

TEST(Stories, refuses_what_makes_no_sense_with_all_of_it) {
  GLASSHEAD_NEED_MODEL("stories260K");
  Session session(Model::load(real_model("stories260K")));
  Taps taps({{.name = "decoder.9.self.q"}, {.name = "decoder.0.self.weights", .heads = {8}}});
  const std::string said = said_by([&] {
    session.forward({{.sequence = 3, .ids = {1}}, {.ids = {1, 512}}, {.ids = {}}}, LogitRows::last,
                    &taps);
  });
  EXPECT_NE(said.find("parts[0].sequence: 3; no such sequence"), std::string::npos) << said;
  EXPECT_NE(said.find("id 512 (number 1); this model's are 0 to 511"), std::string::npos) << said;
  EXPECT_NE(said.find("parts[2].ids: no ids"), std::string::npos) << said;
  EXPECT_NE(said.find("parts[2].sequence: 0 has a part already"), std::string::npos) << said;
  EXPECT_NE(said.find("decoder.9.self.q: this model has no such place"), std::string::npos) << said;
  EXPECT_NE(said.find("head 8; decoder.0.self.weights has 8"), std::string::npos) << said;
  EXPECT_EQ(session.length(0), 0);
  EXPECT_NE(said_by([&] { session.encode({{.ids = {1}}}); }).find("is a decoder"),
            std::string::npos);
  EXPECT_NE(said_by([&] { session.truncate(0, 1); }).find("the sequence has 0 tokens"),
            std::string::npos);
  EXPECT_NE(said_by([&] {
              generate(session, {1}, {.max_tokens = -1, .sampling = {.top_p = 2}});
            }).find("max_tokens: -1"),
            std::string::npos);
}

TEST(Stories, generation_ends_where_it_is_told_to) {
  GLASSHEAD_NEED_MODEL("stories260K");
  Session session(Model::load(real_model("stories260K")));
  Generation text = generate(session, {1}, {.max_tokens = 50, .stop_ids = {kGreedy[5]}});
  EXPECT_EQ(text.ids, std::vector<index_t>(kGreedy.begin(), kGreedy.begin() + 5));
  EXPECT_EQ(text.why, StopReason::end_id);
  session.truncate(0, 0);
  text = generate(session, {1},
                  {.max_tokens = 50, .on_token = [](index_t id) { return id != kGreedy[4]; }});
  EXPECT_EQ(text.ids, std::vector<index_t>(kGreedy.begin(), kGreedy.begin() + 5));
  EXPECT_EQ(text.why, StopReason::callback);
  session.truncate(0, 0);
  // Each id as one letter: the stop text comes over two tokens.
  const auto letter = [](index_t id) { return std::string(1, static_cast<char>('0' + id % 64)); };
  text = generate(
      session, {1},
      {.max_tokens = 50, .stop = {letter(kGreedy[2]) + letter(kGreedy[3])}, .text_of = letter});
  EXPECT_EQ(text.ids, std::vector<index_t>(kGreedy.begin(), kGreedy.begin() + 4));
  EXPECT_EQ(text.why, StopReason::stop_text);
}

}  // namespace
}  // namespace glasshead
