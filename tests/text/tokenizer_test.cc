// The public class, on vocabularies small enough to read.
#include "data.h"
#include "formats/gguf_bytes.h"
#include "glasshead/error.h"
#include "published.h"

namespace glasshead::text {
namespace {

using Ids = std::vector<index_t>;

class Tokenizers : public testing::Test {
 protected:
  void SetUp() override {
    if (!Tokenizer::is_available()) GTEST_SKIP() << "configured without tokenizers";
  }

  static Tokenizer byte_bpe() {
    return Tokenizer::load((data_folder() / "byte_bpe/tokenizer.json").string());
  }
  static Tokenizer llama() {
    return Tokenizer::load((data_folder() / "llama/tokenizer.json").string());
  }
};

template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "not refused";
}

TEST(TokenizersOff, say_so) {
  if (Tokenizer::is_available()) GTEST_SKIP() << "configured with tokenizers";
  EXPECT_THROW(Tokenizer::load("anything"), OptionError);
}

// Ids published with the weights: llama2.c's own for "Once upon a time", and those that its
// algorithm, best score first, gives the others.
TEST_F(Tokenizers, stories260K) {
  GLASSHEAD_NEED_MODEL("stories260K");
  const std::string folder = real_model("stories260K");
  const Tokenizer words = Tokenizer::load(folder);
  EXPECT_EQ(words.size(), 512);
  EXPECT_EQ(words.bos(), 1);
  EXPECT_EQ(words.eos(), 2);
  const std::vector<std::pair<std::string, Ids>> known = {
      {"Once upon a time", {403, 407, 261, 378}},
      {"Hello, world!", {346, 306, 414, 432, 263, 304, 341, 443}},
      {"naïve café 日本",
       {297, 412, 198, 178, 360, 280, 412, 431, 485, 410, 233, 154, 168, 233, 159, 175}},
      {"  two  spaces\n", {410, 410, 259, 424, 414, 410, 262, 427, 412, 331, 419, 13}},
  };
  for (const auto& [text, ids] : known) {
    const Encoding bare = words.encode(text, false);
    EXPECT_EQ(bare.ids, ids) << text;
    EXPECT_EQ(words.decode(ids), text);
    EXPECT_EQ(words.encode(text).ids.front(), 1);
    EXPECT_EQ(words.encode(text).ids.size(), ids.size() + 1);
  }
  // 日 has three tokens, each over the whole character.
  const Encoding encoding = words.encode("a 日", false);
  const ByteRange last = encoding.bytes.back();
  EXPECT_EQ(last.begin, 2);
  EXPECT_EQ(last.end, 5);
}

// The 56 tokens of RXNMapper's example.
TEST_F(Tokenizers, rxnmapper_has_a_token_for_each_symbol) {
  GLASSHEAD_NEED_MODEL("rxnmapper-albert");
  const std::string folder = real_model("rxnmapper-albert");
  const Tokenizer words = Tokenizer::load(folder);
  const std::string reaction =
      "CC(C)S.CN(C)C=O.Fc1cccnc1F.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1ncccc1F";
  const Ids ids = {12, 16, 16, 17, 16, 18, 34, 24, 16, 23, 17, 16, 18, 16, 22, 19, 24, 27, 15,
                   20, 15, 15, 15, 25, 15, 20, 27, 24, 19, 22, 16, 17, 36, 18, 36, 24, 51, 24,
                   51, 29, 16, 16, 17, 16, 18, 34, 15, 20, 25, 15, 15, 15, 15, 20, 27, 13};
  EXPECT_EQ(words.encode(reaction).ids, ids);
  EXPECT_EQ(words.decode(ids), reaction);
  EXPECT_EQ(words.mask(), 14);
  EXPECT_EQ(words.pad(), 0);
  EXPECT_NE(refusal([&] { words.encode("CC Q"); }).find("has ' ' at its byte 2"),
            std::string::npos);
}

TEST_F(Tokenizers, files_beside_name_the_special_tokens) {
  const Tokenizer words = byte_bpe();
  EXPECT_EQ(words.eos(), words.id_of("<|endoftext|>"));
  EXPECT_EQ(words.pad(), words.id_of("<|im_end|>"));
  EXPECT_EQ(words.bos(), std::nullopt);
  EXPECT_EQ(words.chat_template(), "<|im_start|>");
  EXPECT_TRUE(words.is_special(*words.eos()));
  EXPECT_FALSE(words.is_special(0));
  EXPECT_EQ(words.decode({*words.eos(), *words.id_of("a")}), "a");
  EXPECT_EQ(words.decode({*words.eos(), *words.id_of("a")}, false), "<|endoftext|>a");
}

TEST_F(Tokenizers, truncation_and_padding_of_the_file_are_off) {
  const Tokenizer words = byte_bpe();  // its file asks for at most 8 ids, and for 16
  EXPECT_EQ(words.encode("").ids.size(), 0U);
  EXPECT_GT(words.encode("a b c d e f g h i j k l m n o p q r s t u v w x y z").ids.size(), 25U);
}

TEST_F(Tokenizers, ids_out_of_range_are_refused_all_of_them) {
  const Tokenizer words = byte_bpe();
  const index_t size = words.size();
  const std::string said = refusal([&] { words.decode({0, size, -1}); });
  EXPECT_NE(said.find("ids[1]: is " + std::to_string(size)), std::string::npos) << said;
  EXPECT_NE(said.find("ids[2]: is -1"), std::string::npos) << said;
  EXPECT_THROW(words.token(size), OptionError);
  EXPECT_THROW(words.bytes_of(-1), OptionError);
  EXPECT_THROW(words.is_special(size), OptionError);
}

// What is not UTF-8 passes through vocabularies that have its bytes, and comes back as it was.
TEST_F(Tokenizers, bytes_that_are_not_utf8) {
  for (const Tokenizer& words : {byte_bpe(), llama()}) {
    for (const std::string text : {"\xFF", "a\xE6\x97 b\xC3", "\x80\x81\xFE",
                                   "caf\xE9 \xE6\x97\xA5\xF0\x9F", "\xED\xA0\x80 x"}) {
      const Encoding encoding = words.encode(text, false);
      std::string bytes;
      for (const index_t id : encoding.ids) bytes += words.bytes_of(id);
      if (words.id_of("<0xFF>")) bytes.erase(0, bytes.starts_with(' ') ? 1 : 0);
      EXPECT_EQ(bytes, text);
      index_t at = 0;
      for (const ByteRange& range : encoding.bytes) {
        EXPECT_LE(range.begin, at);
        EXPECT_GE(range.end, at);
        at = range.end;
      }
      EXPECT_EQ(at, static_cast<index_t>(text.size()));
    }
  }
  const Tokenizer bert = Tokenizer::load((data_folder() / "bert").string());
  EXPECT_NE(refusal([&] { bert.encode("ab\xFF"); }).find("not UTF-8 from its byte 2 on"),
            std::string::npos);
}

TEST_F(Tokenizers, a_nul_is_a_byte_like_another) {
  const std::string text("a\0b", 3);
  const Tokenizer words = byte_bpe();
  EXPECT_EQ(words.decode(words.encode(text).ids), text);
}

TEST_F(Tokenizers, a_stream_gives_whole_characters_and_in_all_the_text) {
  for (const char* name : {"byte_bpe", "llama", "gemma", "t5", "bert", "bert_cased"}) {
    const Tokenizer words = Tokenizer::load((data_folder() / name).string());
    for (const std::string& text : corpus()) {
      const Ids ids = words.encode(text, false).ids;
      Utf8Stream stream(words);
      std::string all;
      for (const index_t id : ids) {
        const std::string part = stream.push(id);
        EXPECT_TRUE(part.empty() || (part.front() & 0xC0) != 0x80) << name;
        all += part;
      }
      all += stream.finish();
      EXPECT_EQ(all, words.decode(ids)) << name;
    }
  }
}

TEST_F(Tokenizers, a_stream_of_any_ids_is_their_text) {
  for (const Tokenizer& words : {byte_bpe(), llama()}) {
    std::uint32_t state = 12345;
    Ids ids;
    Utf8Stream stream(words);
    std::string all;
    for (int n = 0; n < 3000; ++n) {
      state = state * 1664525 + 1013904223;
      // Mostly bytes, so that many characters are broken and many are whole.
      ids.push_back((state >> 8) % (n % 3 == 0 ? words.size() : 260));
      all += stream.push(ids.back());
    }
    all += stream.finish();
    EXPECT_EQ(all, words.decode(ids));
  }
}

TEST_F(Tokenizers, half_a_character_is_kept_back) {
  const Tokenizer words = byte_bpe();
  const Ids ids = words.encode("\xF0\x9F\xA7\x91", false).ids;  // U+1F9D1
  ASSERT_GT(ids.size(), 1U);
  Utf8Stream stream(words);
  for (std::size_t n = 0; n + 1 < ids.size(); ++n) EXPECT_EQ(stream.push(ids[n]), "");
  EXPECT_EQ(stream.push(ids.back()), "\xF0\x9F\xA7\x91");
  EXPECT_EQ(stream.push(ids.front()), "");
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
}

TEST_F(Tokenizers, long_runs_of_spaces_are_not_cut_short) {
  const Tokenizer words = byte_bpe();
  const std::string text = std::string(300000, ' ') + "x";
  EXPECT_EQ(words.decode(words.encode(text, false).ids).size(), text.size());
}

// Files of a test's own, gone with it.
class Files {
 public:
  Files() {
    std::string name = testing::TempDir() + "glasshead-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~Files() { fs::remove_all(folder_); }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return (folder_ / name).string();
  }

