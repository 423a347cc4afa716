// Files that are not what they should be: refused, with everything that is wrong.
#include <cstring>
#include <limits>

#include "data.h"
#include "text/sources.h"

namespace glasshead::text {
namespace {

std::string said_of_json(const std::string& json) {
  std::vector<Problem> problems;
  const auto words = Words::from_json(std::as_bytes(std::span(json)), problems);
  return words == nullptr ? text_of(problems) : "accepted";
}

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

constexpr const char* kWordLevel =
    R"({"version":"1.0","added_tokens":[],"model":{"type":"WordLevel","vocab":{"a":0,"b":1},"unk_token":"a"}})";
constexpr const char* kUnigram =
    R"({"version":"1.0","added_tokens":[],"model":{"type":"Unigram","vocab":[["<unk>",0.0],["a",-1.5]],"unk_id":0}})";

class Hostile : public testing::Test {
 protected:
  void SetUp() override {
    if (!Tokenizer::is_available()) GTEST_SKIP() << "configured without tokenizers";
  }
};

#define EXPECT_SAYS(said, part) EXPECT_NE((said).find(part), std::string::npos) << (said)

TEST_F(Hostile, tokenizer_json) {
  EXPECT_EQ(said_of_json(kWordLevel), "accepted");
  EXPECT_EQ(said_of_json(kUnigram), "accepted");
  EXPECT_SAYS(said_of_json(""), "not JSON");
  EXPECT_SAYS(said_of_json("{"), "not JSON");
  EXPECT_NE(said_of_json("[]"), "accepted");
  EXPECT_SAYS(said_of_json("\xFF"), "not UTF-8");
  EXPECT_SAYS(said_of_json(std::string(100000, '[')), "levels deep");
  EXPECT_SAYS(said_of_json(changed(kWordLevel, R"("b":1)", R"("b":1,"a":2,"b":3)")),
              "\"a\" occurs twice");
  EXPECT_SAYS(said_of_json(changed(kWordLevel, R"("b":1)", R"("b":1,"a":2,"b":3)")),
              "\"b\" occurs twice");
  EXPECT_SAYS(said_of_json(changed(kWordLevel, R"("b":1)", R"("b":0)")), "share the id 0");
  EXPECT_SAYS(said_of_json(changed(kWordLevel, R"("b":1)", R"("b":4294967295)")), "out of range");
  EXPECT_NE(said_of_json(changed(kWordLevel, R"("b":1)", R"("b":-1)")), "accepted");
  EXPECT_SAYS(said_of_json(changed(kUnigram, R"(["a",-1.5])", R"(["a",-1.5],["a",-2.5])")),
              "occurs twice");
  EXPECT_SAYS(said_of_json(changed(kUnigram, R"("a")", '"' + std::string(100000, 'a') + '"')),
              "at most 1024");
  const std::string token =
      R"([{"id":7,"content":"b","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}])";
  EXPECT_SAYS(said_of_json(changed(kWordLevel, "[]", token)), "says its id is 7");
}

// Its first four bytes ask for 4 GiB.
TEST_F(Hostile, a_map_of_characters_larger_than_its_bytes) {
  const std::string normalizer =
      R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"/////wAAAAA="},"model")";
  EXPECT_SAYS(said_of_json(changed(kUnigram, R"("model")", normalizer)), "precompiled_charsmap");
}

TEST_F(Hostile, a_panic_of_the_crate_is_a_problem) {
  const std::string decoder = R"("decoder":{"type":"Sequence","decoders":17},"model")";
  EXPECT_NE(said_of_json(changed(kUnigram, R"("model")", decoder)), "accepted");
}

std::string bin(std::uint32_t longest, const std::vector<std::pair<float, std::string>>& pieces) {
  std::string bytes(4, '\0');
  std::memcpy(bytes.data(), &longest, 4);
  for (const auto& [score, piece] : pieces) {
    char head[8];
    const auto length = static_cast<std::uint32_t>(piece.size());
    std::memcpy(head, &score, 4);
    std::memcpy(head + 4, &length, 4);
    bytes.append(head, 8) += piece;
  }
  return bytes;
}

