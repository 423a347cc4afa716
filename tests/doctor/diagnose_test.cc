// Each mistake of the catalogue, made on inputs that can show it, is named; right numbers of any
// arithmetic are called right; what no mistake explains is located and not named.
#include "glasshead/diagnose.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "diagnose_inputs.h"
#include "doctor/search.h"

namespace glasshead::doctor {
namespace {

using test::Inputs;
using test::Written;

// What the program gives, each number rounded to f32.
Written written(const Program& program, const ProbeShape& shape) {
  Written to(shape);
  Runner runner(program);
  for (index_t b = 0; b < shape.batch; ++b)
    for (index_t h = 0; h < shape.heads; ++h)
      for (index_t i = 0; i < shape.q_len; ++i) {
        const RowNumbers& row = runner.row({b, h, i});
        for (index_t d = 0; d < shape.d_v; ++d)
          to.out(b, h, i, d) = static_cast<float>(row.out[slot(d)]);
        for (index_t j = 0; j < shape.kv_len && slot(j) < row.weights.size(); ++j)
          to.weights(b, h, i, j) = static_cast<float>(row.weights[slot(j)]);
        to.lse(b, h, i) = static_cast<float>(row.lse);
      }
  return to;
}

std::vector<std::string> names(const Diagnosis& d) {
  std::vector<std::string> all;
  for (const Cause& cause : d.causes) all.push_back(cause.name());
  return all;
}

bool has(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

std::string joined(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& word : list) text += word + " ";
  return text;
}

class EveryMistake : public ::testing::TestWithParam<Inputs> {};

TEST_P(EveryMistake, is_named_on_a_probe) {
  const auto& [name, shape, options, rotary] = GetParam();
  const Probe probe = make_probe(shape, options, 5, rotary);
  const AttentionCase attention{probe.q, probe.k, probe.v, options, rotary, {}};
  const Subject subject(attention, DType::f32);
  index_t seen = 0;
  for (const Suspect& made : singles(subject.right)) {
    if (made.is_rounding()) continue;
    const Made& first = made.made.front();
    const std::string wanted = named(*first.fault, first.choice).name();
    const Written theirs = written(made.program, shape);
    const bool has_weights = !made.program.swaps_axes && !made.program.may_drop;
    const Diagnosis d = diagnose(attention, theirs.claims(has_weights), {.tries_pairs = false});
    if (d.is_right()) {  // only what makes no difference here
      EXPECT_TRUE(has(d.blind, wanted)) << name << ": " << wanted << " was called right";
      continue;
    }
    ++seen;
    EXPECT_TRUE(has(names(d), wanted))
        << name << ": " << wanted << " was called " << joined(names(d)) << "\n"
        << diagnosis_text(d);
  }
  EXPECT_GT(seen, 15) << name;
}

INSTANTIATE_TEST_SUITE_P(Diagnose, EveryMistake, ::testing::ValuesIn(test::five_inputs()),
                         [](const auto& given) { return "inputs_" + std::to_string(given.index); });

// Plain three passes, each number stored as `store` rounds it. Shares nothing with the engine.
Written plain(const AttentionCase& a, const ProbeShape& s,
              const std::function<double(double)>& store) {
  Written to(s);
  const double scale = 1 / std::sqrt(static_cast<double>(s.d_k));
  for (index_t b = 0; b < s.batch; ++b)
    for (index_t h = 0; h < s.heads; ++h)
      for (index_t i = 0; i < s.q_len; ++i) {
        const index_t g = h / (s.heads / s.kv_heads);
        std::vector<double> w(slot(s.kv_len));
        double max = -1e300;
        float sum = 0;
        for (index_t j = 0; j < s.kv_len; ++j) {
          float dot = 0;
          for (index_t e = 0; e < s.d_k; ++e)
            dot +=
                static_cast<float>(a.q.load(b, h, i, e)) * static_cast<float>(a.k.load(b, g, j, e));
          w[slot(j)] = store(store(static_cast<double>(dot)) * store(scale));
          max = std::max(max, w[slot(j)]);
        }
        for (double& x : w) {
          x = store(std::exp(store(x - max)));
          sum += static_cast<float>(x);
        }
        for (index_t j = 0; j < s.kv_len; ++j) {
          w[slot(j)] = store(w[slot(j)] / store(static_cast<double>(sum)));
          to.weights(b, h, i, j) = static_cast<float>(w[slot(j)]);
        }
        for (index_t d = 0; d < s.d_v; ++d) {
          float out = 0;
          for (index_t j = 0; j < s.kv_len; ++j)
            out += static_cast<float>(w[slot(j)]) * static_cast<float>(a.v.load(b, g, j, d));
          to.out(b, h, i, d) = static_cast<float>(store(static_cast<double>(out)));
        }
        to.lse(b, h, i) = static_cast<float>(max + std::log(static_cast<double>(sum)));
      }
  return to;
}

struct Arithmetic {
  DType type;
  double (*store)(double);
};
const Arithmetic kArithmetics[] = {
    {DType::f32, [](double x) { return static_cast<double>(static_cast<float>(x)); }},
    {DType::bf16, [](double x) { return widen(narrow_to_bf16(x)); }},
    {DType::f16, [](double x) { return widen(narrow_to_f16(x)); }},
};

TEST(Diagnose, calls_plain_arithmetic_of_any_type_right) {
  for (const Arithmetic& arithmetic : kArithmetics)
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      const auto n = static_cast<index_t>(seed);
      const ProbeShape shape{1, 4, 2, 3 + n, 5 + 13 * n, 4 + 8 * (n % 5), 3 + n};
      Probe probe = make_probe(shape, {}, seed);
      for (Tensor<float, 4>* tensor : {&probe.q, &probe.k, &probe.v})
        for (index_t e = 0; e < tensor->size(); ++e)
          tensor->data()[e] =
              static_cast<float>(arithmetic.store(static_cast<double>(tensor->data()[e])));
      const AttentionCase attention{probe.q, probe.k, probe.v, {}, {}, {}};
      const Written theirs = plain(attention, shape, arithmetic.store);
      const Diagnosis d = diagnose(attention, theirs.claims(true), {.arithmetic = arithmetic.type});
      EXPECT_TRUE(d.is_right()) << glasshead::name(arithmetic.type) << " seed " << seed << "\n"
                                << diagnosis_text(d);
      EXPECT_TRUE(d.blind.empty() || !has(d.blind, "scale-missing")) << joined(d.blind);
    }
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

TEST(Diagnose, samples_rows_of_large_inputs_and_says_so) {
  const ProbeShape shape{1, 8, 8, 128, 128, 16, 16};
  AttentionOptions options;
  options.mask = Mask::causal();
  const Probe probe = make_probe(shape, options);
  const AttentionCase attention{probe.q, probe.k, probe.v, options, {}, {}};
  const Subject subject(attention, DType::f32);
  Program wrong = subject.right;
  wrong.scale = 1;
  const Written theirs = written(wrong, shape);
  const Diagnosis d = diagnose(attention, theirs.claims(false), {.most_work = 5e5});
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
