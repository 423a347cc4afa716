#include "doctor/mistakes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "nn/network.h"
#include "seeds.h"

namespace glasshead::doctor {
namespace {

using test::Seed;

// Input tensors of one attention over X, and its network.
struct Problem1 {
  nn::Network network;
  std::vector<std::pair<std::string, TraceTensor>> inputs;
  StepList steps() const {
    nn::Shapes shapes;
    for (const auto& [tap, tensor] : inputs) shapes[tap] = tensor.shape;
    return nn::steps(network, shapes);
  }
};

Problem1 one_head(TraceTensor x, TraceTensor w_q, TraceTensor w_k, TraceTensor w_v,
                  AttentionOptions options = {}) {
  Problem1 problem;
  problem.network.blocks.resize(1);
  nn::Attention& attention = problem.network.blocks[0].attention;
  attention.query = {"W_Q", ""};
  attention.key = {"W_K", ""};
  attention.value = {"W_V", ""};
  attention.options = std::move(options);
  problem.inputs = {{"X", std::move(x)},
                    {"W_Q", std::move(w_q)},
                    {"W_K", std::move(w_k)},
                    {"W_V", std::move(w_v)}};
  return problem;
}

Problem1 three_tokens_causal() {
  const TraceTensor identity{{2, 2}, {1, 0, 0, 1}};
  AttentionOptions options;
  options.mask = Mask::causal();
  return one_head({{3, 2}, {1, 0, 0, 1, 1, 1}}, identity, identity, identity, options);
}

struct Outcome {
  Trace right, wrong;
  Fit fit = Fit::runs;
  std::vector<Problem> problems;
  std::string hidden_because;
};

Outcome make(const std::string& text, const Problem1& problem) {
  Outcome outcome;
  const StepList steps = problem.steps();
  outcome.right = run_steps(steps, problem.inputs);
  const auto chosen = choose_mistake(text, outcome.problems);
  if (!chosen) return outcome;
  const auto applied = apply_mistake(*chosen, steps, outcome.right, outcome.problems, &outcome.fit);
  if (!applied) return outcome;
  outcome.hidden_because = applied->hidden_because;
  outcome.wrong = run_steps(applied->steps, problem.inputs);
  return outcome;
}

// The rows of the weights, rounded to 4 decimals, in one string per row.
std::vector<std::vector<double>> rounded_rows(const TraceTensor& matrix) {
  std::vector<std::vector<double>> rows;
  const auto columns = static_cast<std::size_t>(matrix.shape.back());
  for (std::size_t n = 0; n < matrix.values.size(); ++n) {
    if (n % columns == 0) rows.emplace_back();
    rows.back().push_back(std::round(matrix.values[n] * 1e4) / 1e4);
  }
  return rows;
}

std::vector<double> row_sums(const TraceTensor& matrix) {
  std::vector<double> sums;
  for (const auto& row : rounded_rows(matrix)) {
    (void)row;
    double sum = 0;
    const auto columns = static_cast<std::size_t>(matrix.shape.back());
    for (std::size_t j = 0; j < columns; ++j) sum += matrix.values[sums.size() * columns + j];
    sums.push_back(std::round(sum * 1e4) / 1e4);
  }
  return sums;
}

using Rows = std::vector<std::vector<double>>;

// --- golden data --------------------------------------------------------------------------------

class GoldenMistake : public ::testing::TestWithParam<Seed> {};

Problem1 from_seed(const nlohmann::json& values) {
  AttentionOptions options;
  if (values.contains("mask_additive")) {  // in these files always the causal one
    options.mask = Mask::causal();
  }
  const auto matrix = [&](const char* name) {
    return test::to_matrix(values.at(name).at("value"));
  };
  return one_head(matrix("X"), matrix("WQ"), matrix("WK"), matrix("WV"), options);
}

// 8 units in the last place of the result, as for a plain f64 run of the right answer
// (golden/README.md); where terms of both signs are added, of the sum of their sizes instead. A row
// that the golden data call nan is softmax of nothing: here the row is empty, weights and out 0.
constexpr double kUlps = 8 * 0x1p-52;

void expect_near(double found, double expected, double magnitude, const std::string& where) {
  if (std::isnan(expected))
    EXPECT_EQ(found, 0) << where << ": softmax of nothing";
  else
    EXPECT_LE(std::fabs(found - expected), kUlps * std::max(std::fabs(expected), magnitude))
        << where << ": " << found << ", should be " << expected;
}

void expect_matrix(const TraceTensor& found, const TraceTensor& expected,
                   const std::vector<double>& magnitude, const std::string& where) {
  ASSERT_EQ(found.shape, expected.shape) << where;
  for (std::size_t n = 0; n < expected.values.size(); ++n)
    expect_near(found.values[n], expected.values[n], magnitude.empty() ? 0 : magnitude[n],
                where + " entry " + std::to_string(n));
}

// sum_j |w_ij v_jd|
std::vector<double> out_magnitudes(const TraceTensor& weights, const TraceTensor& values) {
  std::vector<double> sizes;
  const auto n = static_cast<std::size_t>(weights.shape[1]);
  const auto d_v = static_cast<std::size_t>(values.shape[1]);
  for (std::size_t i = 0; i < static_cast<std::size_t>(weights.shape[0]); ++i)
    for (std::size_t d = 0; d < d_v; ++d) {
      double size = 0;
      for (std::size_t j = 0; j < n; ++j)
        size += std::fabs(weights.values[i * n + j] * values.values[j * d_v + d]);
      sizes.push_back(size);
    }
  return sizes;
}

const TraceTensor& values_used(const Trace& trace) {
  for (const TracedStep& traced : trace.steps)
    if (traced.step.tap == "out") return trace.at(traced.step.reads.at(1));
  return trace.at("v");
}

const Mistake* by_golden_name(const std::string& name) {
  for (const Mistake& mistake : mistakes())
    if (name == mistake.golden) return &mistake;
  return nullptr;
}

TEST_P(GoldenMistake, gives_the_golden_weights_and_output) {
  const nlohmann::json& seed = GetParam().content;
  const Problem1 problem = from_seed(seed.at("values"));
  for (const auto& [name, expected] : seed.at("mistakes").items()) {
    const Mistake* mistake = by_golden_name(name);
    ASSERT_NE(mistake, nullptr) << name << " is in no row of the table";
    const Outcome outcome = make(mistake->id, problem);
    ASSERT_TRUE(outcome.problems.empty()) << name << ": " << outcome.problems[0].what;
    const TraceTensor& weights = weights_used(outcome.wrong);
    const std::string where = GetParam().name + " " + name;
    const TraceTensor golden_weights = test::to_matrix(expected.at("weights"));
    expect_matrix(weights, golden_weights, {}, where + " weights");
    expect_matrix(attention_out(outcome.wrong), test::to_matrix(expected.at("output")),
                  out_magnitudes(weights, values_used(outcome.wrong)), where + " out");
  }
}

TEST_P(GoldenMistake, is_invisible_exactly_where_the_golden_data_say_so) {
  const nlohmann::json& seed = GetParam().content;
  const Problem1 problem = from_seed(seed.at("values"));
  for (const auto& [name, expected] : seed.at("mistakes").items()) {
    const Outcome outcome = make(by_golden_name(name)->id, problem);
    const TraceTensor& wrong = attention_out(outcome.wrong);
    const TraceTensor& right = attention_out(outcome.right);
    double difference = 0;
    for (std::size_t n = 0; n < right.values.size(); ++n)
      difference = std::max(difference, std::fabs(wrong.values[n] - right.values[n]));
    // The golden data's own bound for "the same": far above rounding, far below any real slip.
    const bool is_invisible = difference < 1e-12;
    EXPECT_EQ(is_invisible, expected.at("indistinguishable_from_correct_output").get<bool>())
        << name << ": difference " << difference;
  }
}

INSTANTIATE_TEST_SUITE_P(seeds, GoldenMistake, ::testing::ValuesIn(test::seeds_with_mistakes()),
                         [](const auto& seed) { return seed.param.name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenMistake);

TEST(GoldenMistakes, are_found_or_said_to_be_missing) {
  if (test::seeds_folder().empty()) FAIL() << "tests/data/seeds is missing";
  EXPECT_EQ(test::seeds_with_mistakes().size(), 10U);
  std::set<std::string> names;
  for (const Mistake& mistake : mistakes())
    if (*mistake.golden != '\0') names.insert(mistake.golden);
  EXPECT_EQ(names.size(), 17U);
}

// --- the printed tell-tales, three-tokens-causal ------------------------------------------------

struct TellTale {
  const char* id;
  Rows weights;  // 4 decimals, from exact arithmetic

  friend void PrintTo(const TellTale& tale, std::ostream* to) { *to << tale.id; }
};

class ThreeTokensCausal : public ::testing::TestWithParam<TellTale> {};

TEST_P(ThreeTokensCausal, shows_the_tell_tale_weights) {
  const Outcome outcome = make(GetParam().id, three_tokens_causal());
  ASSERT_TRUE(outcome.problems.empty());
  EXPECT_EQ(rounded_rows(weights_used(outcome.wrong)), GetParam().weights);
}

const Rows kRightRows{{1, 0, 0}, {.3302, .6698, 0}, {.2483, .2483, .5035}};

INSTANTIATE_TEST_SUITE_P(
    mistakes, ThreeTokensCausal,
    ::testing::Values(
        TellTale{"scores-transposed", kRightRows},
        TellTale{"scale-missing", {{1, 0, 0}, {.2689, .7311, 0}, {.2119, .2119, .5761}}},
        TellTale{"scale-dk", {{1, 0, 0}, {.3775, .6225, 0}, {.2741, .2741, .4519}}},
        TellTale{"scale-inverse", {{1, 0, 0}, {.1956, .8044, 0}, {.1636, .1636, .6728}}},
        TellTale{"scale-other:1", {{1, 0, 0}, {.2689, .7311, 0}, {.2119, .2119, .5761}}},
        TellTale{"scale-other", kRightRows},  // d_model = d_k hides it
        TellTale{"softmax-unshifted", kRightRows},
        TellTale{"mask-ignored",
                 {{.4011, .1978, .4011}, {.1978, .4011, .4011}, {.2483, .2483, .5035}}},
        TellTale{"mask-after", {{.4011, 0, 0}, {.1978, .4011, 0}, {.2483, .2483, .5035}}},
        TellTale{"mask-multiply",
                 {{.5035, .2483, .2483}, {.2483, .5035, .2483}, {.2483, .2483, .5035}}},
        TellTale{"mask-inverted", {{0, .3302, .6698}, {0, 0, 1}, {0, 0, 0}}},
        TellTale{"mask-transposed", {{.4011, .1978, .4011}, {0, .5, .5}, {0, 0, 1}}},
        TellTale{"mask-strict", {{0, 0, 0}, {1, 0, 0}, {.5, .5, 0}}},
        TellTale{"mask-finite:-1",
                 {{.7338, .1331, .1331}, {.2945, .5972, .1083}, {.2483, .2483, .5035}}},
        TellTale{"mask-finite:-1e9", kRightRows}, TellTale{"values-unprojected", kRightRows},
        TellTale{"keys-as-values", kRightRows}),
    [](const auto& row) {
      std::string name = row.param.id;
      for (char& c : name)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
      return name;
    });

TEST(Mistakes, mask_added_as_numbers_leaves_weight_on_hidden_keys) {
  const Outcome outcome = make("mask-as-number", three_tokens_causal());
  EXPECT_EQ(rounded_rows(weights_used(outcome.wrong))[0],
            (std::vector<double>{.6455, .1171, .2375}));
}

TEST(Mistakes, without_softmax_rows_add_to_anything) {
  const Outcome outcome = make("softmax-missing", three_tokens_causal());
  EXPECT_EQ(row_sums(weights_used(outcome.wrong)), (std::vector<double>{1.4142, 1.4142, 2.8284}));
  EXPECT_EQ(rounded_rows(attention_out(outcome.wrong))[0], (std::vector<double>{1.4142, .7071}));
}

TEST(Mistakes, one_softmax_over_the_matrix_adds_to_1_in_all) {
  const Outcome outcome = make("softmax-whole", three_tokens_causal());
  EXPECT_EQ(row_sums(weights_used(outcome.wrong)), (std::vector<double>{.1533, .2290, .6177}));
}

TEST(Mistakes, softmax_by_columns_leaves_rows_of_other_sums) {
  const Outcome outcome = make("softmax-columns", three_tokens_causal());
  EXPECT_EQ(row_sums(weights_used(outcome.wrong)), (std::vector<double>{.4011, .6978, 1.9011}));
}

TEST(Mistakes, transposed_weights_give_another_output) {
  const Outcome outcome = make("weights-transposed", three_tokens_causal());
  EXPECT_EQ(rounded_rows(attention_out(outcome.wrong))[0], (std::vector<double>{1.2483, .5785}));
}

TEST(Mistakes, untransposed_keys_stop_unless_the_shapes_happen_to_fit) {
  const Outcome stops = make("scores-untransposed", three_tokens_causal());
  EXPECT_EQ(stops.fit, Fit::stops);
  ASSERT_EQ(stops.problems.size(), 1U);
  EXPECT_NE(stops.problems[0].what.find("3x2 · 3x2"), std::string::npos) << stops.problems[0].what;

  // d_k = kv_len = 2: Q·K = [1 2; 3 4]·[0 1; 1 1] = [2 3; 4 7].
  const Outcome runs =
      make("scores-untransposed", one_head({{2, 2}, {1, 0, 0, 1}}, {{2, 2}, {1, 2, 3, 4}},
                                           {{2, 2}, {0, 1, 1, 1}}, {{2, 2}, {1, 0, 0, 1}}));
  ASSERT_TRUE(runs.problems.empty());
  EXPECT_EQ(runs.wrong.at("scores").values, (std::vector<double>{2, 3, 4, 7}));
}

TEST(Mistakes, without_the_maximum_huge_scores_give_nan_and_ordinary_ones_the_right_weights) {
  // Scores 800 and 0 at scale 1: exp(800) is inf, inf/inf is nan.
  AttentionOptions options;
  options.scale = 1;
  const Outcome outcome =
      make("softmax-unshifted",
           one_head({{2, 1}, {1, 0}}, {{1, 1}, {800}}, {{1, 1}, {1}}, {{1, 1}, {1}}, options));
  const TraceTensor& weights = weights_used(outcome.wrong);
  EXPECT_TRUE(std::isnan(weights.values[0]));
  EXPECT_EQ(weights.values[2], .5);
  EXPECT_EQ(outcome.right.at("weights").values[0], 1);
}

TEST(Mistakes, an_empty_row_becomes_uniform_under_a_finite_mask) {
  Problem1 problem = three_tokens_causal();
  problem.network.blocks[0].attention.options.mask = Mask::key_lengths({0});
  const Outcome outcome = make("mask-finite:-1e9", problem);
  EXPECT_EQ(rounded_rows(weights_used(outcome.wrong))[1],
            (std::vector<double>{.3333, .3333, .3333}));
}

// --- when there is nothing to get wrong ---------------------------------------------------------

TEST(Mistakes, of_the_mask_need_a_mask) {
  Problem1 problem = three_tokens_causal();
  problem.network.blocks[0].attention.options.mask = {};
  for (const char* id : {"mask-ignored", "mask-after", "mask-multiply", "mask-inverted",
                         "mask-transposed", "mask-strict", "mask-as-number", "mask-finite"}) {
    const Outcome outcome = make(id, problem);
    EXPECT_EQ(outcome.fit, Fit::absent) << id;
    ASSERT_EQ(outcome.problems.size(), 1U) << id;
    EXPECT_NE(outcome.problems[0].what.find("mask"), std::string::npos) << id;
  }
}

TEST(Mistakes, unknown_names_and_parameters_are_refused_with_the_list) {
  std::vector<Problem> problems;
  EXPECT_FALSE(choose_mistake("mask-befor", problems));
  EXPECT_NE(problems.at(0).what.find("mask-after"), std::string::npos);
  problems.clear();
  EXPECT_FALSE(choose_mistake("mask-finite:", problems)) << "the default is for no colon at all";
  ASSERT_FALSE(problems.empty());
  EXPECT_NE(problems.back().what.find("no V after the colon"), std::string::npos);
  problems.clear();
  EXPECT_FALSE(choose_mistake("mask-after:2", problems));
  EXPECT_EQ(problems.size(), 1U);
  const Outcome outcome = make("scale-other:much", three_tokens_causal());
  ASSERT_EQ(outcome.problems.size(), 1U);
  EXPECT_NE(outcome.problems[0].what.find("\"much\""), std::string::npos);
}

TEST(Mistakes, say_when_the_structure_of_the_input_hides_them) {
  const Outcome far = make("mask-finite:-1e9", three_tokens_causal());
  EXPECT_FALSE(far.hidden_because.empty());
  EXPECT_FALSE(make("softmax-unshifted", three_tokens_causal()).hidden_because.empty());
  EXPECT_TRUE(make("mask-after", three_tokens_causal()).hidden_because.empty());
  EXPECT_FALSE(make("scale-other", three_tokens_causal()).hidden_because.empty());
}

// --- the table ----------------------------------------------------------------------------------

TEST(TableOfMistakes, has_complete_rows_with_ids_of_their_own) {
  std::set<std::string> ids;
  for (const Mistake& mistake : mistakes()) {
    EXPECT_TRUE(ids.insert(mistake.id).second) << mistake.id;
    for (const char* text : {mistake.title, mistake.done, mistake.tell_tale, mistake.cause,
                             mistake.fix_code, mistake.fix})
      EXPECT_NE(*text, '\0') << mistake.id;
    EXPECT_NE(mistake.edit, nullptr) << mistake.id;
    EXPECT_EQ(*mistake.parameter == '\0', *mistake.default_parameter == '\0') << mistake.id;
    for (const Coincidence& same : mistake.coincidences())
      EXPECT_TRUE(std::string(same.id) == "right" || find_mistake(same.id) != nullptr) << same.id;
  }
  EXPECT_EQ(ids.size(), 21U);
}

// Every head and every attention of a list has the mistake, not only the first.
TEST(Mistakes, are_made_in_every_head_and_block) {
  Problem1 problem = three_tokens_causal();
  problem.network.blocks.push_back(problem.network.blocks[0]);
  for (nn::Block& block : problem.network.blocks)
    block.attention.heads = block.attention.kv_heads = 2;
  const Outcome outcome = make("mask-after", problem);
  ASSERT_TRUE(outcome.problems.empty());
  int attentions = 0;
  for (const TracedStep& traced : outcome.wrong.steps) {
    if (!traced.step.tap.ends_with(".weights")) continue;
    ++attentions;
    const TraceTensor& w = traced.value;
    ASSERT_EQ(w.shape, (std::vector<index_t>{2, 3, 3}));
    for (std::size_t h = 0; h < 2; ++h) {
      EXPECT_EQ(w.values[9 * h + 1], 0);
      EXPECT_LT(w.values[9 * h], 1) << "row A lost keys";
    }
  }
  EXPECT_EQ(attentions, 2);
}

}  // namespace
}  // namespace glasshead::doctor
