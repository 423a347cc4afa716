// Descriptions turned into steps and run. Expected values: the tutorials' exact ones (golden/seeds,
// 50-digit arithmetic), mpmath at 40 digits, or fractions by hand; 8 ulp for a path of a few dozen
// roundings, more where a line says why.
#include "nn/network.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "close.h"

namespace glasshead::nn {
namespace {

using test::expect_within;
using test::expect_within_ulps;
using Inputs = std::vector<std::pair<std::string, TraceTensor>>;

TraceTensor matrix(index_t rows, index_t columns, std::vector<double> values) {
  return {{rows, columns}, std::move(values)};
}
TraceTensor row(std::vector<double> values) {
  const auto size = static_cast<index_t>(values.size());
  return {{size}, std::move(values)};
}
const TraceTensor kIdentity = {{2, 2}, {1, 0, 0, 1}};

// Tokens A (1,0), B (0,1), C (1,1).
TraceTensor three_tokens() { return matrix(3, 2, {1, 0, 0, 1, 1, 1}); }

Network one_attention(bool is_causal) {
  Network network;
  network.blocks.resize(1);
  Attention& attention = network.blocks[0].attention;
  attention.query.weight = "W_Q";
  attention.key.weight = "W_K";
  attention.value.weight = "W_V";
  if (is_causal) attention.options.mask = Mask::causal();
  return network;
}

Inputs identity_inputs() {
  return {{"X", three_tokens()}, {"W_Q", kIdentity}, {"W_K", kIdentity}, {"W_V", kIdentity}};
}

Trace run(const Network& network, const Inputs& inputs) {
  return run_steps(steps(network, shapes_of(inputs)), inputs);
}

std::vector<std::string> taps_of(const Trace& trace) {
  std::vector<std::string> taps;
  for (const TracedStep& step : trace.steps) taps.push_back(step.step.tap);
  return taps;
}

TEST(Network, one_attention_over_projections) {
  const Trace trace = run(one_attention(true), identity_inputs());
  EXPECT_EQ(taps_of(trace),
            (std::vector<std::string>{"q", "k", "v", "scores", "scaled", "masked", "row_max", "exp",
                                      "row_sum", "lse", "weights", "out"}));
  expect_within_ulps(trace.at("weights").values,
                     {1, 0, 0, 0.33023845067334306, 0.6697615493266569, 0, 0.24825507825772308,
                      0.24825507825772308, 0.5034898434845538},
                     8);
}

TEST(Network, projections_that_differ_separate_q_k_and_v) {
  Inputs inputs{{"X", three_tokens()},
                {"W_Q", matrix(2, 2, {-1, 1, -1, -1})},
                {"W_K", matrix(2, 2, {1, -1, 0, 1})},
                {"W_V", matrix(2, 2, {3, 3, 3, -1})}};
  const Trace trace = run(one_attention(true), inputs);
  EXPECT_EQ(trace.at("scores").values, (std::vector<double>{-2, 1, -1, 0, -1, -1, -2, 0, -2}));
  expect_within_ulps(trace.at("out").values,
                     {3, 3, 3, 1.6790461973066277, 3.4907373024360346, 0.14505370568408052}, 8);
}

TEST(Network, without_matrices_x_is_q_k_and_v) {
  Network network;
  network.blocks.resize(1);
  const Trace trace = run(network, {{"X", three_tokens()}});
  EXPECT_EQ(trace.at("v").values, three_tokens().values);
  EXPECT_NEAR(trace.at("weights").values[0], 0.4011, 5e-5);
}

TEST(Network, given_q_k_v_need_no_x) {
  Network network;
  network.blocks.resize(1);
  Attention& attention = network.blocks[0].attention;
  attention.given_q = "q";
  attention.given_k = "k";
  attention.given_v = "v";
  const Trace trace = run(network, {{"q", matrix(1, 2, {1, 0})},
                                    {"k", matrix(3, 2, {1, 0, 0, 1, 1, 1})},
                                    {"v", matrix(3, 2, {2, 0, 0, 2, 1, 1})}});
  EXPECT_EQ(taps_of(trace).front(), "scores");
  expect_within(trace.at("out").values, {1.2033, 0.7967}, 5e-5);
}

TEST(Network, projection_biases_are_added_and_an_absent_one_is_0) {
  // Biases (1,-1), (0.5,0), (10,20): digits from the report's own arithmetic, ten decimals.
  Network network = one_attention(true);
  network.blocks[0].attention.query.bias = "b_Q";
  network.blocks[0].attention.key.bias = "b_K";
  network.blocks[0].attention.value.bias = "b_V";
  Inputs inputs = identity_inputs();
  inputs.emplace_back("b_Q", row({1, -1}));
  inputs.emplace_back("b_K", row({0.5, 0}));
  inputs.emplace_back("b_V", row({10, 20}));
  const std::vector<double> out{11, 20, 10.6697615493, 20.3302384507, 10.8916165482, 20.5541917259};
  const Trace all = run(network, inputs);
  expect_within(all.at("out").values, out, 5e-11);
  expect_within(all.at("lse").values, {2.1213203436, 1.4614936983, 2.9291866416}, 5e-11);
  network.blocks[0].attention.key.bias.clear();
  const Trace without_key_bias = run(network, inputs);
  expect_within(without_key_bias.at("out").values, out, 5e-11);
  expect_within(without_key_bias.at("lse").values, {1.4142135624, 1.1079403077, 2.2220798604},
                5e-11);
}

TEST(Network, query_heads_share_key_value_heads_with_their_neighbours) {
  Network network;
  network.blocks.resize(1);
  Attention& attention = network.blocks[0].attention;
  attention.heads = 4;
  attention.kv_heads = 2;
  attention.query.weight = "W_Q";
  const Trace trace =
      run(network, {{"X", three_tokens()}, {"W_Q", matrix(2, 4, {1, 0, 1, 1, 0, 1, 1, -1})}});
  EXPECT_EQ(trace.at("q_heads").shape, (std::vector<index_t>{4, 3, 1}));
  EXPECT_EQ(trace.at("k_heads").shape, (std::vector<index_t>{2, 3, 1}));
  // Query C is (1, 1, 2, 0) over the heads. Head 1 reads column 0 of X, (1, 0, 1); head 2 column
  // 1, (0, 1, 1), with scores 0 2 2; head 3 has scores 0 0 0.
  const double e = std::exp(1.0), e2 = std::exp(2.0);
  const std::span<const double> weights(trace.at("weights").values);
  expect_within(weights.subspan(9 + 6, 3), {e / (2 * e + 1), 1 / (2 * e + 1), e / (2 * e + 1)},
                1e-15);
  expect_within(weights.subspan(9 + 6, 3), {.4223, .1554, .4223}, 5e-5);
  expect_within(weights.subspan(18 + 6, 3),
                {1 / (2 * e2 + 1), e2 / (2 * e2 + 1), e2 / (2 * e2 + 1)}, 1e-15);
  expect_within(weights.subspan(27 + 6, 3), {1 / 3., 1 / 3., 1 / 3.}, 1e-15);
  EXPECT_EQ(trace.at("concat").shape, (std::vector<index_t>{3, 4}));
  expect_within(std::span<const double>(trace.at("concat").values).subspan(8, 4),
                {2 * e / (2 * e + 1), 2 * e / (2 * e + 1), 2 * e2 / (2 * e2 + 1), 2 / 3.}, 1e-15);
}

Network next_token_network(bool is_tied) {
  Network network;
  network.ids = "ids";
  network.embedding = "E";
  network.blocks.resize(1);
  network.blocks[0].attention.options.mask = Mask::causal();
  FeedForward layers;
  layers.up.weight = "W_FFN";
  network.blocks[0].feed_forward = layers;
  Unembedding last;
  last.is_tied = is_tied;
  if (!is_tied) last.weight = "W_vocab";
  network.unembedding = last;
  return network;
}

Inputs cat_chases_mouse(std::vector<double> ids = {0, 1, 2}) {
  return {{"ids", row(std::move(ids))},
          {"E", matrix(5, 2, {1, 0, 0.2, 1, 0.8, 0, 0, 0.5, 0, 0})},
          {"W_FFN", matrix(2, 2, {0.5, 1, 1, 0.5})},
          {"W_vocab", matrix(2, 5, {1, 0.2, 0.8, 0, 0, 0, 1, 0, 0.5, 0})}};
}

const std::vector<double> kProbabilities{
    0.18749460209582597, 0.34163743945054226, 0.1696521316560668,  0.18749460209582597,
    0.11372122470173902, 0.25196776631840195, 0.27776246606204713, 0.21102742742135083,
    0.15541431854157792, 0.10382802165662222, 0.21330885043386352, 0.3061919635840626,
    0.18859946597264823, 0.1766428576593631,  0.11525686235006256};

TEST(Network, from_ids_to_the_next_token) {
  const Trace trace = run(next_token_network(false), cat_chases_mouse());
  expect_within_ulps(
      trace.at("ff_out").values,
      {0.5, 1, 0.8865652754392198, 0.80671736228039, 0.6155778942367932, 0.8539334351169309}, 8);
  expect_within_ulps(trace.at("probabilities").values, kProbabilities, 8);
  EXPECT_EQ(trace.at("next_token").values, (std::vector<double>{1, 1, 1}));
}

TEST(Network, tied_unembedding_compares_with_the_embedding_table) {
  const Trace tied = run(next_token_network(true), cat_chases_mouse());
  expect_within_ulps(tied.at("probabilities").values, kProbabilities, 8);
  // Editing "chases" in the table moves the logits of a tied network only.
  Inputs edited = cat_chases_mouse({0, 0, 0});
  edited[1].second.values[3] = 2;
  EXPECT_NE(run(next_token_network(true), edited).at("logits").values,
            run(next_token_network(true), cat_chases_mouse({0, 0, 0})).at("logits").values);
  EXPECT_EQ(run(next_token_network(false), edited).at("logits").values,
            run(next_token_network(false), cat_chases_mouse({0, 0, 0})).at("logits").values);
}

TEST(Network, of_equal_probabilities_the_lowest_index_is_next) {
  Inputs inputs = cat_chases_mouse();
  inputs[3].second.values.assign(10, 0.0);
  EXPECT_EQ(run(next_token_network(false), inputs).at("next_token").values,
            (std::vector<double>{0, 0, 0}));
}

TEST(Network, an_id_outside_the_table_is_refused) {
  for (const double id : {-1.0, 5.0, 1.5, std::nan("")})
    EXPECT_THROW(run(next_token_network(false), cat_chases_mouse({0, id})), OptionError);
}

TEST(Network, logits_can_be_capped_and_biased) {
  Network network = next_token_network(true);
  network.unembedding->softcap = 0.5;
  network.unembedding->bias = "b";
  Inputs inputs = cat_chases_mouse({0});
  inputs.emplace_back("b", row({100, 0, 0, 0, -100}));
  const Trace trace = run(network, inputs);
  EXPECT_EQ(trace.at("logits").values, (std::vector<double>{100.5, 1.1, 0.4, 0.5, -100}));
  // 0.5·tanh(2·x): mpmath.
  expect_within_ulps(trace.at("logits_capped").values,
                     {0.5, 0.48787156501572576, 0.3320183851339245, 0.3807970779778824, -0.5}, 2);
}

TEST(Network, left_padding_is_taken_away_before_positions_are_given) {
  // x = (1, 2, 4) + the learned (0, 0.5, 1): a prompt that was padded to 5 runs alone, from
  // position 0. Counted from the padding the rows would be 2, 3.4921698115, 5.9999992351.
  Network network;
  network.positions = {PositionKind::learned, "P", 10000};
  network.blocks.resize(1);
  network.blocks[0].attention.options.mask = Mask::causal();
  network.blocks[0].attention.options.scale = 1;
  const Inputs inputs{{"X", matrix(3, 1, {1, 2, 4})}, {"P", matrix(5, 1, {0, .5, 1, 1.5, 2})}};
  const Trace trace = run(network, inputs);
  EXPECT_EQ(trace.at("x0").values, (std::vector<double>{1, 2.5, 5}));
  expect_within_ulps(trace.at("out").values, {1, 2.4655339451349616, 4.999990675157225}, 8);
  network.first_position = 2;
  expect_within(run(network, inputs).at("out").values, {2, 3.4921698115, 5.9999992351}, 5e-11);
}

TEST(Network, sinusoidal_positions_are_added_to_x) {
  Network network;
  network.positions.kind = PositionKind::sinusoidal;
  network.first_position = 1;
  network.blocks.resize(1);
  const Trace trace = run(network, {{"X", matrix(2, 4, {10, 10, 10, 10, 0, 0, 0, 0})}});
  // sin 1, cos 1, sin 0.01, cos 0.01; sin 2, cos 2, sin 0.02, cos 0.02: mpmath.
  expect_within(trace.at("x0").values,
                {10.841470984807897, 10.54030230586814, 10.009999833334167, 10.999950000416666,
                 0.9092974268256817, -0.4161468365471424, 0.01999866669333308, 0.9998000066665778},
                4e-15);
}

TEST(Network, rope_makes_scores_depend_on_the_distance_alone) {
  Network network;
  network.blocks.resize(1);
  network.blocks[0].attention.rope = Rope{};
  const Inputs inputs{{"X", matrix(3, 2, {1, 2, 1, 2, 1, 2})}};
  const Trace here = run(network, inputs);
  network.first_position = 7;
  const Trace there = run(network, inputs);
  EXPECT_NE(here.at("q_rotated").values, there.at("q_rotated").values);
  // |x|² = 5; a few roundings of it.
  expect_within(there.at("scores").values, here.at("scores").values, 5 * 0x1p-50);
  // 5·cos(distance): both pairs turn by one angle per position.
  expect_within(std::span<const double>(here.at("scores").values).subspan(0, 3),
                {5, 5 * std::cos(1.0), 5 * std::cos(2.0)}, 5 * 0x1p-50);
}

TEST(Network, cross_attention_reads_keys_and_values_from_the_context) {
  Network network = one_attention(false);
  network.blocks[0].is_cross = true;
  const Trace trace = run(network, {{"X", matrix(2, 2, {1, 0, 0, 1})},
                                    {"context", matrix(3, 1, {1, 2, 3})},
                                    {"W_Q", kIdentity},
                                    {"W_K", matrix(1, 2, {0, 1})},
                                    {"W_V", matrix(1, 3, {1, 0, 2})}});
  EXPECT_EQ(trace.at("scores").values, (std::vector<double>{0, 0, 0, 1, 2, 3}));
  // Row A sees all alike: the mean of the values (1,0,2) (2,0,4) (3,0,6).
  expect_within_ulps(std::span<const double>(trace.at("out").values).subspan(0, 3), {2, 0, 4}, 4);
  EXPECT_EQ(trace.at("out").shape, (std::vector<index_t>{2, 3}));
}

TEST(Network, without_a_mask_shuffled_rows_give_shuffled_outputs) {
  const Network network = one_attention(false);
  Inputs inputs = identity_inputs();
  const std::vector<double> out = run(network, inputs).at("out").values;
  inputs[0].second = matrix(3, 2, {1, 1, 0, 1, 1, 0});  // C B A
  const std::vector<double> shuffled = run(network, inputs).at("out").values;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t c = 0; c < 2; ++c)
      // Sums run in key order, so the last bits may differ.
      EXPECT_LE(test::ulps_apart(shuffled[2 * (2 - i) + c], out[2 * i + c]), 4);
  // A causal mask breaks it: B, in the middle of C B A, sees C and itself alike.
  const std::vector<double> causal = run(one_attention(true), inputs).at("out").values;
  EXPECT_EQ(causal[2], 0.5);
  EXPECT_EQ(causal[3], 1);
}

// Rows and columns of eighths between -5/8 and 5/8, the same as in the mpmath script that made the
// expected values below.
TraceTensor filled(index_t rows, index_t columns, index_t seed) {
  TraceTensor tensor{{rows, columns}, {}};
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j)
      tensor.values.push_back(static_cast<double>((i * 7 + j * 3 + seed * 5 + i * j) % 11 - 5) / 8);
  return tensor;
}
TraceTensor filled_row(index_t size, index_t seed) {
  TraceTensor tensor = filled(1, size, seed);
  tensor.shape = {size};
  return tensor;
}