std::vector<std::pair<float, std::string>> all_bytes() {
  std::vector<std::pair<float, std::string>> pieces = {
      {0.0F, "<unk>"}, {0.0F, "\n<s>\n"}, {0.0F, "\n</s>\n"}};
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte)
    pieces.push_back({0.0F, std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">"});
  return pieces;
}

std::string said_of_bin(const std::string& bytes) {
  Vocabulary vocabulary;
  std::vector<Problem> problems;
  return read_tokenizer_bin(bytes, vocabulary, problems) ? "accepted" : text_of(problems);
}

TEST_F(Hostile, tokenizer_bin) {
  auto pieces = all_bytes();
  EXPECT_EQ(said_of_bin(bin(7, pieces)), "accepted");
  EXPECT_SAYS(said_of_bin("abc"), "has 3 bytes");
  EXPECT_SAYS(said_of_bin(bin(7, {})), "has 0 pieces");
  EXPECT_SAYS(said_of_bin(bin(3, pieces)), "the longest has 3");
  EXPECT_SAYS(said_of_bin(bin(7, pieces) + "1234567"), "is cut off");
  std::string beyond = bin(0xFFFFFFFF, pieces);
  const std::uint32_t huge = 0xFFFFFFF0;
  std::memcpy(beyond.data() + 8, &huge, 4);
  EXPECT_SAYS(said_of_bin(beyond), "piece 0 has");
  pieces.push_back({std::numeric_limits<float>::quiet_NaN(), "ab"});
  pieces[100].second = "x";
  EXPECT_SAYS(said_of_bin(bin(7, pieces)), "not finite");
  pieces.pop_back();
  EXPECT_SAYS(said_of_bin(bin(7, pieces)), "piece 100 is 'x'");
}

std::string said_of_bpe(const std::string& vocab, const std::string& merges,
                        const Beside& beside = {}) {
  Vocabulary vocabulary;
  std::vector<Problem> problems;
  if (read_bpe(vocab, merges, beside, vocabulary, problems) &&
      Words::from(vocabulary, problems) != nullptr)
    return "accepted";
  return text_of(problems);
}

TEST_F(Hostile, vocab_json_and_merges) {
  EXPECT_EQ(said_of_bpe(R"({"a":0,"b":1,"ab":2})", "#version: 0.2\na b\n"), "accepted");
  const std::string said = said_of_bpe(R"({"a":0,"b":0,"c":9,"d":-1,"e":"x"})", "");
  for (const char* part : {"'b', 0, is taken", "'c' is not a whole number in [0, 5)", "'d'", "'e'"})
    EXPECT_SAYS(said, part);
  EXPECT_SAYS(said_of_bpe(R"({"a":0,"a":1})", ""), "a");
  EXPECT_SAYS(said_of_bpe(R"({"a":0,"b":1})", "a b\n"), "number 0 has \"ab\", which is no token");
  EXPECT_SAYS(said_of_bpe(R"({"a":0,"b":1})", "a\nb\n"), "number 1, \"b\", is not two tokens");
  Beside beside;
  beside.config = {{"model_type", formats::ConfigValue{std::string("whisper")}}};
  EXPECT_SAYS(said_of_bpe(R"({"a":0})", "", beside), "'whisper'");
  beside.config.clear();
  beside.added_tokens = {{"<x>", formats::ConfigValue{std::int64_t{5}}},
                         {"<y>", formats::ConfigValue{std::int64_t{0}}}};
  const std::string added = said_of_bpe(R"({"a":0})", "", beside);
  EXPECT_SAYS(added, "'<x>' says its id is 5; the next is 1");
  EXPECT_SAYS(added, "'<y>' says its id is 0, that of 'a'");
}

