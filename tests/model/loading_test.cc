// The loader's rule: everything used, everything there, all that is wrong at once.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "glasshead/context.h"
#include "model/made_files.h"
#include "model/parameters.h"
#include "published.h"

namespace glasshead::model {
namespace {

constexpr const char* kSizes = R"({"model_type": "llama", "hidden_size": 4,
  "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 2,
  "intermediate_size": 3, "vocab_size": 5, "tie_word_embeddings": true})";

MadeFiles& add_llama(MadeFiles& made, const std::string& prefix = "model.") {
  const std::string layer = prefix + "layers.0.";
  return made.add(prefix + "embed_tokens.weight", {5, 4})
      .add(layer + "input_layernorm.weight", {4})
      .add(layer + "self_attn.q_proj.weight", {4, 4}, 100)
      .add(layer + "self_attn.k_proj.weight", {2, 4}, 200)
      .add(layer + "self_attn.v_proj.weight", {2, 4}, 300)
      .add(layer + "self_attn.o_proj.weight", {4, 4})
      .add(layer + "post_attention_layernorm.weight", {4})
      .add(layer + "mlp.gate_proj.weight", {3, 4}, 400)
      .add(layer + "mlp.up_proj.weight", {3, 4}, 500)
      .add(layer + "mlp.down_proj.weight", {4, 3})
      .add(prefix + "norm.weight", {4}, 7);
}

std::vector<float> row(const nn::Linear& linear, index_t o) {
  std::vector<float> out(static_cast<std::size_t>(linear.in()));
  linear.row(o, out);
  return out;
}

std::string loading_refused(MadeFiles& made) {
  const formats::Checkpoint files = made.open();
  Loaded model;
  std::vector<Problem> problems;
  EXPECT_FALSE(load(files, {}, model, problems));
  return text_of(problems);
}

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(Loading, matrices_with_one_input_stand_as_one) {
  MadeFiles made(kSizes);
  const formats::Checkpoint files = add_llama(made).open();
  const Loaded model = load(files);
  const LayerWeights& layer = model.weights.decoder.layers.at(0);
  ASSERT_EQ(layer.self.in.out(), 8);
  EXPECT_EQ(row(layer.self.in, 0), (std::vector<float>{100, 101, 102, 103}));
  EXPECT_EQ(row(layer.self.in, 5), (std::vector<float>{204, 205, 206, 207}));
  EXPECT_EQ(row(layer.self.in, 7), (std::vector<float>{304, 305, 306, 307}));
  ASSERT_EQ(layer.ffn.in.out(), 6);
  EXPECT_EQ(row(layer.ffn.in, 2), (std::vector<float>{408, 409, 410, 411}));
  EXPECT_EQ(row(layer.ffn.in, 3), (std::vector<float>{500, 501, 502, 503}));
  EXPECT_EQ(model.weights.decoder.final_norm.gain, (std::vector<float>{7, 8, 9, 10}));
  EXPECT_TRUE(model.weights.decoder.final_norm.bias.empty());
  EXPECT_EQ(row(model.weights.head.logits, 1), row(model.weights.embedding.tokens, 1));
  EXPECT_EQ(model.inventory.parameters, 116);
  EXPECT_EQ(model.weights.parameters, count_parameters(model.description));
}

TEST(Loading, the_prefix_may_be_left_off) {
  MadeFiles made(kSizes);
  const formats::Checkpoint files = add_llama(made, "").open();
  EXPECT_EQ(load(files).inventory.parameters, 116);
}

TEST(Loading, missing_unused_and_mis_shaped_tensors_are_named_at_once) {
  MadeFiles made(R"({"model_type": "llama", "hidden_size": 4, "num_hidden_layers": 2,
    "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 2, "intermediate_size": 6,
    "vocab_size": 5, "tie_word_embeddings": false})");
  add_llama(made).add("model.layers.0.self_attn.q_proj.bias", {4});
  const std::string said = loading_refused(made);
  EXPECT_SAYS(said, "lm_head.weight: is missing; must be there, of shape [5, 4]");
  EXPECT_SAYS(said,
              "model.layers.1.self_attn.k_proj.weight: is missing; must be there, of shape "
              "[2, 4]");
  EXPECT_SAYS(said, "model.layers.0.mlp.gate_proj.weight: is [3, 4]; must be [6, 4]");
  EXPECT_SAYS(said, "model.layers.0.mlp.down_proj.weight: is [4, 3]; must be [4, 6]");
  EXPECT_SAYS(said, "model.layers.0.self_attn.q_proj.bias: is not used");
}

