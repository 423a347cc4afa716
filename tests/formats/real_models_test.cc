// Published checkpoints, where they lie: $GLASSHEAD_MODELS, else ../shared/models beside the
// source.
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "formats/bytes.h"
#include "formats/checkpoint.h"

namespace glasshead::test {
namespace {

namespace fs = std::filesystem;
using formats::Checkpoint;
using formats::Reader;
using formats::StoredTensor;

std::string model_folder(const std::string& name) {
  const fs::path source = GLASSHEAD_SOURCE_DIR;
  const char* named = std::getenv("GLASSHEAD_MODELS");
  if (named != nullptr) return (fs::path(named) / name).string();
  const fs::path ours = source / "tests/data/models" / name;
  return (fs::exists(ours) ? ours : source.parent_path() / "shared/models" / name).string();
}

index_t elements(const Checkpoint& files) {
  index_t count = 0;
  for (const StoredTensor& tensor : files.tensors())
    count += static_cast<index_t>(tensor.bytes.size()) / block_bytes(tensor.type);
  return count;
}

TEST(RealModels, stories260K_has_its_published_tensors) {
  const std::string folder = model_folder("stories260K");
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " is not there";
  const Checkpoint files = Checkpoint::open(folder);
  EXPECT_EQ(files.tensors().size(), 47U);
  EXPECT_EQ(elements(files), 260032);
  const StoredTensor* k = files.find("model.layers.4.self_attn.k_proj.weight");
  ASSERT_NE(k, nullptr);
  EXPECT_EQ(k->shape, (std::vector<index_t>{32, 64}));
  EXPECT_EQ(k->type, Stored::f32);
  EXPECT_EQ(files.find("lm_head.weight"), nullptr);
  std::vector<Problem> problems;
  Reader config(files.config(), problems);
  EXPECT_EQ(config.text("model_type"), "llama");
  EXPECT_EQ(config.whole("num_key_value_heads"), 4);
  EXPECT_EQ(config.number("rms_norm_eps"), 1e-5);
  EXPECT_TRUE(config.flag_or("tie_word_embeddings", false));
  EXPECT_EQ(lines(problems), "");
  EXPECT_EQ(files.beside("tok512.bin").size(), 6227U);
  EXPECT_TRUE(files.beside("tokenizer.json").empty());
}

TEST(RealModels, rxnmapper_has_its_published_tensors) {
  const std::string folder = model_folder("rxnmapper-albert");
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " is not there";
  const Checkpoint files = Checkpoint::open(folder + "/model.safetensors");
  EXPECT_EQ(files.tensors().size(), 30U);
  EXPECT_EQ(elements(files), 801359);
  std::vector<Problem> problems;
  Reader config(files.config(), problems);
  EXPECT_EQ(config.number("layer_norm_eps"), 1e-12);
  EXPECT_EQ(config.whole("num_hidden_layers"), 12);
  EXPECT_FALSE(config.has("finetuning_task"));  // null
  EXPECT_EQ(lines(problems), "");
}

}  // namespace
}  // namespace glasshead::test
