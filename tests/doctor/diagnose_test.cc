// What the doctor says of single inputs. That it names what it should is trials_test.cc's.
#include "glasshead/diagnose.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "trials.h"

namespace glasshead::doctor {
namespace {

using trials::Draw;
using trials::has;
using trials::Written;

Written written(const Program& program, const ProbeShape& shape) {
  return trials::written(program, shape, Draw(11));
}

std::vector<std::string> names(const Diagnosis& d) {
  std::vector<std::string> all;
  for (const Cause& cause : d.causes) all.push_back(cause.name());
  return all;
}

std::string joined(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& word : list) text += word + " ";
  return text;
}

TEST(Diagnose, solves_for_a_scale_nobody_thought_of) {
  const ProbeShape shape{1, 2, 1, 6, 30, 8, 8};
  const Probe probe = make_probe(shape);
  const AttentionCase attention{probe.q, probe.k, probe.v, {}, {}, {}};
  const Subject subject(attention, DType::f32);
  Program other = subject.right;
  other.scale = 0.2718;
  const Diagnosis d = diagnose(attention, written(other, shape).claims(false));
  ASSERT_EQ(d.causes.size(), 1U) << diagnosis_text(d);
  EXPECT_EQ(d.causes[0].mistakes[0].id, "scale-other");
  EXPECT_NEAR(std::stod(d.causes[0].mistakes[0].parameter), 0.2718, 1e-5);
}

TEST(Diagnose, names_two_mistakes_made_together) {
  const ProbeShape shape{1, 2, 1, 12, 20, 8, 8};
  AttentionOptions options;
  options.mask = Mask::causal();
  options.query_start = Align::end;
  const Probe probe = make_probe(shape, options);
  const AttentionCase attention{probe.q, probe.k, probe.v, options, {}, {}};
  const Subject subject(attention, DType::f32);
  Program both = subject.right;
  both.scale = 1;
  both.options.query_start = index_t{0};
  const Diagnosis d = diagnose(attention, written(both, shape).claims(false));
  EXPECT_TRUE(has(names(d), "scale-missing + causal-corner:0")) << diagnosis_text(d);
}

// The last query's own key is hidden: of tokens in a square, or behind a cache.
TEST(Diagnose, speaks_of_the_cache_where_there_is_one) {
  AttentionOptions options;
  options.mask = Mask::causal();
  options.query_start = Align::end;
  for (const index_t kv_len : {12, 20}) {
    const ProbeShape shape{1, 2, 1, 12, kv_len, 8, 8};
    const Probe probe = make_probe(shape, options);
    const AttentionCase attention{probe.q, probe.k, probe.v, options, {}, {}};
    const Subject subject(attention, DType::f32);
    Program wrong = subject.right;
    const Fault& strict = *find_fault("mask-strict");
    ASSERT_TRUE(strict.edit(wrong, strict.choices(wrong).front()));
    const Diagnosis d = diagnose(attention, written(wrong, shape).claims(false));
    EXPECT_EQ(joined(names(d)), "mask-strict positions-shifted:-1 ") << diagnosis_text(d);
    const std::string fix = d.causes.at(0).mistakes.at(0).fix_code;
    EXPECT_EQ(fix.find("past_len") != std::string::npos, kv_len > 12) << fix;
    EXPECT_EQ(fix.find("tril") != std::string::npos, kv_len == 12) << fix;
    // No input tells a mask that is one short from queries that stand one too early.
    EXPECT_TRUE(d.probe.empty()) << d.probe;
    EXPECT_NE(joined(d.next).find("can't tell these apart, nor would a probe"), std::string::npos);
  }
}

TEST(Diagnose, sends_to_a_probe_where_it_tells_more) {
  // One query and equal keys: no mask, scale or order of keys can show.
  const ProbeShape shape{1, 2, 2, 6, 9, 4, 4};
  const Probe probe = make_probe(shape);
  Tensor<float, 4> equal({1, 2, 9, 4});
  for (index_t n = 0; n < equal.size(); ++n) equal.data()[n] = 1;
  const AttentionCase attention{probe.q, equal, probe.v, {}, {}, {}};
  const Subject subject(attention, DType::f32);
  const Written right = written(subject.right, shape);
  EXPECT_EQ(diagnose(attention, right.claims(false)).probe,
            "glasshead doctor --probe DIR --heads 2 --q-len 6 --kv-len 9 --d-k 4");
  EXPECT_EQ(diagnose(attention, right.claims(false), {.probe_command = "mine"}).probe, "mine");
  const AttentionCase of_probe{probe.q, probe.k, probe.v, {}, {}, {}};
  const Subject subject_of_probe(of_probe, DType::f32);
  const Diagnosis d = diagnose(of_probe, written(subject_of_probe.right, shape).claims(false));
  EXPECT_TRUE(d.probe.empty()) << d.probe;
  EXPECT_FALSE(d.blind.empty());
}

TEST(ProbeCommand, says_shapes_and_options) {
  const Probe probe = make_probe({2, 4, 2, 3, 9, 8, 6});
  AttentionCase call{probe.q, probe.k, probe.v};
  const std::string shape =
      "glasshead doctor --probe DIR --batch 2 --heads 4 --kv-heads 2 --q-len 3 --kv-len 9 --d-k 8 "
      "--d-v 6";
  EXPECT_EQ(probe_command(call), shape);
  call.options.mask = Mask::window(4, {}) & Mask::causal() & Mask::key_lengths({9, 7}) &
                      Mask::segments(1, {0, 0, 1}, {0, 0, 0, 0, 0, 0, 0, 0, 1});
  call.options.query_start = Align::end;
  call.options.scale = 0.25;
  call.options.softcap = 30;
  call.options.sinks = {0, 1, -0.5, 2};
  call.options.bias = Bias::alibi(Bias::alibi_slopes(4)) + Bias::alibi({1, 1, 1, 0.5});
  call.rotary = Rotary{true, 500000, 4};
  EXPECT_EQ(probe_command(call),
            shape +
                " --causal=end --window 4, --key-lengths 9,7 --query-segments 0,0,1 --key-segments "
                "0,0,0,0,0,0,0,0,1 --alibi --alibi=1,1,1,0.5 --scale 0.25 --softcap 30 --sinks "
                "0,1,-0.5,2 --rope adjacent --rope-base 500000 --rope-size 4");
  call.options = {};
  call.options.scale = 1 / std::sqrt(8.0);  // as it would be anyway
  call.options.query_start = index_t{6};
  call.options.mask = Mask::prefix({2});
  call.rotary.reset();
  EXPECT_EQ(probe_command(call), shape + " --prefix 2 --query-start 6");
}

TEST(Diagnose, locates_what_no_mistake_explains_and_names_nothing) {
  const ProbeShape shape{1, 4, 4, 70, 40, 8, 8};
  const Probe probe = make_probe(shape);
  const AttentionCase attention{probe.q, probe.k, probe.v, {}, {}, {}};
  Written theirs = written(Subject(attention, DType::f32).right, shape);
  for (index_t i = 64; i < 70; ++i)
    for (index_t d = 0; d < 8; ++d) theirs.out(0, 2, i, d) = 0.125F * static_cast<float>(d);
  const Diagnosis d = diagnose(attention, theirs.claims(true));
  EXPECT_EQ(d.verdict, DiagnosisVerdict::unexplained) << diagnosis_text(d);
  EXPECT_EQ(d.first_wrong.claim, "out");
  EXPECT_EQ(d.first_wrong.index, (std::vector<index_t>{0, 2, 64, 0}));
  EXPECT_TRUE(has(d.pattern, "wrong: only head 2")) << joined(d.pattern);
  EXPECT_TRUE(has(d.pattern, "wrong: query rows from 64 on, the last, partial block of 64"))
      << joined(d.pattern);
  EXPECT_TRUE(has(d.proven, "every weight is right: the fault lies after them, in weights times v"))
      << joined(d.proven);
}

// F48: the bias of v's projection is lost. q, k and v come after it, so that no mistake is named.
TEST(Diagnose, sees_one_vector_that_every_row_is_off_by_and_a_factor_of_all) {
  const ProbeShape shape{1, 2, 2, 12, 9, 8, 3};
  const Probe probe = make_probe(shape);
  const AttentionCase attention{probe.q, probe.k, probe.v, {}, {}, {}};
  const Subject subject(attention, DType::f32);
  const Written right = written(subject.right, shape);
  Written shifted = written(subject.right, shape), larger = written(subject.right, shape);
  for (index_t n = 0; n < right.out.size(); ++n) {
    shifted.out.data()[n] += 0.25F * static_cast<float>(n % 3 + 1);
    larger.out.data()[n] *= 1.0625F;
  }
  const Diagnosis of_shifted = diagnose(attention, shifted.claims(false), {.tries_pairs = false});
  EXPECT_TRUE(has(of_shifted.pattern,
                  "every row of a head is off by the same vector: a bias of "
                  "v's projection, lost or added"))
      << diagnosis_text(of_shifted);
  const Diagnosis of_larger = diagnose(attention, larger.claims(false), {.tries_pairs = false});
  EXPECT_TRUE(of_larger.causes.empty()) << diagnosis_text(of_larger);
  EXPECT_NE(joined(of_larger.pattern).find("every out looked at is 1.0625 times the right one"),
            std::string::npos)
      << diagnosis_text(of_larger);
}

// Errors that all point away from 0 are no rounding, however wide f16's bounds are.
TEST(Diagnose, takes_a_small_factor_for_no_rounding) {
  const ProbeShape shape{1, 2, 2, 12, 300, 8, 16};
  const Probe probe = make_probe(shape);
  const AttentionCase attention{probe.q, probe.k, probe.v, {}, {}, {}};
  Written theirs = written(Subject(attention, DType::f32).right, shape);
  for (index_t n = 0; n < theirs.out.size(); ++n) theirs.out.data()[n] *= 1.0005F;
  const Diagnosis d = diagnose(attention, theirs.claims(false), {.tries_pairs = false});
  EXPECT_EQ(d.verdict, DiagnosisVerdict::unexplained) << diagnosis_text(d);
}

TEST(Diagnose, says_what_an_input_can_not_tell_apart) {
  // One query and keys all alike: no mistake in the scores can show.
  const ProbeShape shape{1, 1, 1, 1, 3, 2, 2};
  Probe probe = make_probe(shape);
  for (index_t n = 0; n < probe.k.size(); ++n) probe.k.data()[n] = 1;
  const AttentionCase attention{probe.q, probe.k, probe.v, {}, {}, {}};
  const Subject subject(attention, DType::f32);
  const Diagnosis d = diagnose(attention, written(subject.right, shape).claims(false));
  ASSERT_TRUE(d.is_right());
  EXPECT_TRUE(has(d.blind, "keys-reshaped")) << joined(d.blind);
}

// FAULTS.md F41: rows of weights that add to 1.11.
TEST(Diagnose, names_dropout_in_weights_of_which_some_were_dropped) {
  const ProbeShape shape{1, 5, 5, 4, 12, 4, 4};
  const Probe probe = make_probe(shape);
  const AttentionCase attention{probe.q, probe.k, probe.v, {}, {}, {}};
  const Subject subject(attention, DType::f32);
  Written theirs = written(subject.right, shape);
  for (index_t n = 0; n < theirs.weights.size(); ++n)
    theirs.weights.data()[n] *= n % 10 == 3 ? 0.0F : 1 / 0.9F;
  Claims claims;
  claims.weights = theirs.weights;
  const Diagnosis d = diagnose(attention, claims);
  EXPECT_EQ(joined(names(d)), "dropout-on:0.1 ") << diagnosis_text(d);
}

TEST(Diagnose, refuses_claims_that_do_not_fit_and_says_all) {
  const ProbeShape shape{1, 1, 1, 2, 3, 2, 2};
  const Probe probe = make_probe(shape);
  const AttentionCase attention{probe.q, probe.k, probe.v, {}, {}, {}};
  const Tensor<float, 4> out({1, 1, 2, 5});
  const Tensor<float, 3> lse({1, 1, 9});
  try {
    Claims claims;
    claims.out = out;
    claims.lse = lse;
    diagnose(attention, claims);
    FAIL() << "nothing was refused";
  } catch (const Error& error) {
    ASSERT_EQ(error.problems().size(), 2U);
    EXPECT_EQ(error.problems()[0].where, "out");
    EXPECT_EQ(error.problems()[1].where, "lse");
  }
}

TEST(Diagnose, refuses_probes_that_cannot_be) {
  const auto problems = [](const ProbeShape& shape, std::optional<Rotary> rotary) {
    try {
      make_probe(shape, {}, 1, rotary);
    } catch (const Error& error) {
      return error.problems().size();
    }
    return std::size_t{0};
  };
  const ProbeShape small{1, 2, 2, 3, 3, 8, 8};
  EXPECT_EQ(problems(small, Rotary{false, 10000, 8}), 0U);
  EXPECT_EQ(problems(small, Rotary{false, 10000, 1000}), 1U);  // of 8 coordinates
  EXPECT_EQ(problems(small, Rotary{false, 10000, -2}), 1U);
  EXPECT_EQ(problems(small, Rotary{true, 0, 3}), 2U);
  const index_t million = index_t{1} << 20;
  EXPECT_EQ(problems({million, million, million, million, 4, 16, 4}, {}), 1U);
}

// Square, so that transposed scores and exchanged axes are both tried, and together.
TEST(Diagnose, tries_every_pair_on_a_square_with_shared_heads) {
  const ProbeShape shape{1, 4, 2, 8, 8, 8, 8};
  const Probe probe = make_probe(shape);
  const Tensor<float, 4> noise = make_probe(shape, {}, 2).q;
  Claims claims;
  claims.out = noise;
  const Diagnosis d = diagnose({probe.q, probe.k, probe.v}, claims);
  EXPECT_EQ(d.verdict, DiagnosisVerdict::unexplained);
  EXPECT_GT(d.tried, 1000);
}

TEST(Diagnose, says_nothing_is_proven_about_what_it_did_not_look_at) {
  const ProbeShape shape{1, 1, 1, 4, 6, 4, 4};
  const Probe probe = make_probe(shape);
  AttentionOptions options;
  options.sinks = {0.5};  // with a sink an output need not lie among the values
  Tensor<float, 4> out({1, 1, 4, 4});
  attend(probe.q, probe.k, probe.v, out, options);
  for (index_t n = 0; n < out.size(); ++n) out.data()[n] += 0.01F * static_cast<float>(n % 3);
  Claims claims;
  claims.out = out;
  const Diagnosis d = diagnose({probe.q, probe.k, probe.v, options}, claims);
  ASSERT_FALSE(d.is_right());
  EXPECT_EQ(joined(d.proven).find("lies between"), std::string::npos);
}

TEST(Diagnose, names_no_overflow_where_all_is_nan_beyond_f16_and_says_where_an_input_is_nan) {
  const ProbeShape shape{1, 1, 1, 4, 6, 4, 4};
  Probe probe = make_probe(shape);
  for (index_t n = 0; n < probe.q.size(); ++n) probe.q.data()[n] *= 1e5F;
  Tensor<float, 4> out({1, 1, 4, 4});
  for (index_t n = 0; n < out.size(); ++n) out.data()[n] = std::numeric_limits<float>::quiet_NaN();
  Claims claims;
  claims.out = out;
  const Diagnosis d = diagnose({probe.q, probe.k, probe.v}, claims);
  EXPECT_EQ(d.verdict, DiagnosisVerdict::unexplained);
  EXPECT_NE(joined(d.pattern).find("every number is NaN"), std::string::npos);

  probe.q(0, 0, 1, 2) = std::numeric_limits<float>::quiet_NaN();
  const Tensor<float, 4> zero({1, 1, 4, 4});
  claims.out = zero;
  const Diagnosis of_poison = diagnose({probe.q, probe.k, probe.v}, claims);
  EXPECT_NE(joined(of_poison.pattern).find("q holds nan at [0, 0, 1, 2]"), std::string::npos);
}

TEST(Diagnose, samples_rows_of_large_inputs_and_says_so) {
  const ProbeShape shape{1, 4, 4, 96, 96, 8, 8};
  AttentionOptions options;
  options.mask = Mask::causal();
  const Probe probe = make_probe(shape, options);
  const AttentionCase attention{probe.q, probe.k, probe.v, options, {}, {}};
  const Subject subject(attention, DType::f32);
  Program wrong = subject.right;
  wrong.scale = 1;
  const Written theirs = written(wrong, shape);
  const Diagnosis d = diagnose(attention, theirs.claims(false), {.most_work = 1e5});
  EXPECT_LT(d.rows_checked, d.rows);
  EXPECT_EQ(joined(names(d)), "scale-missing ") << diagnosis_text(d);
  EXPECT_NE(diagnosis_text(d).find("a sample of "), std::string::npos);
}

TEST(Catalogue, has_an_entry_once_each_with_its_words) {
  std::vector<std::string> ids;
  for (const Fault* fault : catalogue()) {
    EXPECT_FALSE(has(ids, fault->id)) << fault->id << " is there twice";
    ids.emplace_back(fault->id);
    const Words words = words_of(*fault);
    for (const char* text : {words.title, words.done, words.cause, words.fix_code, words.fix})
      EXPECT_TRUE(text != nullptr && *text != '\0') << fault->id;
  }
  EXPECT_GE(ids.size(), 40U);
}

}  // namespace
}  // namespace glasshead::doctor