Network two_blocks() {
  Network network;
  network.ids = "ids";
  network.embedding = "E";
  network.first_position = 2;
  network.blocks.resize(2);
  Block& first = network.blocks[0];
  first.has_residual = true;
  first.attention_norm = {NormKind::layer, "g2", "g3", 1e-5};
  first.attention.heads = 2;
  first.attention.query = {"W4", "b5"};
  first.attention.key = {"W6", ""};
  first.attention.value = {"W7", "b8"};
  first.attention.output = {"W9", "b10"};
  first.attention.rope = Rope{};
  first.attention.rope->pairing = RopePairing::adjacent;
  first.attention.rope->base = 100;
  first.attention.options.mask = Mask::causal();
  first.feed_forward_norm = {NormKind::rms, "g11", "", 1e-5};
  first.feed_forward = FeedForward{{"W13", ""}, {"W12", ""}, {"W14", ""}, Activation::silu};
  Block& second = network.blocks[1];
  second.has_residual = true;
  second.placement = NormPlacement::post;
  second.attention_norm = {NormKind::layer, "g19", "g20", 1e-5};
  second.attention.heads = second.attention.kv_heads = 2;
  second.attention.query = {"W16", ""};
  second.attention.key = {"W17", ""};
  second.attention.value = {"W18", ""};
  second.attention.options.mask = Mask::causal();
  second.cross_attention = Attention{};
  second.cross_attention->query = {"W21", ""};
  second.cross_attention->key = {"W22", ""};
  second.cross_attention->value = {"W23", ""};
  second.cross_norm = {NormKind::layer, "", "", 1e-5};
  second.feed_forward_norm = {NormKind::layer, "g27", "g28", 1e-5};
  second.feed_forward = FeedForward{{"W24", "b25"}, {}, {"W26", ""}, Activation::gelu};
  network.final_norm = {NormKind::rms, "g30", "", 1e-5};
  network.unembedding = Unembedding{.is_tied = true, .weight = "", .bias = "", .softcap = 0};
  return network;
}

