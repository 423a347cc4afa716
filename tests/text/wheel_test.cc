// Ids, byte ranges and texts as Hugging Face's `tokenizers` wheel gives them:
// tests/data/tokenizers.
#include "data.h"
#include "text/sources.h"

namespace glasshead::text {
namespace {

class Wheel : public testing::Test {
 protected:
  void SetUp() override {
    if (!Tokenizer::is_available()) GTEST_SKIP() << "configured without tokenizers";
  }

  static std::shared_ptr<const Words> load_json(const fs::path& path) {
    std::vector<Problem> problems;
    const std::string json = read_file(path);
    auto words = Words::from_json(std::as_bytes(std::span(json)), problems);
    EXPECT_NE(words, nullptr) << text_of(problems);
    return words;
  }

  static std::shared_ptr<const Words> build(const Vocabulary& vocabulary) {
    std::vector<Problem> problems;
    auto words = Words::from(vocabulary, problems);
    EXPECT_NE(words, nullptr) << text_of(problems);
    return words;
  }

  // A GGUF's keys from gguf.json, or others.
  static formats::Config gguf(const char* model, const fs::path& path) {
    formats::Config config;
    for (auto& [key, value] : read_json(path))
      config.push_back({"tokenizer.ggml." + key, std::move(value)});
    set(config, "model", std::string(model));
    return config;
  }

  template <class T>
  static void set(formats::Config& config, const char* key, T value) {
    config.push_back(
        {std::string("tokenizer.ggml.") + key, formats::ConfigValue{std::move(value)}});
  }

