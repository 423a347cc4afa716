// Studies of heads and taps of scores, on the tiny models of every family. What a study says of a
// head is compared with the definitions (head_study.h), computed in f64 from the weights that a tap
// keeps: those are compared with transformers elsewhere (parity_test.cc).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "glasshead/head_study.h"
#include "glasshead/model.h"
#include "model/parity.h"
#include "model/real_models.h"

namespace glasshead {
namespace {

Model tiny(const std::string& name) {
  return Model::load(GLASSHEAD_SOURCE_DIR "/tests/data/models/" + name);
}

// A text in which tokens come again, some of them next to each other.
std::vector<index_t> some_text(index_t length, index_t vocab) {
  std::vector<index_t> ids;
  for (index_t i = 0; i < length; ++i)
    ids.push_back(3 + (i % 7 == 6 ? 2 : i * i % 23) % (vocab - 3));
  return ids;
}

// What a model of any kind reads, looked at.
void look(Session& session, const std::vector<index_t>& ids, Taps* taps, HeadStudy* heads) {
  switch (session.model().kind()) {
    case ModelKind::decoder:
      session.truncate(0, 0);
      session.forward({{.ids = ids}}, LogitRows::last, taps, heads);
      return;
    case ModelKind::encoder:
      session.encode({{.ids = ids}}, taps, heads);
      return;
    case ModelKind::encoder_decoder: {
      const index_t sequence = session.read(ids, taps, heads);
      session.forward({{sequence, {ids.rbegin(), ids.rend()}}}, LogitRows::last, taps, heads);
      return;
    }
  }
}

// Taps of one part of every attention that the model has.
std::vector<Tap> taps_of(const Model& model, const std::string& part) {
  std::vector<Tap> taps;
  for (const std::string& name : model.tap_names())
    if (name.ends_with("." + part)) taps.push_back({.name = name});
  return taps;
}

const double kNone = std::numeric_limits<double>::quiet_NaN();

// The definitions, to the letter.
HeadMetrics by_definition(const FileTensor& weights, index_t head, const std::vector<index_t>& ids,
                          bool is_cross) {
  const index_t n = weights.shape[1], keys = weights.shape[2];
  const auto w = [&](index_t i, index_t j) { return weights.load((head * n + i) * keys + j); };
  HeadMetrics sum;
  index_t repeated = 0;
  for (index_t i = 0; i < n; ++i) {
    sum.first += w(i, 0);
    for (index_t j = 0; j < keys; ++j) sum.entropy -= w(i, j) > 0 ? w(i, j) * std::log(w(i, j)) : 0;
    if (is_cross) continue;
    if (i > 0) sum.previous += w(i, i - 1);
    sum.self += w(i, i);
    bool is_repeated = false;
    for (index_t j = 0; j < keys; ++j)
      sum.distance += w(i, j) * static_cast<double>(std::abs(i - j));
    for (index_t j = 1; j <= i; ++j)
      if (ids[static_cast<std::size_t>(j - 1)] == ids[static_cast<std::size_t>(i)]) {
        is_repeated = true;
        sum.induction += w(i, j);
      }
    repeated += is_repeated ? 1 : 0;
  }
  const auto count = static_cast<double>(n);
  return {"",
          0,
          head,
          sum.first / count,
          is_cross || n == 1 ? kNone : sum.previous / (count - 1),
          is_cross ? kNone : sum.self / count,
          sum.entropy / count,
          is_cross ? kNone : sum.distance / count,
          is_cross || repeated == 0 ? kNone : sum.induction / static_cast<double>(repeated)};
}

void expect_close(double found, double expected, double tolerance, const std::string& what) {
  if (std::isnan(expected))
    EXPECT_TRUE(std::isnan(found)) << what << ": " << found;
  else
    EXPECT_NEAR(found, expected, tolerance) << what;
}

// The bound of head_study.h, in roundings to f32.
double bound(index_t keys) { return (200 + static_cast<double>(keys) / 16) * std::ldexp(1, -24); }

void expect_metrics(const HeadMetrics& found, const HeadMetrics& expected, index_t keys) {
  const std::string at = found.attention + " head " + std::to_string(found.head) + " ";
  const double one = bound(keys), n = static_cast<double>(keys);
  expect_close(found.first, expected.first, one, at + "first");
  expect_close(found.previous, expected.previous, one, at + "previous");
  expect_close(found.self, expected.self, one, at + "self");
  expect_close(found.entropy, expected.entropy, one * std::max(1.0, std::log(n)), at + "entropy");
  expect_close(found.distance, expected.distance, one * n, at + "distance");
  expect_close(found.induction, expected.induction, one, at + "induction");
}

// Both pictures of a head against all its weights.
void expect_pictures(const FileTensor& mean, const FileTensor& max, const FileTensor& weights,
                     index_t cell) {
  const index_t heads = weights.shape[0], n = weights.shape[1], keys = weights.shape[2];
  const index_t rows = (n + cell - 1) / cell, columns = (keys + cell - 1) / cell;
  ASSERT_EQ(mean.shape, (std::vector<index_t>{heads, rows, columns}));
  ASSERT_EQ(max.shape, mean.shape);
  for (index_t at = 0; at < mean.size(); ++at) {
    const index_t h = at / (rows * columns), r = at / columns % rows, c = at % columns;
    double sum = 0, largest = 0;
    index_t pairs = 0;
    for (index_t i = r * cell; i < std::min(n, (r + 1) * cell); ++i)
      for (index_t j = c * cell; j < std::min(keys, (c + 1) * cell); ++j, ++pairs) {
        const double w = weights.load((h * n + i) * keys + j);
        sum += w;
        largest = std::max(largest, w);
      }
    ASSERT_NEAR(mean.load(at), sum / static_cast<double>(pairs), bound(keys));
    ASSERT_NEAR(max.load(at), largest, bound(keys));
  }
}

// A study of a text beside all its weights.
void expect_study(const Model& model, const std::vector<index_t>& ids, index_t cell) {
  Session session(model);
  Taps taps([&] {
    std::vector<Tap> all = taps_of(model, "self.weights");
    for (const Tap& tap : taps_of(model, "cross.weights")) all.push_back(tap);
    return all;
  }());
  HeadStudy heads({.cell = cell});
  look(session, ids, &taps, &heads);
  std::map<std::string, FileTensor> weights, seen;
  for (auto& [name, tensor] : taps.results()) weights[name] = tensor;
  for (auto& [name, tensor] : heads.results()) seen[name] = tensor;
  EXPECT_EQ(seen.size(), 3 * weights.size());
  const std::vector<index_t> written(ids.rbegin(), ids.rend());
  std::set<std::string> attentions;
  for (const HeadMetrics& found : heads.metrics()) {
    attentions.insert(found.attention);
    const FileTensor& all = weights.at(found.attention + ".weights");
    const bool is_cross = found.attention.ends_with("cross");
    const bool is_written =
        model.kind() == ModelKind::encoder_decoder && found.attention.starts_with("decoder");
    expect_metrics(found, by_definition(all, found.head, is_written ? written : ids, is_cross),
                   all.shape[2]);
  }
  EXPECT_EQ(attentions.size(), weights.size());
  for (const std::string& name : attentions)
    expect_pictures(seen.at(name + ".mean_map"), seen.at(name + ".max_map"),
                    weights.at(name + ".weights"), cell);
}

TEST(Heads, a_study_agrees_with_all_the_weights_in_every_family) {
  for (const parity::Fixture& fixture : parity::fixtures()) {
    SCOPED_TRACE(fixture.name);
    const Model model = Model::load(fixture.path, {.context = fixture.context});
    const index_t most = model.position_limit() > 0 ? model.position_limit() : 40;
    expect_study(model, some_text(std::min<index_t>(most, 40), model.vocab()), 3);
  }
}

TEST(Heads, a_study_agrees_with_all_the_weights_over_many_blocks_of_keys) {
  // More than a chunk of 1,024 keys, and more rows than are looked at together.
  expect_study(tiny("llama"), some_text(1101, 60), 50);
  expect_study(tiny("mistral"), some_text(300, 60), 200);  // a window; cells larger than a block
  expect_study(tiny("t5"), some_text(290, 60), 64);
}

TEST(Heads, of_a_single_token_there_is_no_previous_one_and_nothing_came_again) {
  Session session(tiny("llama"));
  HeadStudy heads;
  look(session, {5}, nullptr, &heads);
  ASSERT_EQ(heads.metrics().size(), 12U);
  for (const HeadMetrics& one : heads.metrics()) {
    EXPECT_EQ(one.first, 1);
    EXPECT_EQ(one.self, 1);
    EXPECT_EQ(one.entropy, 0);
    EXPECT_EQ(one.distance, 0);
    EXPECT_TRUE(std::isnan(one.previous));
    EXPECT_TRUE(std::isnan(one.induction));
  }
}

TEST(Heads, where_all_tokens_are_one_everything_but_the_first_key_is_induction) {
  Session session(tiny("llama"));
  HeadStudy heads({.cell = 0});
  look(session, std::vector<index_t>(9, 5), nullptr, &heads);
  // Of the queries 1 to 8 each key from 1 on stands behind an equal token. Query 0 reads key 0 with
  // weight 1 and does not count.
  for (const HeadMetrics& one : heads.metrics())
    EXPECT_NEAR(one.induction, 1 - (one.first * 9 - 1) / 8, 1e-6);
  EXPECT_EQ(heads.results().size(), 2U);  // metrics alone
}

TEST(Heads, a_row_that_may_read_nothing_counts_as_nothing) {
  Session session(tiny("llama"));
  session.change({HidePairs{.keys = {0}, .queries = {0}}});
  HeadStudy heads({.cell = 2});
  look(session, {5, 6}, nullptr, &heads);
  for (const HeadMetrics& one : heads.metrics()) {
    EXPECT_NEAR(one.first + one.self, 0.5, 1e-6);
    EXPECT_NEAR(one.previous, 2 * one.first, 1e-12);
  }
}

TEST(Heads, weights_of_any_block_are_those_of_a_tap_to_the_bit) {
  for (const char* name : {"llama", "mistral", "gemma2", "bert", "t5", "qwen3"}) {
    SCOPED_TRACE(name);
    const Model model = tiny(name);
    const index_t length =
        model.position_limit() > 0 ? std::min<index_t>(model.position_limit(), 40) : 300;
    Session session(model);
    std::vector<Tap> all = taps_of(model, "self.weights");
    for (const Tap& tap : taps_of(model, "cross.weights")) all.push_back(tap);
    Taps taps(all);
    HeadStudy heads({.keeps_rows = true});
    if (model.kind() == ModelKind::decoder)
      session.change({HidePairs{.keys = {1, 7}, .queries = {9, 30}, .heads = {1}}});
    look(session, some_text(length, 60), &taps, &heads);
    for (const auto& [tap, tensor] : taps.results())
      for (const PairRange& pairs :
           {PairRange{0, length, 0, length}, PairRange{5, length - 2, 3, 12},
            PairRange{length - 1, length, length - 9, length}, PairRange{4, 4, 0, 2}}) {
        const index_t h = tensor.shape[0] - 1;
        const Tensor<float, 2> block = heads.weights(tap.substr(0, tap.rfind('.')), h, pairs);
        for (index_t i = pairs.query_begin; i < pairs.query_end; ++i)
          for (index_t j = pairs.key_begin; j < pairs.key_end; ++j)
            ASSERT_EQ(static_cast<double>(block(i - pairs.query_begin, j - pairs.key_begin)),
                      tensor.load((h * length + i) * length + j))
                << tap << " " << i << " " << j;
      }
  }
}

// Everything a look gives, as bits.
struct Look {
  std::vector<std::uint32_t> logits;
  NamedTensors heads, taps;
};

Look look_at(const Model& model, index_t rows_at_once, const Context& context) {
  Session session(model, {.rows_at_once = rows_at_once}, context);
  const std::vector<index_t> ids = some_text(300, 60);
  Taps taps({{.name = "decoder.*.self.scores", .heads = {1, 4}, .positions = {{7, 290}}}});
  HeadStudy heads({.cell = 10});
  Look all;
  all.logits = bits_of(session.forward({{.ids = ids}}, LogitRows::all, &taps, &heads));
  all.heads = heads.results();
  all.taps = taps.results();
  return all;
}

TEST(Heads, neither_parts_nor_threads_nor_instruction_sets_nor_looking_change_a_bit) {
  const Model model = tiny("llama");
  const Context one({.isa = {}, .threads = 1, .parallel_for = nullptr});
  const Look whole = look_at(model, 512, one);
  Session plain(model, {}, one);
  EXPECT_EQ(bits_of(plain.forward({{.ids = some_text(300, 60)}}, LogitRows::all)), whole.logits);
  const Context three({.isa = {}, .threads = 3, .parallel_for = nullptr});
  const Context scalar({.isa = "scalar", .threads = 1, .parallel_for = nullptr});
  for (const auto& [rows, context] :
       {std::pair<index_t, const Context*>{1, &one}, {37, &three}, {256, &three}, {100, &scalar}}) {
    const Look other = look_at(model, rows, *context);
    EXPECT_EQ(other.logits, whole.logits) << rows;
    EXPECT_EQ(other.heads, whole.heads) << rows;
    EXPECT_EQ(other.taps, whole.taps) << rows;
  }
}

TEST(Heads, of_several_texts_one_is_looked_at) {
  const Model model = tiny("llama");
  const std::vector<index_t> ids = some_text(20, 60);
  Session session(model);
  HeadStudy alone;
  look(session, ids, nullptr, &alone);
  HeadStudy among({.sequence = 1});
  session.truncate(0, 0);
  session.add();
  session.forward({{0, some_text(9, 50)}, {1, ids}}, LogitRows::last, nullptr, &among);
  EXPECT_EQ(among.results(), alone.results());
}

// --- while a text is written ---

// What a study says of rows, as bits: a NaN is equal to itself.
std::vector<std::uint64_t> bits_of(const Tensor<double, 3>& rows) {
  std::vector<std::uint64_t> bits(static_cast<std::size_t>(rows.size()));
  std::memcpy(bits.data(), rows.data(), bits.size() * sizeof(double));
  return bits;
}

std::vector<std::string> attentions_of(const HeadStudy& heads) {
  std::vector<std::string> names;
  for (const HeadMetrics& one : heads.metrics())
    if (names.empty() || names.back() != one.attention) names.push_back(one.attention);
  return names;
}

TEST(Heads, a_study_of_writing_is_that_of_reading_the_whole_text_at_once) {
  for (const char* name : {"llama", "mistral", "gpt2", "gemma2", "qwen3", "t5"}) {
    SCOPED_TRACE(name);
    const Model model = tiny(name);
    const bool is_about = model.kind() == ModelKind::encoder_decoder;
    const HeadStudyOptions options{.cell = 5, .keeps_rows = true};
    Session writing(model, {.rows_at_once = 4}), reading(model);
    HeadStudy written(options), whole(options);
    const std::vector<index_t> text = some_text(11, 60);
    index_t sequence = 0, again = 0;
    if (is_about) {
      sequence = writing.read(text, nullptr, &written);
      again = reading.read(text, nullptr, &whole);
    }
    const std::vector<index_t> prompt = is_about ? std::vector{model.decoder_start()} : text;
    std::vector<index_t> all = prompt;
    for (const index_t id :
         generate(
             writing, prompt,
             {.max_tokens = 12, .stops_at_eos = false, .heads = &written, .sequence = sequence})
             .ids)
      all.push_back(id);
    ASSERT_EQ(all.size(), prompt.size() + 12);
    all.pop_back();  // nothing asked for what follows it
    ASSERT_EQ(writing.length(sequence), static_cast<index_t>(all.size()));
    reading.forward({{again, all}}, LogitRows::none, nullptr, &whole);
    EXPECT_EQ(written.results(), whole.results());
    ASSERT_EQ(attentions_of(written), attentions_of(whole));
    for (const std::string& attention : attentions_of(whole)) {
      const Tensor<double, 3> rows = written.rows(attention);
      const index_t queries =
          static_cast<index_t>(attention.starts_with("encoder") ? text.size() : all.size());
      EXPECT_EQ(rows.shape()[1], queries);
      EXPECT_EQ(bits_of(rows), bits_of(whole.rows(attention))) << attention;
    }
    const std::string last = attentions_of(whole).back();
    const auto end = static_cast<index_t>(all.size());
    const Tensor<float, 2> ours = written.weights(last, 1, {0, end, 0, 11}),
                           theirs = whole.weights(last, 1, {0, end, 0, 11});
    EXPECT_EQ(std::memcmp(ours.data(), theirs.data(),
                          static_cast<std::size_t>(ours.size()) * sizeof(float)),
              0);
  }
}

TEST(Heads, a_study_sees_the_tokens_that_the_session_holds_however_the_text_ends) {
  const Model model = tiny("llama");
  const std::vector<index_t> prompt{5, 6, 7};
  Session plain(model);
  const std::vector<index_t> ids = generate(plain, prompt, {.max_tokens = 4}).ids;
  ASSERT_EQ(ids.size(), 4U);
  ASSERT_EQ(std::count(ids.begin(), ids.end(), ids[3]), 1);
  for (const auto& [options, held] :
       {std::pair<GenerateOptions, index_t>{{.max_tokens = 0}, 3},
        {{.max_tokens = 1}, 3},
        {{.max_tokens = 4}, 6},
        {{.max_tokens = 9, .stop_ids = {ids[3]}}, 6},  // an end id, which follows three others
        {{.max_tokens = 9, .on_token = [&](index_t id) { return id != ids[2]; }}, 5}}) {
    Session session(model);
    HeadStudy heads({.keeps_rows = true});
    GenerateOptions with = options;
    with.heads = &heads;
    generate(session, prompt, with);
    EXPECT_EQ(session.length(0), held);
    EXPECT_EQ(heads.rows("decoder.1.self").shape()[1], held);
  }
}

// Each row by the definitions, from the weights of a tap.
TEST(Heads, rows_are_what_the_metrics_are_the_means_of) {
  for (const char* name : {"llama", "t5", "bert"}) {
    SCOPED_TRACE(name);
    const Model model = tiny(name);
    Session session(model);
    std::vector<Tap> all = taps_of(model, "self.weights");
    for (const Tap& tap : taps_of(model, "cross.weights")) all.push_back(tap);
    Taps taps(all);
    HeadStudy heads({.cell = 0, .keeps_rows = true});
    const std::vector<index_t> ids = some_text(10, 60), written(ids.rbegin(), ids.rend());
    look(session, ids, &taps, &heads);
    std::map<std::string, FileTensor> seen;
    for (auto& [tap, tensor] : taps.results()) seen[tap] = tensor;
    for (const HeadMetrics& head : heads.metrics()) {
      const FileTensor& weights = seen.at(head.attention + ".weights");
      const bool is_cross = head.attention.ends_with("cross");
      const bool is_written = name == std::string("t5") && head.attention.starts_with("decoder");
      const std::vector<index_t>& text = is_written ? written : ids;
      const index_t keys = weights.shape[2];
      const Tensor<double, 3> rows = heads.rows(head.attention);
      ASSERT_EQ(rows.shape(), (std::array<index_t, 3>{weights.shape[0], weights.shape[1], 6}));
      double sum[6] = {}, count[6] = {};
      for (index_t i = 0; i < rows.shape()[1]; ++i) {
        const auto w = [&](index_t j) {
          return weights.load((head.head * weights.shape[1] + i) * keys + j);
        };
        double entropy = 0, distance = 0, induction = 0;
        bool came_before = false;
        for (index_t j = 0; j < keys; ++j) {
          entropy -= w(j) > 0 ? w(j) * std::log(w(j)) : 0;
          distance += w(j) * static_cast<double>(std::abs(i - j));
        }
        for (index_t j = 1; !is_cross && j <= i; ++j)
          if (text[static_cast<std::size_t>(j - 1)] == text[static_cast<std::size_t>(i)]) {
            came_before = true;
            induction += w(j);
          }
        const double expected[6] = {
            w(0),    is_cross || i == 0 ? kNone : w(i - 1), is_cross ? kNone : w(i),
            entropy, is_cross ? kNone : distance,           came_before ? induction : kNone};
        for (index_t m = 0; m < 6; ++m) {
          const double found = rows(head.head, i, m);
          expect_close(found, expected[m], bound(keys) * static_cast<double>(keys),
                       head.attention + " row " + std::to_string(i));
          if (std::isnan(found)) continue;
          sum[m] += found;
          ++count[m];
        }
      }
      const double means[6] = {head.first,   head.previous, head.self,
                               head.entropy, head.distance, head.induction};
      for (index_t m = 0; m < 6; ++m)
        if (count[m] > 0)
          EXPECT_EQ(means[m], sum[m] / count[m]) << head.attention;  // to the bit
        else
          EXPECT_TRUE(std::isnan(means[m])) << head.attention;
    }
  }
}

void expect_refused(const std::function<void()>& call, const std::string& words) {
  try {
    call();
    ADD_FAILURE() << "not refused: " << words;
  } catch (const OptionError& error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST(Heads, what_a_study_cannot_look_at_is_said) {
  const Model model = tiny("llama");
  Session session(model), other(model);
  HeadStudy heads;
  session.forward({{.ids = {5, 6}}}, LogitRows::none, nullptr, &heads);
  const auto again = [&](Session& with) {
    return [&] { with.forward({{.ids = {7}}}, LogitRows::none, nullptr, &heads); };
  };
  again(session)();  // goes on
  expect_refused(again(other), "another session");
  const index_t beside = session.fork(0);
  expect_refused([&] { session.forward({{beside, {7}}}, LogitRows::none, nullptr, &heads); },
                 "has seen a text of sequence 0; sequence 1 needs a new one");
  session.truncate(0, 1);
  expect_refused(again(session), "has seen 3 tokens of a text, and this run begins at position 1");
  session.truncate(0, 0);
  session.change({HidePairs{.keys = {1}}});
  expect_refused(again(session), "changes were made anew");
  expect_refused([] { HeadStudy({.cell = -1, .sequence = -2}); }, "cell: -1");
  HeadStudy third({.sequence = 3});
  expect_refused([&] { session.forward({{.ids = {7}}}, LogitRows::none, nullptr, &third); },
                 "looks at text 3 of a call, which has 1");
  expect_refused([&] { heads.weights("decoder.0.self", 0, {0, 1, 0, 1}); }, "without keeps_rows");
  HeadStudy kept({.keeps_rows = true});
  session.forward({{.ids = {5, 6}}}, LogitRows::none, nullptr, &kept);
  expect_refused([&] { kept.weights("decoder.9.self", 0, {0, 1, 0, 1}); }, "decoder.9.self: none");
  expect_refused([&] { kept.weights("decoder.0.self", 66, {0, 3, 2, 1}); }, "head: 66");
  expect_refused([&] { kept.weights("decoder.0.self", 0, {0, 3, 2, 1}); }, "queries [0, 3)");
}

TEST(Heads, a_study_of_one_text_is_not_told_of_what_is_written_about_another) {
  const std::vector<index_t> a = some_text(6, 60), b = some_text(9, 50);
  Session session(tiny("t5"));
  HeadStudy of_a;
  const index_t about_a = session.read(a, nullptr, &of_a), about_b = session.read(b);
  const auto write = [&](index_t sequence, HeadStudy& heads) {
    session.forward({{sequence, {5, 6}}}, LogitRows::none, nullptr, &heads);
  };
  const std::string words = "looks at another text and what is written about it";
  expect_refused([&] { write(about_b, of_a); }, words);
  expect_refused([&] { generate(session, {5}, {.heads = &of_a, .sequence = about_b}); }, words);
  EXPECT_EQ(session.length(about_b), 0);
  const index_t fork = session.fork(about_a);  // reads the same text
  write(fork, of_a);
  expect_refused([&] { session.read(b, nullptr, &of_a); }, words);
  // Numbers of sequences and of their memory are used again, and are other texts then.
  HeadStudy of_b;
  write(about_b, of_b);
  session.drop(about_b);
  ASSERT_EQ(session.read(a), about_b);
  session.forward({{about_b, {5, 6}}}, LogitRows::none);
  expect_refused([&] { write(about_b, of_b); }, words);
  // A text that is encoded is one of its own, which nothing is written about.
  HeadStudy encoded;
  session.encode({{.ids = a}}, nullptr, &encoded);
  expect_refused([&] { write(about_a, encoded); }, words);
}

// --- taps of scores ---

TEST(Scores, their_softmax_is_the_weights_and_their_log_sum_the_lse_in_every_family) {
  for (const parity::Fixture& fixture : parity::fixtures()) {
    SCOPED_TRACE(fixture.name);
    const Model model = Model::load(fixture.path, {.context = fixture.context});
    Session session(model);
    std::vector<Tap> all;
    for (const char* part :
         {"self.scores", "self.weights", "self.lse", "cross.scores", "cross.weights", "cross.lse"})
      for (const Tap& tap : taps_of(model, part)) all.push_back(tap);
    Taps taps(all);
    const index_t most = model.position_limit() > 0 ? model.position_limit() : 30;
    look(session, some_text(std::min<index_t>(most, 30), model.vocab()), &taps, nullptr);
    std::map<std::string, FileTensor> seen;
    for (auto& [name, tensor] : taps.results()) seen[name] = tensor;
    for (const auto& [name, scores] : seen) {
      if (!name.ends_with(".scores")) continue;
      const std::string at = name.substr(0, name.rfind('.'));
      const FileTensor &weights = seen.at(at + ".weights"), &lse = seen.at(at + ".lse");
      ASSERT_EQ(scores.shape, weights.shape);
      const index_t keys = scores.shape[2];
      for (index_t row = 0; row < scores.size() / keys; ++row) {
        double sum = 0;
        for (index_t j = 0; j < keys; ++j) sum += std::exp(scores.load(row * keys + j));
        ASSERT_NEAR(std::log(sum), lse.load(row), 2e-6 * std::max(1.0, std::abs(lse.load(row))));
        for (index_t j = 0; j < keys; ++j) {
          const double s = scores.load(row * keys + j), w = weights.load(row * keys + j);
          ASSERT_NEAR(std::exp(s) / sum, w, 1e-6) << name;
          ASSERT_EQ(std::isinf(s), w == 0) << name;
        }
      }
    }
  }
}

TEST(Scores, are_the_scaled_products_of_query_and_key) {
  const Model model = tiny("llama");
  Session session(model);
  Taps taps({{.name = "decoder.1.self.q"},
             {.name = "decoder.1.self.k"},
             {.name = "decoder.1.self.scores"}});
  look(session, some_text(20, 60), &taps, nullptr);
  const NamedTensors seen = taps.results();
  const FileTensor &q = seen[0].second, &k = seen[1].second, &scores = seen[2].second;
  const index_t heads = q.shape[0], n = q.shape[1], d = q.shape[2], group = heads / k.shape[0];
  for (index_t h = 0; h < heads; ++h)
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j <= i; ++j) {
        double dot = 0;
        for (index_t e = 0; e < d; ++e)
          dot += q.load((h * n + i) * d + e) * k.load((h / group * n + j) * d + e);
        const double expected = dot / std::sqrt(static_cast<double>(d));
        // d products and sums in f32, each term of at most the largest score's size.
        ASSERT_NEAR(scores.load((h * n + i) * n + j), expected,
                    1e-6 * std::max(1.0, std::abs(expected)) * static_cast<double>(d));
      }
}

// --- the mean of a head ---

TEST(MeanOfHead, stands_at_every_position) {
  const Model model = tiny("llama");
  Session session(model);
  const std::vector<index_t> ids = some_text(20, 60);
  const auto out_of_layer = [&] {
    Taps taps({{.name = "decoder.1.self.out"}});
    look(session, ids, &taps, nullptr);
    return taps.results()[0].second;
  };
  const FileTensor out = out_of_layer();
  const ReplaceHead change = mean_of_head(1, 3, out);
  session.change({change});
  const FileTensor changed = out_of_layer();
  const index_t n = out.shape[1], d = out.shape[2];
  for (index_t e = 0; e < d; ++e) {
    double mean = 0;
    for (index_t i = 0; i < n; ++i) mean += out.load((3 * n + i) * d + e) / static_cast<double>(n);
    for (index_t i = 0; i < n; ++i) EXPECT_NEAR(changed.load((3 * n + i) * d + e), mean, 1e-6);
  }
  for (index_t at = 0; at < out.size(); ++at)
    ASSERT_TRUE(at / (n * d) == 3 || changed.load(at) == out.load(at)) << at;
  EXPECT_THROW(mean_of_head(1, 66, out), ShapeError);
  EXPECT_THROW(mean_of_head(1, 0, make_tensor(DType::f32, {3, 0, 4})), ShapeError);
  EXPECT_THROW(mean_of_head(1, 0, make_tensor(DType::f32, {3, 4})), ShapeError);
  EXPECT_THROW(mean_of_head(1, 0, {DType::f32, {3, 1000, 4}, {}, ""}), ShapeError);
}

}  // namespace
}  // namespace glasshead