TEST(Loading, what_older_files_hold_beside_the_weights_is_left) {
  MadeFiles made(kSizes);
  add_llama(made).add("model.layers.0.self_attn.rotary_emb.inv_freq", {1});
  const formats::Checkpoint files = made.open();
  EXPECT_EQ(load(files).inventory.parameters, 116);
}

TEST(Loading, a_stored_copy_of_a_tied_table_must_be_the_same) {
  MadeFiles same(kSizes);
  add_llama(same).add("lm_head.weight", {5, 4});
  const formats::Checkpoint files = same.open();
  EXPECT_EQ(load(files).inventory.parameters, 116);
  MadeFiles other(kSizes);
  add_llama(other).add("lm_head.weight", {5, 4}, 2);
  EXPECT_SAYS(loading_refused(other),
              "lm_head.weight: is not the same as model.embed_tokens.weight");
}

TEST(Loading, gpt2_is_stored_the_other_way_round) {
  MadeFiles made(R"({"model_type": "gpt2", "n_embd": 2, "n_layer": 1, "n_head": 1,
    "n_positions": 3, "vocab_size": 5, "n_inner": 3})");
  const formats::Checkpoint files = made.add("wte.weight", {5, 2})
                                        .add("wpe.weight", {3, 2}, 40)
                                        .add("h.0.ln_1.weight", {2})
                                        .add("h.0.ln_1.bias", {2}, 9)
                                        .add("h.0.attn.c_attn.weight", {2, 6})
                                        .add("h.0.attn.c_attn.bias", {6})
                                        .add("h.0.attn.c_proj.weight", {2, 2})
                                        .add("h.0.attn.c_proj.bias", {2})
                                        .add("h.0.ln_2.weight", {2})
                                        .add("h.0.ln_2.bias", {2})
                                        .add("h.0.mlp.c_fc.weight", {2, 3})
                                        .add("h.0.mlp.c_fc.bias", {3})
                                        .add("h.0.mlp.c_proj.weight", {3, 2})
                                        .add("h.0.mlp.c_proj.bias", {2})
                                        .add("ln_f.weight", {2})
                                        .add("ln_f.bias", {2})
                                        .add("h.0.attn.bias", {1, 1, 3, 3})
                                        .open();
  const Loaded model = load(files);
  const LayerWeights& layer = model.weights.decoder.layers.at(0);
  EXPECT_EQ(row(layer.self.in, 0), (std::vector<float>{1, 7}));
  EXPECT_EQ(row(layer.self.in, 5), (std::vector<float>{6, 12}));
  EXPECT_EQ(layer.self.norm.bias, (std::vector<float>{9, 10}));
  EXPECT_EQ(model.weights.embedding.positions.at(3), 43);
  EXPECT_EQ(model.inventory.parameters, count_parameters(model.description));
}

TEST(Loading, gemmas_gains_have_their_one_added) {
  MadeFiles made(R"({"model_type": "gemma", "hidden_size": 4, "num_hidden_layers": 1,
    "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 2, "intermediate_size": 3,
    "vocab_size": 5})");
  const formats::Checkpoint files = add_llama(made).open();
  EXPECT_EQ(load(files).weights.decoder.final_norm.gain, (std::vector<float>{8, 9, 10, 11}));
}

TEST(HostileFiles, a_configuration_with_wrong_letters_is_refused_or_read) {
  const std::string letters = "\"{}[]:,.0123456789eE+-truefalsn ";
  std::uint64_t state = 1;  // a linear congruential generator: the same letters everywhere
  const auto next = [&](std::size_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>((state >> 33) % below);
  };
  int read = 0;
  for (int n = 0; n < 3000; ++n) {
    std::string config = kSizes;
    for (std::size_t change = 0; change <= next(3); ++change)
      config[next(config.size())] = letters[next(letters.size())];
    formats::Config parsed;
    std::vector<Problem> problems;
    if (!formats::parse_config(config, parsed, problems)) continue;
    MadeFiles made(config);
    const formats::Checkpoint files = add_llama(made).open();
    Loaded model;
    const bool is_loaded = load(files, {}, model, problems);
    EXPECT_EQ(is_loaded, problems.empty()) << config;
    if (is_loaded) {
      EXPECT_EQ(model.inventory.parameters, count_parameters(model.description)) << config;
      ++read;
    }
  }
  EXPECT_GT(read, 50);
}