  static Vocabulary read(const formats::Config& config) {
    Vocabulary vocabulary;
    std::vector<Problem> problems;
    EXPECT_TRUE(read_gguf(config, vocabulary, problems)) << text_of(problems);
    return vocabulary;
  }
};

TEST_F(Wheel, tokenizer_json_of_every_kind) {
  for (const char* name : {"byte_bpe", "llama", "gemma", "t5"}) {
    SCOPED_TRACE(name);
    const auto words = load_json(data_folder() / name / "tokenizer.json");
    ASSERT_NE(words, nullptr);
    expect_as_wheel(*words, read_expected(data_folder() / name / "expected.json"));
  }
}

TEST_F(Wheel, vocab_txt_is_wordpiece_cased_or_not) {
  for (const char* name : {"bert", "bert_cased"}) {
    SCOPED_TRACE(name);
    Vocabulary vocabulary;
    std::vector<Problem> problems;
    const std::string text = read_file(data_folder() / name / "vocab.txt");
    ASSERT_TRUE(read_vocab_txt(text, {}, vocabulary, problems)) << text_of(problems);
    const auto words = build(vocabulary);
    ASSERT_NE(words, nullptr);
    expect_as_wheel(*words, read_expected(data_folder() / name / "expected.json"));
  }
}

TEST_F(Wheel, vocab_json_and_merges_go_by_the_model_type) {
  const fs::path folder = data_folder() / "parts";
  for (const auto& [type, name] : {std::pair{"gpt2", "gpt-2"}, std::pair{"qwen2", "qwen2"}}) {
    SCOPED_TRACE(type);
    Beside beside;
    beside.tokenizer_config = read_json(folder / "tokenizer_config.json");
    beside.config = {{"model_type", formats::ConfigValue{std::string(type)}}};
    Vocabulary vocabulary;
    std::vector<Problem> problems;
    ASSERT_TRUE(read_bpe(read_file(folder / "vocab.json"), read_file(folder / "merges.txt"), beside,
                         vocabulary, problems))
        << text_of(problems);
    const auto words = build(vocabulary);
    ASSERT_NE(words, nullptr);
    Expected expected = read_expected(folder / (std::string(name) + ".json"));
    expected.unicode.clear();
    expect_as_wheel(*words, expected);
  }
}

TEST_F(Wheel, a_folder_of_roberta) {
  const fs::path folder = data_folder() / "roberta";
  const Expected expected = read_expected(folder / "expected.json");
  const Tokenizer words = Tokenizer::load(folder.string());
  EXPECT_EQ(words.cls(), words.id_of("<s>"));
  EXPECT_EQ(words.mask(), words.id_of("<mask>"));
  Vocabulary vocabulary;
  std::vector<Problem> problems;
  ASSERT_TRUE(read_bpe(read_file(folder / "vocab.json"), read_file(folder / "merges.txt"), {},
                       vocabulary, problems))
      << text_of(problems);
  expect_as_wheel(*build(vocabulary), expected);
}

TEST_F(Wheel, gguf_gpt2_by_every_way_to_cut_words) {
  const fs::path folder = data_folder() / "parts";
  Vocabulary parts;
  std::vector<Problem> problems;
  Beside beside;
  beside.tokenizer_config = read_json(folder / "tokenizer_config.json");
  ASSERT_TRUE(read_bpe(read_file(folder / "vocab.json"), read_file(folder / "merges.txt"), beside,
                       parts, problems));
  formats::ConfigList kinds;
  for (const Kind kind : parts.kinds) kinds.push_back({static_cast<std::int64_t>(kind)});
  for (const char* pre : {"gpt-2", "smollm", "llama-bpe", "dbrx", "qwen2", "stablelm2", "qwen35",
                          "tekken", "gpt-4o", "falcon"}) {
    SCOPED_TRACE(pre);
    formats::Config config;
    set(config, "model", std::string("gpt2"));
    set(config, "pre", std::string(pre));
    set(config, "tokens", formats::ConfigTexts(parts.tokens));
    set(config, "merges", formats::ConfigTexts(parts.merges));
    set(config, "token_type", kinds);
    const auto words = build(read(config));
    ASSERT_NE(words, nullptr);
    expect_as_wheel(*words, read_expected(folder / (std::string(pre) + ".json")));
  }
}

TEST_F(Wheel, gguf_llama_with_merges_made_from_scores) {
  formats::Config config = gguf("llama", data_folder() / "llama/gguf.json");
  set(config, "bos_token_id", std::int64_t{1});
  expect_as_wheel(*build(read(config)), read_expected(data_folder() / "llama/expected.json"));
  set(config, "add_space_prefix", false);
  expect_as_wheel(*build(read(config)), read_expected(data_folder() / "gemma/expected.json"));
}

TEST_F(Wheel, gguf_t5) {
  formats::Config config = gguf("t5", data_folder() / "t5/gguf.json");
  set(config, "eos_token_id", std::int64_t{1});
  expect_as_wheel(*build(read(config)), read_expected(data_folder() / "t5/expected.json"));
}

TEST_F(Wheel, gguf_bert_after_the_converter_respelled_it) {
  const std::vector<std::string> pieces = [] {
    Vocabulary vocabulary;
    std::vector<Problem> problems;
    read_vocab_txt(read_file(data_folder() / "bert/vocab.txt"), {}, vocabulary, problems);
    return vocabulary.tokens;
  }();
  formats::ConfigTexts tokens;
  formats::ConfigList kinds;
  for (const std::string& piece : pieces) {
    const bool is_mark = kinds.size() < 5;
    tokens.push_back(is_mark                   ? piece
                     : piece.starts_with("##") ? piece.substr(2)
                                               : "\xE2\x96\x81" + piece);
    kinds.push_back({std::int64_t{is_mark ? 3 : 1}});
  }
  formats::Config config;
  set(config, "model", std::string("bert"));
  set(config, "tokens", tokens);
  set(config, "token_type", kinds);
  set(config, "cls_token_id", std::int64_t{2});
  set(config, "seperator_token_id", std::int64_t{3});
  set(config, "unknown_token_id", std::int64_t{1});
  Expected expected = read_expected(data_folder() / "bert/expected.json");
  expected.unicode.clear();
  expect_as_wheel(*build(read(config)), expected);
}

}  // namespace
}  // namespace glasshead::text