TEST_F(Hostile, vocab_txt) {
  const auto said = [](const std::string& text) {
    Vocabulary vocabulary;
    std::vector<Problem> problems;
    if (read_vocab_txt(text, {}, vocabulary, problems) &&
        Words::from(vocabulary, problems) != nullptr)
      return std::string("accepted");
    return text_of(problems);
  };
  EXPECT_EQ(said("[UNK]\r\nab\r\n##c"), "accepted");
  EXPECT_SAYS(said(""), "is empty");
  EXPECT_SAYS(said("ab\ncd\n"), "has no [UNK]");
  EXPECT_SAYS(said("[UNK]\nab\ncd\nab\n"), "\"ab\" occurs twice, again as id 3");
  EXPECT_SAYS(said("[UNK]\n\xFF\n"), "number 1 is not UTF-8");
}

std::string said_of_gguf(const formats::Config& config) {
  Vocabulary vocabulary;
  std::vector<Problem> problems;
  if (read_gguf(config, vocabulary, problems) && Words::from(vocabulary, problems) != nullptr)
    return "accepted";
  return text_of(problems);
}

formats::Config gguf(const std::vector<std::pair<std::string, formats::ConfigValue>>& keys) {
  formats::Config config;
  for (const auto& [key, value] : keys) config.push_back({"tokenizer.ggml." + key, value});
  return config;
}

formats::ConfigValue whole(std::int64_t number) { return {number}; }
formats::ConfigValue word(const char* text) { return {std::string(text)}; }

TEST_F(Hostile, gguf) {
  const formats::ConfigValue tokens{formats::ConfigTexts{"<unk>", "a", "b"}};
  const std::string said = said_of_gguf(gguf({{"model", word("llama")},
                                              {"tokens", tokens},
                                              {"scores", {formats::ConfigList{whole(1), whole(2)}}},
                                              {"token_type", {formats::ConfigList{whole(2)}}},
                                              {"bos_token_id", whole(3)}}));
  EXPECT_SAYS(said, "scores: has 2 entries; there are 3 tokens");
  EXPECT_SAYS(said, "token_type: has 1 entries; there are 3 tokens");
  EXPECT_SAYS(said, "bos_token_id: is 3; there are 3 tokens");
  EXPECT_SAYS(said_of_gguf(gguf({})), "tokens: is missing");
  EXPECT_SAYS(said_of_gguf(gguf({{"model", word("rwkv")}, {"tokens", tokens}})), "'rwkv'");
  EXPECT_SAYS(said_of_gguf(gguf({{"model", word("gpt2")}, {"tokens", tokens}})),
              "pre: says nothing of how words are cut");
  EXPECT_SAYS(
      said_of_gguf(gguf({{"model", word("gpt2")}, {"tokens", tokens}, {"pre", word("bloom")}})),
      "pre: is 'bloom', which is not known");
  const formats::ConfigValue twice{formats::ConfigTexts{"<unk>", "a", "a"}};
  const formats::ConfigValue zeros{formats::ConfigList{whole(0), whole(0), whole(0)}};
  EXPECT_SAYS(said_of_gguf(gguf({{"model", word("llama")}, {"tokens", twice}, {"scores", zeros}})),
              "\"a\" occurs twice");
  EXPECT_SAYS(said_of_gguf(gguf({{"model", word("t5")},
                                 {"tokens", tokens},
                                 {"scores", zeros},
                                 {"unknown_token_id", whole(0)},
                                 {"precompiled_charsmap", {formats::ConfigList{whole(255)}}}})),
              "precompiled_charsmap");
  EXPECT_SAYS(said_of_gguf(gguf({{"model", word("llama")}, {"tokens", tokens}})),
              "scores: is missing");
}