Inputs two_block_inputs() {
  return {{"ids", row({2, 0, 1})},    {"E", filled(5, 4, 1)},     {"context", filled(2, 3, 15)},
          {"g2", filled_row(4, 2)},   {"g3", filled_row(4, 3)},   {"W4", filled(4, 8, 4)},
          {"b5", filled_row(8, 5)},   {"W6", filled(4, 4, 6)},    {"W7", filled(4, 3, 7)},
          {"b8", filled_row(3, 8)},   {"W9", filled(6, 4, 9)},    {"b10", filled_row(4, 10)},
          {"g11", filled_row(4, 11)}, {"W12", filled(4, 6, 12)},  {"W13", filled(4, 6, 13)},
          {"W14", filled(6, 4, 14)},  {"W16", filled(4, 4, 16)},  {"W17", filled(4, 4, 17)},
          {"W18", filled(4, 4, 18)},  {"g19", filled_row(4, 19)}, {"g20", filled_row(4, 20)},
          {"W21", filled(4, 2, 21)},  {"W22", filled(3, 2, 22)},  {"W23", filled(3, 4, 23)},
          {"W24", filled(4, 6, 24)},  {"b25", filled_row(6, 25)}, {"W26", filled(6, 4, 26)},
          {"g27", filled_row(4, 27)}, {"g28", filled_row(4, 28)}, {"g30", filled_row(4, 30)}};
}

