// What `check` says about descriptions that do not fit: every fault by the name of its input or
// field, and nothing that is innocent.
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "nn/network.h"

namespace glasshead::nn {
namespace {

// A description in which everything that can be named is used, and inputs that fit it.
struct Example {
  Network network;
  Shapes inputs;
};

Example sound() {
  Example e;
  Network& network = e.network;
  network.ids = "ids";
  network.embedding = "E";
  network.positions = {PositionKind::learned, "P", 10000};
  network.blocks.resize(2);
  for (Block& block : network.blocks) {
    block.has_residual = true;
    block.attention.heads = 4;
    block.attention.kv_heads = 2;
    block.attention.options.mask = Mask::causal();
  }
  Block& first = network.blocks[0];
  first.attention_norm = {NormKind::layer, "g", "b", 1e-5};
  first.attention.query = {"W_Q", "b_Q"};
  first.attention.key = {"W_K", ""};
  first.attention.value = {"W_V", ""};
  first.attention.output = {"W_O", "b_O"};
  first.attention.rope = Rope{};
  first.feed_forward = FeedForward{{"W_up", ""}, {"W_gate", ""}, {"W_down", ""}, Activation::silu};
  Block& second = network.blocks[1];
  second.is_cross = true;
  second.attention.query = {"W_Q1", ""};
  second.attention.key = {"W_K1", ""};
  second.attention.value = {"W_V1", ""};
  second.attention.options.mask = Mask();
  network.unembedding =
      Unembedding{.is_tied = false, .weight = "W_vocab", .bias = "b_vocab", .softcap = 0};
  e.inputs = {{"ids", {3}},        {"E", {10, 8}},      {"P", {5, 8}},        {"g", {8}},
              {"b", {8}},          {"W_Q", {8, 8}},     {"b_Q", {8}},         {"W_K", {8, 4}},
              {"W_V", {8, 6}},     {"W_O", {12, 8}},    {"b_O", {8}},         {"W_up", {8, 16}},
              {"W_gate", {8, 16}}, {"W_down", {16, 8}}, {"context", {7, 3}},  {"W_Q1", {8, 8}},
              {"W_K1", {3, 4}},    {"W_V1", {3, 4}},    {"W_vocab", {8, 10}}, {"b_vocab", {10}}};
  return e;
}

TEST(NetworkCheck, a_description_that_fits_has_no_problems) {
  const Example e = sound();
  for (const Problem& problem : check(e.network, e.inputs))
    ADD_FAILURE() << problem.where << ": " << problem.what;
}

// One change that makes something not fit, and every name the problems must have.
struct Fault {
  const char* name;
  std::function<void(Example&)> plant;
  std::set<std::string> named;
};

std::vector<Fault> faults() {
  const auto shape = [](const char* tap, std::vector<index_t> now) {
    return [tap, now](Example& e) { e.inputs[tap] = now; };
  };
  const auto gone = [](const char* tap) { return [tap](Example& e) { e.inputs.erase(tap); }; };
  return {
      {"rows of W_Q", shape("W_Q", {7, 8}), {"W_Q"}},
      {"W_Q is a vector", shape("W_Q", {8}), {"W_Q"}},
      {"W_Q is missing", gone("W_Q"), {"W_Q"}},
      {"columns of W_Q are no multiple of heads", shape("W_Q", {8, 9}), {"W_Q", "b_Q"}},
      {"W_K gives another d_k", shape("W_K", {8, 8}), {"W_K"}},
      {"columns of W_V are no multiple of kv_heads", shape("W_V", {8, 5}), {"W_V"}},
      {"length of b_Q", shape("b_Q", {7}), {"b_Q"}},
      {"b_Q is a matrix", shape("b_Q", {1, 8}), {"b_Q"}},
      {"rows of W_O", shape("W_O", {8, 8}), {"W_O"}},
      {"columns of W_O against the residual", shape("W_O", {12, 7}), {"W_O", "b_O"}},
      {"gain", shape("g", {7}), {"g"}},
      {"bias of the norm is missing", gone("b"), {"b"}},
      {"eps below 0",
       [](Example& e) { e.network.blocks[0].attention_norm.eps = -1; },
       {"block.0.attention_norm.eps"}},
      {"a bias for RMSNorm",
       [](Example& e) { e.network.blocks[0].attention_norm.kind = NormKind::rms; },
       {"block.0.attention_norm.bias"}},
      {"gate and up differ", shape("W_gate", {8, 15}), {"W_gate"}},
      {"rows of W_down", shape("W_down", {15, 8}), {"W_down"}},
      {"down is left out",
       [](Example& e) { e.network.blocks[0].feed_forward->down = {}; },
       {"block.0.feed_forward.down", "W_up"}},  // W_up's 16 columns then meet the residual
      {"ids are a matrix", shape("ids", {3, 1}), {"ids"}},
      {"the table is missing", gone("E"), {"E"}},
      {"no table is named", [](Example& e) { e.network.embedding.clear(); }, {"embedding"}},
      {"too few positions", shape("P", {2, 8}), {"P"}},
      {"positions of another size", shape("P", {5, 7}), {"P"}},
      {"first position below 0",
       [](Example& e) { e.network.first_position = -1; },
       {"first_position"}},
      {"heads below 1",
       [](Example& e) { e.network.blocks[0].attention.heads = 0; },
       {"block.0.attention.heads"}},
      {"kv_heads do not divide heads",
       [](Example& e) {
         e.network.blocks[0].attention.kv_heads = 3;
         e.inputs["W_K"] = {8, 6};
         e.inputs["W_V"] = {8, 9};
         e.inputs["W_O"] = {12, 8};
       },
       {"block.0.attention.kv_heads"}},
      {"rotary of odd size",
       [](Example& e) { e.network.blocks[0].attention.rope->rotary = 1; },
       {"block.0.attention.rope.rotary"}},
      {"a mask of another size",
       [](Example& e) {
         static const std::vector<std::uint8_t> kAllowed(20, 1);
         e.network.blocks[0].attention.options.mask =
             Mask::allowed(Broadcast(ConstTensor<2>(kAllowed.data(), DType::u8, {4, 5}, {5, 1})));
       },
       {"block.0.attention.mask.allowed"}},
      {"no finite scale",
       [](Example& e) { e.network.blocks[0].attention.options.scale = 1e308 * 10; },
       {"block.0.attention.scale"}},
      {"sinks for other heads",
       [](Example& e) { e.network.blocks[0].attention.options.sinks = {1, 2, 3}; },
       {"block.0.attention.sinks"}},
      {"causal over a second sequence without a start",
       [](Example& e) { e.network.blocks[1].attention.options.mask = Mask::causal(); },
       {"block.1.attention.query_start"}},
      {"the context is missing", gone("context"), {"context"}},
      {"the context is a vector", shape("context", {7}), {"context"}},
      {"rows of W_K1 against the context", shape("W_K1", {8, 4}), {"W_K1"}},
      {"W_vocab", shape("W_vocab", {9, 10}), {"W_vocab"}},
      {"b_vocab", shape("b_vocab", {9}), {"b_vocab"}},
      {"no vocabulary", shape("W_vocab", {8, 0}), {"W_vocab", "b_vocab"}},
      {"tied and given",
       [](Example& e) { e.network.unembedding->is_tied = true; },
       {"unembedding.weight"}},
      {"untied and not given",
       [](Example& e) { e.network.unembedding->weight.clear(); },
       {"unembedding.weight"}},
      {"softcap of logits below 0",
       [](Example& e) { e.network.unembedding->softcap = -1; },
       {"unembedding.softcap"}},
  };
}

std::set<std::string> names(const Example& e, std::string& text) {
  std::set<std::string> found;
  for (const Problem& problem : check(e.network, e.inputs)) {
    found.insert(problem.where);
    text += problem.where + ": " + problem.what + "\n";
  }
  return found;
}

TEST(NetworkCheck, every_fault_is_named_and_nothing_innocent_is) {
  for (const Fault& fault : faults()) {
    Example e = sound();
    fault.plant(e);
    std::string text;
    EXPECT_EQ(names(e, text), fault.named) << fault.name << "\n" << text;
    EXPECT_THROW(steps(e.network, e.inputs), ShapeError) << fault.name;
  }
}

TEST(NetworkCheck, faults_in_different_places_are_all_named_at_once) {
  Example e = sound();
  e.inputs["W_Q"] = {7, 8};
  e.inputs["g"] = {3};
  e.inputs["W_gate"] = {8, 15};
  e.inputs.erase("W_K1");
  e.inputs["b_vocab"] = {2};
  e.network.first_position = -5;
  std::string text;
  EXPECT_EQ(names(e, text),
            (std::set<std::string>{"W_Q", "g", "W_gate", "W_K1", "b_vocab", "first_position"}))
      << text;
}

TEST(NetworkCheck, a_matrix_that_does_not_fit_is_told_with_both_shapes) {
  Network network;
  network.blocks.resize(1);
  network.blocks[0].attention.key.weight = "W_K";
  const std::vector<Problem> problems = check(network, {{"X", {3, 2}}, {"W_K", {3, 2}}});
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].where, "W_K");
  EXPECT_EQ(problems[0].what, "3x2 where X is 3x2: rows must equal d_model = 2");
}