 private:
  fs::path folder_;
};

TEST_F(Tokenizers, weights_stand_for_their_folder) {
  const Files files;
  const std::string weights = files.write("model.safetensors", "");
  EXPECT_NE(refusal([&] { Tokenizer::load(weights); }).find("has none of tokenizer.json"),
            std::string::npos);
  files.write("tokenizer.json", read_file(data_folder() / "byte_bpe/tokenizer.json"));
  EXPECT_EQ(Tokenizer::load(weights).size(), byte_bpe().size());
}

// A GGUF whose tokenizer is a JSON of three words; its other keys name the end.
std::string gguf_with_json(std::uint32_t eos, const std::vector<std::string>& tokens) {
  std::string list;
  for (const std::string& token : tokens) list += test::gguf_text(token);
  const std::string json =
      R"({"version":"1.0","added_tokens":[],"model":{"type":"WordLevel","vocab":{"a":0,"b":1,"c":2},"unk_token":"a"}})";
  return test::Gguf()
      .key("tokenizer.huggingface.json", test::kString, test::gguf_text(json))
      .key("tokenizer.ggml.model", test::kString, test::gguf_text("llama"))
      .key("tokenizer.ggml.tokens", test::kArray,
           test::gguf_array(test::kString, tokens.size(), list))
      .key("tokenizer.ggml.eos_token_id", test::kU32, test::u32(eos))
      .file();
}

TEST_F(Tokenizers, a_gguf_is_one_by_its_first_bytes) {
  const Files files;
  const Tokenizer words =
      Tokenizer::load(files.write("sha256-0123", gguf_with_json(2, {"a", "b", "c"})));
  EXPECT_EQ(words.size(), 3);
  EXPECT_EQ(words.eos(), 2);
}

TEST_F(Tokenizers, ids_beside_a_json_must_be_its_own) {
  const Files files;
  const std::vector<std::pair<std::uint32_t, std::vector<std::string>>> wrong{
      {3, {"a", "b", "c", "</s>"}}, {2, {"a", "c", "b"}}};
  for (const auto& [eos, tokens] : wrong) {
    const std::string path = files.write("x.gguf", gguf_with_json(eos, tokens));
    const std::string said = refusal([&] { Tokenizer::load(path); });
    EXPECT_NE(said.find("tokenizer.ggml.eos_token_id: is " + std::to_string(eos)),
              std::string::npos)
        << said;
  }
}

TEST_F(Tokenizers, what_is_no_vocabulary_is_refused_with_its_place) {
  EXPECT_THROW(Tokenizer::load("/nonexistent"), IoError);
  EXPECT_THROW(Tokenizer::load(std::string(GLASSHEAD_SOURCE_DIR) + "/docs"), FormatError);
  EXPECT_THROW(Tokenizer::load(std::string(GLASSHEAD_SOURCE_DIR) + "/README.md"), FormatError);
}

}  // namespace
}  // namespace glasshead::text