TEST(Network, two_stacked_blocks_with_everything_in_them) {
  const Trace trace = run(two_blocks(), two_block_inputs());
  // Numbers of size 1 through some hundred roundings: 1e-14 is 45 ulp of 1.
  expect_within(
      trace.at("block.0.ff_residual").values,
      {-0.003179444041576869, -0.39244282271751707, -0.019713362197425036, 0.3687570420577794,
       0.12574919975562027, 0.30129643272671863, -0.7479937436561462, 0.572317193308775,
       -0.5119395248906109, -0.0921934958525445, 0.29730991272025625, 0.5375695692202564},
      1e-14);
  expect_within(trace.at("final_normed").values,
                {0.3754309259173824, -0.6379812024950091, 0.2077005845124406, 0.0,
                 0.40984103668885685, -0.6541120119402004, 0.13409423982185695, 0.0,
                 0.35849400888317323, -0.6111076998347686, 0.2883329145324147, 0.0},
                1e-14);
  expect_within(
      trace.at("logits").values,
      {-0.3690558162559038, -0.0838651707024709, 0.43195469428275696, -0.4456671172990535,
       -0.44606477545022644, -0.32910090436623574, -0.13787339843349997, 0.4325059531913607,
       -0.4600501370487324, -0.4532022108710499, -0.40937345902079747, -0.03508054717537927,
       0.4356838694023319, -0.4267540635071271, -0.44891890914377913},
      1e-14);
  expect_within(trace.at("probabilities").values,
                {0.15600775073499315, 0.20749273681718008, 0.34755266266239987, 0.14450215040985315,
                 0.14444469937557375, 0.16358573597358483, 0.19805895479687635, 0.3503540061641104,
                 0.1435076005438605, 0.1444937025215679, 0.1486752275817197, 0.21616827561876206,
                 0.3461324740465754, 0.14611348902486315, 0.14291053372807971},
                1e-14);
}