// Sizes that files name themselves: of lists, of words, of what is cut or filled up. None of them
// is taken for granted, and none makes a program allocate what the file doesn't hold.
TEST_F(Hostile, sizes_in_tokenizer_json) {
  const std::string huge = "18446744073709551615", large = "4294967295";
  const auto with = [](const std::string& part) {
    return said_of_json(changed(kWordLevel, R"("model")", part + R"(,"model")"));
  };
  // Truncation and padding are of other callers: their sizes are read, and nothing is made of them.
  EXPECT_EQ(with(R"("truncation":{"max_length":)" + huge +
                 R"(,"strategy":"LongestFirst","stride":0,"direction":"Right"})"),
            "accepted");
  EXPECT_EQ(
      with(
          R"("padding":{"strategy":{"Fixed":)" + huge +
          R"(},"direction":"Right","pad_to_multiple_of":null,"pad_id":0,"pad_type_id":0,"pad_token":"a"})"),
      "accepted");
  EXPECT_NE(said_of_json(changed(kUnigram, R"("unk_id":0)", R"("unk_id":)" + huge)), "accepted");
  EXPECT_NE(said_of_json(changed(kUnigram, R"("unk_id":0)", R"("unk_id":2)")), "accepted");
  for (const std::string& id : {large, huge, std::string("-1"), std::string("1e300")}) {
    const std::string token =
        R"([{"id":)" + id +
        R"(,"content":"b","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}])";
    EXPECT_NE(said_of_json(changed(kWordLevel, "[]", token)), "accepted") << id;
  }
  // A pattern that would be gigabytes once it is unfolded.
  EXPECT_NE(
      with(
          R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"((a{1000}){1000}){1000}"},"behavior":"Isolated","invert":false})"),
      "accepted");
}

TEST_F(Hostile, sizes_in_other_vocabularies) {
  // Lengths that are negative as the i32 they are stored as, or go round when added.
  for (const std::uint32_t length : {0x7FFFFFFFU, 0x80000000U, 0xFFFFFFFFU, 0xFFFFFFF8U}) {
    std::string bytes = bin(0xFFFFFFFF, all_bytes());
    std::memcpy(bytes.data() + 8, &length, 4);
    EXPECT_SAYS(said_of_bin(bytes), "piece 0 has");
  }
  EXPECT_SAYS(said_of_bpe(R"({"a":0,"b":9223372036854775807})", ""), "'b' is not a whole number");
  EXPECT_SAYS(said_of_bpe(R"({"a":0,"b":18446744073709551615})", ""), "b");
  EXPECT_SAYS(said_of_bpe(R"({"a":0,"b":1e300})", ""), "'b' is not a whole number");
  Beside beside;
  beside.tokenizer_config = {
      {"added_tokens_decoder",
       formats::ConfigValue{formats::ConfigObject{
           {"99999999999999999999", {formats::ConfigObject{{"content", {std::string("<x>")}}}}},
           {"999999999", {formats::ConfigObject{{"content", {std::string("<y>")}}}}}}}}};
  const std::string said = said_of_bpe(R"({"a":0})", "", beside);
  EXPECT_SAYS(said, "'99999999999999999999' is no id");
  EXPECT_SAYS(said, "'<y>' says its id is 999999999; the next is 1");
  const formats::ConfigValue tokens{formats::ConfigTexts{"<unk>", "a", "b"}};
  const formats::ConfigValue zeros{formats::ConfigList{whole(0), whole(0), whole(0)}};
  for (const std::int64_t id : {std::int64_t{3}, std::int64_t{-1}, INT64_MAX, INT64_MIN}) {
    const std::string of_gguf = said_of_gguf(gguf({{"model", word("llama")},
                                                   {"tokens", tokens},
                                                   {"scores", zeros},
                                                   {"eos_token_id", whole(id)}}));
    EXPECT_SAYS(of_gguf, "eos_token_id");
  }
  EXPECT_SAYS(said_of_gguf(gguf(
                  {{"model", word("llama")},
                   {"tokens", tokens},
                   {"scores", zeros},
                   {"token_type", {formats::ConfigList{whole(1), whole(1), whole(INT64_MAX)}}}})),
              "token_type");
}

}  // namespace
}  // namespace glasshead::text
