// Published checkpoints as files.
#include <gtest/gtest.h>

#include "formats/bytes.h"
#include "formats/checkpoint.h"
#include "published.h"

namespace glasshead::test {
namespace {

namespace fs = std::filesystem;
using formats::Checkpoint;
using formats::Reader;
using formats::StoredTensor;

index_t elements(const Checkpoint& files) {
  index_t count = 0;
  for (const StoredTensor& tensor : files.tensors())
    count += static_cast<index_t>(tensor.bytes.size()) / block_bytes(tensor.type);
  return count;
}

TEST(RealModels, stories260K_has_its_published_tensors) {
  GLASSHEAD_NEED_MODEL("stories260K");
  const std::string folder = real_model("stories260K");
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
  GLASSHEAD_NEED_MODEL("rxnmapper-albert");
  const std::string folder = real_model("rxnmapper-albert");
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