// A folder with a model, and files beside it.
class Folder {
 public:
  Folder() {
    std::string name = testing::TempDir() + "glasshead-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path_ + "/" + name).parent_path());
    std::ofstream(path_ + "/" + name, std::ios::binary) << text;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Description described_with(const std::string& modules, const std::string& pooling,
                           std::vector<Problem>& problems) {
  Folder folder;
  folder.write("config.json", R"({"model_type": "bert", "hidden_size": 24,
    "num_hidden_layers": 1, "num_attention_heads": 6, "intermediate_size": 37, "vocab_size": 67,
    "max_position_embeddings": 20})");
  folder.write("model.safetensors", std::string("\x02\0\0\0\0\0\0\0{}", 10));
  folder.write("modules.json", modules);
  folder.write("1_Pooling/config.json", pooling);
  const formats::Checkpoint files = formats::Checkpoint::open(folder.path());
  Description model;
  describe(files, {.has_tensors = false}, model, problems);
  return model;
}

TEST(Sentences, are_pooled_as_the_folder_says) {
  const std::string modules = R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
    {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"})";
  const std::string normalised =
      modules + R"(, {"path": "2", "type": "sentence_transformers.models.Normalize"}])";
  std::vector<Problem> problems;
  const Description mean =
      described_with(normalised, R"({"pooling_mode_mean_tokens": true})", problems);
  EXPECT_EQ(text_of(problems), "");
  EXPECT_EQ(mean.pooling, Pooling::mean);
  EXPECT_TRUE(mean.normalises_pooled);
  const Description first =
      described_with(modules + "]", R"({"pooling_mode_cls_token": true})", problems);
  EXPECT_EQ(text_of(problems), "");
  EXPECT_EQ(first.pooling, Pooling::first);
  EXPECT_FALSE(first.normalises_pooled);
}

TEST(Sentences, other_ways_of_pooling_are_refused) {
  const auto refused = [](const std::string& modules, const std::string& pooling) {
    std::vector<Problem> problems;
    described_with(modules, pooling, problems);
    return text_of(problems);
  };
  const std::string modules = R"([{"path": "1_Pooling", "type": "x.Pooling"}])";
  EXPECT_SAYS(refused(modules, R"({"pooling_mode_max_tokens": true})"), "must pool by the mean");
  EXPECT_SAYS(refused(modules, R"({"pooling_mode_mean_tokens": true,
    "pooling_mode_cls_token": true})"),
              "must pool by the mean");
  EXPECT_SAYS(refused(R"([{"path": "../../etc", "type": "x.Pooling"}])", "{}"),
              "must be a folder beside it");
  EXPECT_SAYS(refused(R"([{"path": "2_Dense", "type": "x.Dense"}])", "{}"),
              "a module that is not built");
  EXPECT_SAYS(refused("7", "{}"), "must be a list");
  EXPECT_SAYS(refused(modules, "{"), "1_Pooling/config.json");
}

TEST(LoadingReal, stories260K) {
  GLASSHEAD_NEED_MODEL("stories260K");
  const formats::Checkpoint files = formats::Checkpoint::open(real_model("stories260K"));
  const Loaded model = load(files);
  EXPECT_EQ(model.inventory.parameters, 260032);
  EXPECT_EQ(model.inventory.used.size(), 47U);
  EXPECT_EQ(count_parameters(model.description), 260032);
  const Attention& self = model.description.decoder->layers[4].self;
  EXPECT_EQ(self.heads, 8);
  EXPECT_EQ(self.kv_heads, 4);
  EXPECT_EQ(self.d_k, 8);
  EXPECT_EQ(model.weights.decoder.layers[0].self.in.out(), 128);
}

TEST(LoadingReal, rxnmapper_runs_one_layer_twelve_times) {
  GLASSHEAD_NEED_MODEL("rxnmapper-albert");
  const formats::Checkpoint files = formats::Checkpoint::open(real_model("rxnmapper-albert"));
  const Loaded model = load(files);
  EXPECT_EQ(model.inventory.parameters, 801359);
  EXPECT_EQ(count_parameters(model.description), 801359);
  EXPECT_EQ(model.description.encoder->layers[0].ffn.activation, nn::Activation::gelu);
  ASSERT_EQ(model.weights.encoder.layers.size(), 12U);
  EXPECT_EQ(row(model.weights.encoder.layers[11].self.in, 3),
            row(model.weights.encoder.layers[0].self.in, 3));
  EXPECT_TRUE(model.description.head.has_pooler);
  EXPECT_EQ(model.weights.head.transform.out(), 128);
  EXPECT_EQ(model.weights.head.bias.size(), 591U);
  // The shared matrices are one in memory: less than twice what is stored.
  EXPECT_LT(model.weights.bytes, 2 * 3209092);
}

}  // namespace
}  // namespace glasshead::model