TEST(NetworkCheck, given_q_k_v_that_do_not_fit_each_other_are_named) {
  Network network;
  network.blocks.resize(1);
  Attention& attention = network.blocks[0].attention;
  attention.given_q = "q";
  attention.given_k = "k";
  attention.given_v = "v";
  std::string text;
  EXPECT_EQ(names({network, {{"q", {1, 2}}, {"k", {3, 4}}, {"v", {2, 2}}}}, text),
            (std::set<std::string>{"k", "v"}));
  EXPECT_EQ(names({network, {{"q", {2}}, {"k", {3, 2}}, {"v", {3, 2}}}}, text),
            (std::set<std::string>{"q"}));
  EXPECT_EQ(names({network, {{"q", {2, 1, 2}}, {"k", {3, 2}}, {"v", {3, 2}}}}, text),
            (std::set<std::string>{"q"}));
  EXPECT_EQ(names({network, {{"k", {3, 2}}, {"v", {3, 2}}}}, text), (std::set<std::string>{"q"}));
}

TEST(NetworkCheck, x_is_wanted_where_something_reads_it) {
  Network network;
  network.blocks.resize(1);
  std::string text;
  EXPECT_EQ(names({network, {}}, text), (std::set<std::string>{"X"}));
  EXPECT_EQ(names({network, {{"X", {2, 2, 2}}}}, text), (std::set<std::string>{"X"}));
}

}  // namespace
}  // namespace glasshead::nn
