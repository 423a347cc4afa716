// The tiny models of tests/data/models, which Hugging Face transformers and the gguf package wrote.
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "glasshead/model_facts.h"
#include "model/made_files.h"
#include "model/parameters.h"

namespace glasshead::model {
namespace {

const std::string kFolder = GLASSHEAD_SOURCE_DIR "/tests/data/models/";

struct Fixture {
  std::string name, path;
  index_t context = 0;
};

const formats::ConfigValue* field(const formats::Config& object, const char* name) {
  return formats::find(object, name);
}

std::vector<Fixture> fixtures() {
  std::stringstream text;
  text << std::ifstream(kFolder + "index.json").rdbuf();
  formats::Config index;
  std::vector<Problem> problems;
  EXPECT_TRUE(formats::parse_config(text.str(), index, problems)) << text_of(problems);
  std::vector<Fixture> all;
  for (const formats::ConfigValue& value :
       std::get<formats::ConfigList>(field(index, "models")->is)) {
    const auto& entry = std::get<formats::ConfigObject>(value.is);
    formats::Reader reader(entry, problems);
    all.push_back({reader.text("name"), reader.text("path"), reader.whole_or("context", 0)});
  }
  EXPECT_TRUE(problems.empty()) << text_of(problems);
  return all;
}

Loaded loaded(const Fixture& fixture, const formats::Checkpoint& files) {
  Loaded model;
  std::vector<Problem> problems;
  EXPECT_TRUE(load(files, {.context = fixture.context}, model, problems)) << fixture.name << ":\n"
                                                                          << text_of(problems);
  return model;
}

TEST(Fixtures, all_load_and_have_as_many_numbers_as_their_description_says) {
  int count = 0;
  for (const Fixture& fixture : fixtures()) {
    const formats::Checkpoint files = formats::Checkpoint::open(kFolder + fixture.path);
    const Loaded model = loaded(fixture, files);
    EXPECT_GT(model.inventory.parameters, 0) << fixture.name;
    EXPECT_EQ(count_parameters(model.description), model.inventory.parameters) << fixture.name;
    ++count;
  }
  EXPECT_GE(count, 5);
}

void expect_same_attention(const Attention& a, const Attention& b, const std::string& name) {
  EXPECT_EQ(a.heads, b.heads) << name;
  EXPECT_EQ(a.kv_heads, b.kv_heads) << name;
  EXPECT_EQ(a.d_k, b.d_k) << name;
  EXPECT_EQ(a.d_v, b.d_v) << name;
  EXPECT_EQ(a.scale, b.scale) << name;
  EXPECT_EQ(a.softcap, b.softcap) << name;
  EXPECT_EQ(a.is_causal, b.is_causal) << name;
  EXPECT_EQ(a.window, b.window) << name;
  EXPECT_EQ(a.has_qkv_bias, b.has_qkv_bias) << name;
  EXPECT_EQ(a.has_out_bias, b.has_out_bias) << name;
  EXPECT_EQ(a.qk_norm.has_value(), b.qk_norm.has_value()) << name;
  EXPECT_EQ(a.rotary, b.rotary) << name;
  EXPECT_EQ(a.has_relative, b.has_relative) << name;
}

void expect_same_stack(const Stack& a, const Stack& b, const std::string& name) {
  ASSERT_EQ(a.layers.size(), b.layers.size()) << name;
  EXPECT_NEAR(a.norm.eps, b.norm.eps, 1e-9) << name;  // GGUF keeps it in f32
  EXPECT_EQ(a.placement, b.placement) << name;
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    expect_same_attention(a.layers[i].self, b.layers[i].self, name);
    EXPECT_EQ(a.layers[i].ffn.width, b.layers[i].ffn.width) << name;
    EXPECT_EQ(a.layers[i].ffn.activation, b.layers[i].ffn.activation) << name;
    EXPECT_EQ(a.layers[i].ffn.is_gated, b.layers[i].ffn.is_gated) << name;
    EXPECT_EQ(a.layers[i].ffn.has_bias, b.layers[i].ffn.has_bias) << name;
  }
  ASSERT_EQ(a.rotaries.size(), b.rotaries.size()) << name;
  for (std::size_t n = 0; n < a.rotaries.size(); ++n) {
    const Rotary &one = a.rotaries[n], &other = b.rotaries[n];
    EXPECT_NEAR(one.amplitude, other.amplitude, 1e-7) << name;
    ASSERT_EQ(one.frequencies.size(), other.frequencies.size()) << name;
    for (std::size_t i = 0; i < one.frequencies.size(); ++i)  // factors are stored in f32
      EXPECT_NEAR(one.frequencies[i], other.frequencies[i], 1e-7 * one.frequencies[i]) << name;
  }
  EXPECT_EQ(a.relative.has_value(), b.relative.has_value()) << name;
}

TEST(Fixtures, a_gguf_twin_describes_the_same_model) {
  const std::vector<Fixture> all = fixtures();
  for (const Fixture& twin : all) {
    if (!twin.name.ends_with(".gguf")) continue;
    const std::string name = twin.name.substr(0, twin.name.size() - 5);
    for (const Fixture& original : all) {
      if (original.name != name) continue;
      const auto hf = formats::Checkpoint::open(kFolder + original.path);
      const auto gguf = formats::Checkpoint::open(kFolder + twin.path);
      const Description a = loaded(original, hf).description;
      const Description b = loaded(twin, gguf).description;
      EXPECT_EQ(a.vocab, b.vocab) << name;
      EXPECT_EQ(a.d_model, b.d_model) << name;
      EXPECT_EQ(a.embedding.scale, b.embedding.scale) << name;
      EXPECT_EQ(a.embedding.positions, b.embedding.positions) << name;
      EXPECT_EQ(a.head.is_tied, b.head.is_tied) << name;
      EXPECT_EQ(a.head.scale, b.head.scale) << name;
      EXPECT_EQ(a.head.softcap, b.head.softcap) << name;
      EXPECT_EQ(a.position_limit, b.position_limit) << name;
      ASSERT_EQ(a.encoder.has_value(), b.encoder.has_value()) << name;
      ASSERT_EQ(a.decoder.has_value(), b.decoder.has_value()) << name;
      if (a.encoder) expect_same_stack(*a.encoder, *b.encoder, name);
      if (a.decoder) expect_same_stack(*a.decoder, *b.decoder, name);
    }
  }
}

TEST(Fixtures, the_facts_of_each_are_those_of_its_files) {
  for (const Fixture& fixture : fixtures()) {
    const ModelFacts facts = model_facts(kFolder + fixture.path);
    EXPECT_EQ(facts.format, fixture.path.ends_with(".gguf") ? "gguf" : "safetensors");
    index_t parameters = 0, bytes = 0;
    for (const StoredFacts& one : facts.stored) {
      parameters += one.parameters;
      bytes += one.bytes;
    }
    EXPECT_EQ(parameters, facts.parameters) << fixture.name;
    EXPECT_EQ(bytes, facts.bytes) << fixture.name;
    EXPECT_FALSE(facts.stacks.empty()) << fixture.name;
  }
}

}  // namespace
}  // namespace glasshead::model