TEST(Network, the_taps_of_two_stacked_blocks_are_those_of_the_table) {
  const std::vector<std::string> expected{"X",
                                          "block.0.attention_normed",
                                          "block.0.q",
                                          "block.0.k",
                                          "block.0.v",
                                          "block.0.q_heads",
                                          "block.0.k_heads",
                                          "block.0.v_heads",
                                          "block.0.q_rotated",
                                          "block.0.k_rotated",
                                          "block.0.scores",
                                          "block.0.scaled",
                                          "block.0.masked",
                                          "block.0.row_max",
                                          "block.0.exp",
                                          "block.0.row_sum",
                                          "block.0.lse",
                                          "block.0.weights",
                                          "block.0.out",
                                          "block.0.concat",
                                          "block.0.projected",
                                          "block.0.residual",
                                          "block.0.ff_normed",
                                          "block.0.ff_gate",
                                          "block.0.ff_gate_activated",
                                          "block.0.ff_up",
                                          "block.0.ff_activated",
                                          "block.0.ff_out",
                                          "block.0.ff_residual",
                                          "block.1.q",
                                          "block.1.k",
                                          "block.1.v",
                                          "block.1.q_heads",
                                          "block.1.k_heads",
                                          "block.1.v_heads",
                                          "block.1.scores",
                                          "block.1.scaled",
                                          "block.1.masked",
                                          "block.1.row_max",
                                          "block.1.exp",
                                          "block.1.row_sum",
                                          "block.1.lse",
                                          "block.1.weights",
                                          "block.1.out",
                                          "block.1.concat",
                                          "block.1.residual",
                                          "block.1.attention_normed",
                                          "block.1.cross.q",
                                          "block.1.cross.k",
                                          "block.1.cross.v",
                                          "block.1.cross.scores",
                                          "block.1.cross.scaled",
                                          "block.1.cross.row_max",
                                          "block.1.cross.exp",
                                          "block.1.cross.row_sum",
                                          "block.1.cross.lse",
                                          "block.1.cross.weights",
                                          "block.1.cross.out",
                                          "block.1.cross.residual",
                                          "block.1.cross.attention_normed",
                                          "block.1.ff_up",
                                          "block.1.ff_activated",
                                          "block.1.ff_out",
                                          "block.1.ff_residual",
                                          "block.1.ff_normed",
                                          "final_normed",
                                          "logits",
                                          "probabilities",
                                          "next_token"};
  EXPECT_EQ(taps_of(run(two_blocks(), two_block_inputs())), expected);
}

TEST(Network, streaming_gives_the_same_bits_as_keeping) {
  const Inputs inputs = two_block_inputs();
  const std::vector<Step> list = steps(two_blocks(), shapes_of(inputs));
  const Trace kept = run_steps(list, inputs);
  run_steps(list, inputs, [&](const Step& step, TraceTensor& value) {
    EXPECT_EQ(value.values, kept.at(step.tap).values) << step.tap;
  });
}

TEST(Network, every_operation_has_its_words) {
  for (const Op& op : ops()) {
    EXPECT_EQ(find_op(op.id), &op);
    EXPECT_NE(std::string(op.formula), "");
    EXPECT_NE(std::string(op.latex), "");
    EXPECT_EQ(std::string(op.sentence).back(), '.') << op.id;
  }
  EXPECT_EQ(find_op("nothing"), nullptr);
}

}  // namespace
}  // namespace glasshead::nn
