// The generation loop: every cached run equals the run over all rows, to the bit.
#include "nn/generate.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "close.h"

namespace glasshead::nn {
namespace {

TraceTensor filled(std::vector<index_t> shape, int seed) {
  TraceTensor tensor{std::move(shape), {}};
  index_t size = 1;
  for (index_t extent : tensor.shape) size *= extent;
  for (index_t n = 0; n < size; ++n)
    tensor.values.push_back(static_cast<double>((n * n * 5 + n * 7 + seed * 3) % 23 - 11) / 9);
  return tensor;
}

Network cat_chases_mouse() {
  Network network;
  network.ids = "ids";
  network.embedding = "E";
  network.blocks.resize(1);
  network.blocks[0].attention.options.mask = Mask::causal();
  network.blocks[0].feed_forward = FeedForward{{"W_FFN", ""}, {}, {}, Activation::none};
  network.unembedding = Unembedding{.is_tied = true, .weight = "", .bias = "", .softcap = 0};
  return network;
}

NamedInputs cat_inputs() {
  return {{"ids", {{3}, {0, 1, 2}}},
          {"E", {{5, 2}, {1, 0, 0.2, 1, 0.8, 0, 0, 0.5, 0, 0}}},
          {"W_FFN", {{2, 2}, {0.5, 1, 1, 0.5}}}};
}

// Two blocks, grouped heads, rope, norms, a window, ALiBi: whatever depends on positions.
Network two_blocks() {
  Network network;
  network.ids = "ids";
  network.embedding = "E";
  network.positions = {PositionKind::sinusoidal, "", 10000};
  network.first_position = 1;
  network.blocks.resize(2);
  for (std::size_t n = 0; n < 2; ++n) {
    Block& block = network.blocks[n];
    const std::string p = "block." + std::to_string(n) + ".";
    block.has_residual = true;
    block.attention_norm.kind = block.feed_forward_norm.kind = NormKind::rms;
    block.attention.heads = 4;
    block.attention.kv_heads = 2;
    block.attention.query.weight = p + "W_Q";
    block.attention.key.weight = p + "W_K";
    block.attention.value.weight = p + "W_V";
    block.attention.output.weight = p + "W_O";
    block.attention.rope = Rope{};
    block.feed_forward = FeedForward{{p + "W_1", ""}, {}, {p + "W_2", ""}, Activation::gelu};
  }
  network.blocks[0].attention.options.mask = Mask::causal();
  network.blocks[0].attention.options.bias = Bias::alibi(Bias::alibi_slopes(4));
  network.blocks[1].attention.options.mask = Mask::window(2, 0);
  network.unembedding = Unembedding{.is_tied = true, .weight = "", .bias = "", .softcap = 0};
  return network;
}

NamedInputs two_block_inputs(std::vector<double> ids) {
  const auto count = static_cast<index_t>(ids.size());
  NamedInputs inputs{{"ids", {{count}, std::move(ids)}}, {"E", filled({7, 8}, 1)}};
  for (const char* p : {"block.0.", "block.1."}) {
    const int seed = p[6];
    inputs.emplace_back(std::string(p) + "W_Q", filled({8, 8}, seed));
    inputs.emplace_back(std::string(p) + "W_K", filled({8, 4}, seed + 1));
    inputs.emplace_back(std::string(p) + "W_V", filled({8, 6}, seed + 2));
    inputs.emplace_back(std::string(p) + "W_O", filled({12, 8}, seed + 3));
    inputs.emplace_back(std::string(p) + "W_1", filled({8, 10}, seed + 4));
    inputs.emplace_back(std::string(p) + "W_2", filled({10, 8}, seed + 5));
  }
  return inputs;
}

TEST(Generate, appends_the_most_probable_token_and_goes_on) {
  const Generation g = generate(cat_chases_mouse(), cat_inputs(), 2);
  EXPECT_EQ(g.tokens, (std::vector<index_t>{1, 1}));
  ASSERT_EQ(g.passes.size(), 2U);
  EXPECT_EQ(g.passes[1].at("q").shape, (std::vector<index_t>{1, 2}));
  EXPECT_EQ(g.passes[1].at("weights").shape, (std::vector<index_t>{1, 4}));
  // cat chases mouse chases: mpmath.
  test::expect_within_ulps(g.passes[1].at("probabilities").values,
                           {0.2531110115559753, 0.27258119379249823, 0.2126409357158409,
                            0.15574387284406943, 0.10592298609161609},
                           8);
}

TEST(Generate, earlier_rows_of_the_cache_do_not_change) {
  const Generation g = generate(two_blocks(), two_block_inputs({3, 1, 4}), 4);
  for (const char* p : {"block.0.", "block.1."}) {
    for (const char* kind : {"k", "v"}) {
      const std::string tap = std::string(p) + kind + "_cache";
      for (std::size_t n = 1; n < g.passes.size(); ++n) {
        const TraceTensor& before = g.passes[n - 1].at(tap);
        const TraceTensor& after = g.passes[n].at(tap);
        ASSERT_EQ(after.shape[1], before.shape[1] + 1) << tap;
        const auto rows = static_cast<std::size_t>(before.shape[1] * before.shape[2]);
        const auto all = static_cast<std::size_t>(after.shape[1] * after.shape[2]);
        for (std::size_t h = 0; h < 2; ++h)
          for (std::size_t at = 0; at < rows; ++at)
            EXPECT_EQ(after.values[h * all + at], before.values[h * rows + at]) << tap;
      }
    }
  }
}

// The last `count` numbers of a tensor, per head where it has heads.
std::vector<double> last_row(const TraceTensor& tensor) {
  const auto size = static_cast<std::size_t>(tensor.shape.back());
  return {tensor.values.end() - static_cast<std::ptrdiff_t>(size), tensor.values.end()};
}

TEST(Generate, cached_rows_equal_recomputed_rows_to_the_bit) {
  std::vector<double> ids{3, 1, 4};
  const Generation g = generate(two_blocks(), two_block_inputs(ids), 5);
  for (std::size_t n = 0; n < g.passes.size(); ++n) {
    const NamedInputs inputs = two_block_inputs(ids);
    const Trace whole = run_steps(steps(two_blocks(), shapes_of(inputs)), inputs);
    for (const char* tap :
         {"x0", "block.0.q", "block.0.weights", "block.0.out", "block.0.ff_residual",
          "block.1.weights", "block.1.concat", "block.1.ff_residual", "logits", "probabilities"}) {
      EXPECT_EQ(last_row(g.passes[n].at(tap)), last_row(whole.at(tap))) << tap << " of run " << n;
    }
    EXPECT_EQ(g.passes[n].at("next_token").values.back(), whole.at("next_token").values.back());
    ids.push_back(static_cast<double>(g.tokens[n]));
  }
}

TEST(Generate, counts_the_rows_it_projects_and_those_it_did_not_have_to) {
  Network network;
  network.blocks.resize(1);
  network.blocks[0].attention.options.mask = Mask::causal();
  const NamedInputs inputs{{"X", {{3, 2}, {1, 0, 0, 1, 1, 1}}}};
  const Generation g = run_row_by_row(network, inputs, 1);
  EXPECT_EQ(g.passes.size(), 3U);
  EXPECT_EQ(g.rows_projected, 3);
  EXPECT_EQ(g.rows_without_cache, 6);  // 3·4/2
  const Generation longer = generate(two_blocks(), two_block_inputs({1, 2, 3, 4}), 3);
  EXPECT_EQ(longer.rows_projected, 4 + 2);
  EXPECT_EQ(longer.rows_without_cache, 4 + 5 + 6);
}

TEST(Generate, rows_of_x_run_one_by_one_equal_the_run_over_all) {
  Network network;
  network.blocks.resize(1);
  network.blocks[0].attention.options.mask = Mask::causal();
  const NamedInputs inputs{{"X", {{3, 2}, {1, 0, 0, 1, 1, 1}}}};
  const Trace whole = run_steps(steps(network, shapes_of(inputs)), inputs);
  for (index_t prompt = 1; prompt <= 3; ++prompt) {
    const Generation g = run_row_by_row(network, inputs, prompt);
    std::vector<double> out;
    for (const Trace& pass : g.passes)
      out.insert(out.end(), pass.at("out").values.begin(), pass.at("out").values.end());
    EXPECT_EQ(out, whole.at("out").values);
    EXPECT_TRUE(g.tokens.empty());
  }
}

TEST(Generate, what_cannot_be_cached_is_refused_by_name) {
  Network network = two_blocks();
  network.blocks[0].attention.options.mask = Mask();
  network.blocks[1].attention.options.dropout.p = 0.5;
  const NamedInputs inputs = two_block_inputs({1, 2});
  const std::vector<Problem> problems = check_cached(network, inputs);
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_EQ(problems[0].where, "block.0.attention.mask");
  EXPECT_EQ(problems[1].where, "block.1.attention.dropout");
  EXPECT_THROW(generate(network, inputs, 1), ShapeError);
  EXPECT_THROW(generate(two_blocks(), inputs, 0), OptionError);
  EXPECT_THROW(generate(two_blocks(), two_block_inputs({}), 1), OptionError);
  EXPECT_THROW(run_row_by_row(two_blocks(), inputs, 3), OptionError);
  network = two_blocks();
  network.blocks[0].attention.options.query_start = index_t{1};
  const std::vector<Problem> ahead = check_cached(network, inputs);
  ASSERT_EQ(ahead.size(), 1U);
  EXPECT_EQ(ahead[0].where, "block.0.attention.query_start");
  network = two_blocks();
  network.unembedding.reset();
  EXPECT_THROW(generate(network, inputs, 1), OptionError);
}

// Row a alone would see one key where, among all rows and one position ahead, it sees two.
TEST(Generate, a_stated_start_is_refused_unless_row_0_stands_at_0) {
  Network network;
  network.blocks.resize(1);
  AttentionOptions& options = network.blocks[0].attention.options;
  options.mask = Mask::causal();
  const NamedInputs inputs{{"X", {{2, 2}, {1, 0, 0, 1}}}};
  for (const QueryStart& start : {QueryStart(index_t{1}), QueryStart(index_t{-1})}) {
    options.query_start = start;
    EXPECT_THROW(run_row_by_row(network, inputs, 1), ShapeError);
  }
  for (const QueryStart& start :
       {QueryStart(), QueryStart(index_t{0}), QueryStart(Align::start), QueryStart(Align::end)}) {
    options.query_start = start;
    EXPECT_TRUE(check_cached(network, inputs).empty());
  }
}

TEST(Generate, cross_attention_may_not_depend_on_where_a_row_stands_nor_drop) {
  Network network;
  network.blocks.resize(1);
  network.blocks[0].attention.options.mask = Mask::causal();
  network.blocks[0].cross_attention = Attention{};
  const NamedInputs inputs{{"X", {{2, 2}, {1, 0, 0, 1}}}, {"context", {{2, 2}, {1, 2, 3, 4}}}};
  EXPECT_TRUE(check_cached(network, inputs).empty());
  AttentionOptions& options = network.blocks[0].cross_attention->options;
  options.dropout.p = 0.5;
  options.mask = Mask::causal();
  const std::vector<Problem> problems = check_cached(network, inputs);
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_EQ(problems[0].where, "cross_attention.dropout");
  EXPECT_EQ(problems[1].where, "cross_attention.mask");
  options = {};
  options.bias = Bias::alibi({1});
  EXPECT_EQ(check_cached(network, inputs).size(), 1U);
  options = {};
  options.mask = Mask::key_lengths({1});  // speaks of keys alone
  EXPECT_TRUE(check_cached(network, inputs).empty());
  network.blocks[0].cross_attention->given_k = "X";
  EXPECT_EQ(check_cached(network, inputs).size(), 1U);
}

TEST(Generate, no_token_is_chosen_from_nan) {
  NamedInputs inputs = two_block_inputs({1, 2});
  inputs[1].second.values[2 * 8] = std::nan("");  // the row of token 2
  const Trace trace = run_steps(steps(two_blocks(), shapes_of(inputs)), inputs);
  EXPECT_TRUE(std::isnan(trace.at("next_token").values[1]));
  EXPECT_THROW(generate(two_blocks(), inputs, 2), OptionError);
}

}  // namespace
}  // namespace glasshead::nn
