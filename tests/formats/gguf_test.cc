#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "formats/checkpoint.h"
#include "formats/gguf_bytes.h"

namespace glasshead::test {
namespace {

using formats::Checkpoint;
using formats::Reader;
using formats::StoredTensor;

// A parsed file and the bytes that its tensors lie in.
struct Read {
  std::vector<std::byte> bytes;
  Checkpoint files;
};

Read accepted(const std::string& file) {
  Read read{bytes_of(file), {}};
  std::vector<Problem> problems;
  EXPECT_TRUE(Checkpoint::parse_gguf(read.bytes, read.files, problems)) << lines(problems);
  EXPECT_EQ(lines(problems), "");
  return read;
}

std::string refused(const std::string& file) {
  const std::vector<std::byte> bytes = bytes_of(file);
  Checkpoint files;
  std::vector<Problem> problems;
  EXPECT_FALSE(Checkpoint::parse_gguf(bytes, files, problems));
  EXPECT_FALSE(problems.empty());
  EXPECT_TRUE(files.tensors().empty() && files.config().empty());
  return lines(problems);
}

std::vector<float> values(const StoredTensor& tensor) {
  const auto blocks = static_cast<index_t>(tensor.bytes.size()) / block_bytes(tensor.type);
  std::vector<float> out(static_cast<std::size_t>(blocks * block_elements(tensor.type)));
  dequantise(tensor.type, tensor.bytes.data(), static_cast<index_t>(out.size()), out.data());
  return out;
}

std::string floats(int count) {
  std::vector<float> numbers;
  for (int n = 0; n < count; ++n) numbers.push_back(static_cast<float>(n));
  return raw(numbers);
}

TEST(Gguf, keys_of_every_type_are_read) {
  Gguf gguf;
  gguf.key("u8", kU8, "\xff").key("i8", kI8, "\xff");
  gguf.key("u16", kU16, raw<std::uint16_t>({65535})).key("i16", kI16, raw<std::int16_t>({-2}));
  gguf.key("u32", kU32, u32(4294967295U)).key("i32", kI32, raw<std::int32_t>({-3}));
  gguf.key("f32", kF32, raw<float>({0.5F})).key("f64", kF64, raw<double>({0.1}));
  gguf.key("u64", kU64, u64(7)).key("i64", kI64, raw<std::int64_t>({-4}));
  gguf.key("yes", kBool, "\1").key("text", kString, gguf_text("two words"));
  gguf.key("a.words", kArray, gguf_array(kString, 2, gguf_text("") + gguf_text("\xe2\x96\x81")));
  gguf.key("a.numbers", kArray, gguf_array(kI16, 3, raw<std::int16_t>({1, 2, 300})));
  gguf.key("a.scores", kArray, gguf_array(kF32, 2, raw<float>({-1, 0.25F})));
  gguf.key("a.none", kArray, gguf_array(kU8, 0, ""));
  const Read read = accepted(gguf.file());
  std::vector<Problem> problems;
  Reader config(read.files.config(), problems);
  EXPECT_EQ(config.whole("u8"), 255);
  EXPECT_EQ(config.number("i8"), -1);
  EXPECT_EQ(config.whole("u16"), 65535);
  EXPECT_EQ(config.number("i16"), -2);
  EXPECT_EQ(config.whole("u32"), 4294967295);
  EXPECT_EQ(config.number("i32"), -3);
  EXPECT_EQ(config.number("f32"), 0.5);
  EXPECT_EQ(config.number("f64"), 0.1);
  EXPECT_EQ(config.whole("u64"), 7);
  EXPECT_EQ(config.number("i64"), -4);
  EXPECT_TRUE(config.flag_or("yes", false));
  EXPECT_EQ(config.text("text"), "two words");
  EXPECT_EQ(config.texts_or("a.words", {}), (std::vector<std::string>{"", "\xe2\x96\x81"}));
  EXPECT_EQ(config.wholes_or("a.numbers", {}), (std::vector<index_t>{1, 2, 300}));
  EXPECT_EQ(config.numbers_or("a.scores", {}), (std::vector<double>{-1, 0.25}));
  EXPECT_TRUE(config.has("a.none"));
  EXPECT_EQ(config.wholes_or("a.none", {9}), std::vector<index_t>{});
  EXPECT_EQ(lines(problems), "");
}

TEST(Gguf, dims_are_put_outermost_first_and_bytes_are_the_files) {
  Gguf gguf;
  gguf.tensor("m", {3, 2}, kTensorF32, floats(6));  // [out 2, in 3]
  gguf.tensor("q", {32}, kTensorQ8_0, raw<std::uint16_t>({0x4000}) + std::string(32, '\3'));
  gguf.tensor("scalar", {}, kTensorF32, raw<float>({9}));
  gguf.tensor("none", {0, 5}, kTensorF32, "");
  const Read read = accepted(gguf.file());
  const StoredTensor* m = read.files.find("m");
  ASSERT_NE(m, nullptr);
  EXPECT_EQ(m->shape, (std::vector<index_t>{2, 3}));
  EXPECT_EQ(values(*m), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_GE(m->bytes.data(), read.bytes.data());
  EXPECT_LE(m->bytes.data() + m->bytes.size(), read.bytes.data() + read.bytes.size());
  ASSERT_NE(read.files.find("q"), nullptr);
  EXPECT_EQ(read.files.find("q")->type, Stored::q8_0);
  EXPECT_EQ(values(*read.files.find("q")), std::vector<float>(32, 6));
  ASSERT_NE(read.files.find("scalar"), nullptr);
  EXPECT_EQ(values(*read.files.find("scalar")), std::vector<float>{9});
  ASSERT_NE(read.files.find("none"), nullptr);
  EXPECT_EQ(read.files.find("none")->shape, (std::vector<index_t>{5, 0}));
  EXPECT_EQ(read.files.find("absent"), nullptr);
  std::vector<std::string> names;
  for (const StoredTensor& tensor : read.files.tensors()) names.push_back(tensor.name);
  EXPECT_EQ(names, (std::vector<std::string>{"m", "q", "scalar", "none"}));
}

TEST(Gguf, version_2_other_alignments_and_padding_at_the_end_are_read) {
  Gguf gguf;
  gguf.version = 2;
  gguf.alignment = 8;
  gguf.key("general.alignment", kU32, u32(8));
  gguf.tensor("a", {1}, kTensorF32, floats(1)).tensor("b", {2}, kTensorF32, floats(2));
  const Read read = accepted(gguf.file() + std::string(24, '\0'));
  ASSERT_NE(read.files.find("b"), nullptr);
  EXPECT_EQ(values(*read.files.find("b")), (std::vector<float>{0, 1}));
  EXPECT_TRUE(accepted(Gguf{}.file()).files.tensors().empty());
}

// tests/formats/data/written.gguf is the gguf package's own work (tools/make_gguf_sample.py).
TEST(Gguf, a_file_of_the_gguf_package_is_read) {
  std::ifstream stream(GLASSHEAD_SOURCE_DIR "/tests/formats/data/written.gguf", std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(stream), {}};
  const Read read = accepted(file);
  std::vector<Problem> problems;
  Reader config(read.files.config(), problems);
  EXPECT_EQ(config.text("general.architecture"), "llama");
  EXPECT_EQ(config.whole("general.alignment"), 64);
  EXPECT_EQ(config.whole("llama.block_count"), 2);
  EXPECT_EQ(config.wholes_or("llama.attention.head_count_kv", {}), (std::vector<index_t>{4, 2}));
  EXPECT_EQ(config.number("llama.attention.layer_norm_rms_epsilon"), double{1e-5F});
  EXPECT_TRUE(config.flag_or("tokenizer.ggml.add_bos_token", false));
  EXPECT_EQ(config.texts_or("tokenizer.ggml.tokens", {}), (std::vector<std::string>{"<unk>",
                                                                                    "\xe2\x96\x81"
                                                                                    "caf\xc3\xa9",
                                                                                    ""}));
  EXPECT_EQ(config.numbers_or("tokenizer.ggml.scores", {}), (std::vector<double>{0, -1.5, 2}));
  EXPECT_EQ(lines(problems), "");

  // Every tensor holds -8 ... 7 again and again: every type can say these exactly.
  const std::vector<std::pair<std::string, Stored>> expected{
      {"f32", Stored::f32},   {"f16", Stored::f16},   {"bf16", Stored::bf16},
      {"q8_0", Stored::q8_0}, {"q4_0", Stored::q4_0}, {"q4_1", Stored::q4_1},
      {"q5_0", Stored::q5_0}, {"q5_1", Stored::q5_1}};
  ASSERT_EQ(read.files.tensors().size(), expected.size());
  for (const auto& [name, type] : expected) {
    const StoredTensor* tensor = read.files.find(name + ".weight");
    ASSERT_NE(tensor, nullptr) << name;
    EXPECT_EQ(tensor->type, type) << name;
    EXPECT_EQ(tensor->shape, (std::vector<index_t>{3, 64})) << name;
    const std::vector<float> got = values(*tensor);
    for (std::size_t e = 0; e < got.size(); ++e)
      EXPECT_EQ(got[e], static_cast<float>(static_cast<int>(e % 16) - 8)) << name << " " << e;
  }
}

struct Bad {
  std::string name, file, message;
};

std::vector<Bad> bad_fronts() {
  const auto with = [](auto change) {
    Gguf gguf;
    change(gguf);
    return gguf.file();
  };
  return {
      {"empty", "", "file: begins with ''; a GGUF file begins with 'GGUF'"},
      {"another format", "PK\3\4", "begins with 'PK\\x03\\x04'"},
      {"magic alone", "GGUF", "version: the file ends in it, at byte 4"},
      {"version 1", with([](Gguf& g) { g.version = 1; }), "version: is 1; 2 and 3 are read"},
      {"version 0", with([](Gguf& g) { g.version = 0; }), "version: is 0; 2 and 3 are read"},
      {"version 4", with([](Gguf& g) { g.version = 4; }), "version: is 4; 2 and 3 are read"},
      {"big-endian", with([](Gguf& g) { g.version = 3U << 24; }), "a big-endian file"},
      {"counts cut", "GGUF" + u32(3) + u64(0) + u32(0), "key count: the file ends in it"},
      {"too many tensors", with([](Gguf& g) { g.tensor_count = UINT64_MAX; }),
       "tensor count: is 18446744073709551615, but the 0 bytes that follow hold 0 at most"},
      {"too many keys", with([](Gguf& g) { g.key("k", kU8, "1").key_count = 3; }),
       "key count: is 3, but the 14 bytes that follow hold 1 at most"},
  };
}

std::vector<Bad> bad_keys() {
  const auto key = [](std::string_view name, std::uint32_t type, const std::string& value) {
    return Gguf{}.key(name, type, value).file() + std::string(64, '\0');
  };
  Gguf twice;
  twice.key("k", kU8, "1").key("k", kU8, "2");
  return {
      {"empty key", key("", kU8, "1"), "key number 0: is empty"},
      {"duplicate key", twice.file(), "key 'k': occurs twice"},
      {"unknown value type", key("k", 13, ""), "has a value of type 13; types 0 to 12 are known"},
      {"boolean 2", key("k", kBool, "\2"), "holds a boolean of the byte 2; it must be 0 or 1"},
      {"booleans in an array", key("k", kArray, gguf_array(kBool, 2, std::string("\1\3"))),
       "key 'k': holds a boolean of the byte 3"},
      {"nested array", key("k", kArray, gguf_array(kArray, 1, "")), "is an array of arrays"},
      {"array of unknown type", key("k", kArray, gguf_array(99, 1, "")), "value of type 99"},
      {"array over 2^30", key("k", kArray, gguf_array(kU8, (1U << 30) + 1, "")),
       "is an array of 1073741825 items; at most 2^30 are read"},
      {"array past the end", key("k", kArray, gguf_array(kF64, 9, "")),
       "is an array of 9 f64, but only 64 bytes are left"},
      {"strings past the end", key("k", kArray, gguf_array(kString, 9, "")),
       "is an array of 9 string, but only 64 bytes are left"},
      {"string in an array past the end", key("k", kArray, gguf_array(kString, 1, u64(99))),
       "a text of 99 bytes, but only 64 are left"},
      {"string over 1 GiB", key("k", kString, u64((1U << 30) + 1)), "at most 2^30 are read"},
      {"string past the end", key("k", kString, u64(65)),
       "key 'k': a text of 65 bytes, but only 64 are left"},
      {"key past the end", "GGUF" + u32(3) + u64(0) + u64(1) + u64(6) + "abcde",
       "key number 0: a text of 6 bytes, but only 5 are left"},
      {"value cut", "GGUF" + u32(3) + u64(0) + u64(1) + gguf_text("k") + u32(kF64) + "1234567",
       "key 'k': the file ends in it: only 7 bytes are left"},
      {"alignment 0", key("general.alignment", kU32, u32(0)), "is 0; a power of two is needed"},
      {"alignment 48", key("general.alignment", kU32, u32(48)), "is 48; a power of two"},
      {"alignment as u64", key("general.alignment", kU64, u64(32)),
       "key 'general.alignment': has a value of type 10; it must be a u32, type 4"},
      {"split", key("split.count", kU16, raw<std::uint16_t>({3})),
       "key 'split.count': is 3: the model is split over files"},
      {"control characters", key("\x1b[2J", kBool, "\2"), "key '\\x1b[2J'"},
  };
}

std::vector<Bad> bad_tensors() {
  const auto tensor = [](const std::vector<std::uint64_t>& dims, std::uint32_t type,
                         const std::string& bytes) {
    return Gguf{}.tensor("t", dims, type, bytes).file();
  };
  const std::string name64(64, 'n');
  Gguf twice, gap, late, beyond, around;
  twice.tensor("t", {1}, kTensorF32, floats(1)).tensor("t", {1}, kTensorF32, floats(1));
  gap.tensor("a", {1}, kTensorF32, floats(1)).tensor_at(64, "b", {1}, kTensorF32, floats(40));
  late.tensor_at(32, "a", {1}, kTensorF32, floats(40));
  beyond.tensor_at(UINT64_MAX - 31, "a", {8}, kTensorF32, floats(8));
  // Offset and size that come to a small number together, by going round.
  around.tensor_at(std::uint64_t{1} << 63, "a", {(std::uint64_t{1} << 61) - 1}, kTensorF32, "");
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 32;
  return {
      {"name of 64 bytes", Gguf{}.tensor(name64, {1}, kTensorF32, floats(1)).file(),
       "its name has 64 bytes; at most 63 are allowed"},
      {"duplicate name", twice.file(), "tensor 't': occurs twice"},
      {"5 dims", tensor({1, 1, 1, 1, 1}, kTensorF32, floats(1)),
       "tensor 't': has 5 dims; at most 4 are allowed"},
      {"dim beyond 2^63", tensor({std::uint64_t{1} << 63}, kTensorF32, ""),
       "a dim is 9223372036854775808; it must be below 2^63"},
      {"elements beyond 2^63", tensor({kHalf, kHalf}, kTensorF32, ""),
       "shape [4294967296, 4294967296] has 2^63 elements or more"},
      {"bytes beyond 2^63", tensor({kHalf, kHalf / 4}, kTensorF32, ""), "in bytes is beyond 2^63"},
      {"row of 33 in blocks of 32", tensor({33, 32}, kTensorQ4_1, std::string(660, '\0')),
       "rows of shape [32, 33] are not a multiple of the 32 elements in a block of Q4_1"},
      {"scalar in blocks", tensor({}, kTensorQ8_0, std::string(34, '\0')), "not a multiple of"},
      {"row of 128 in blocks of 256", tensor({128, 2}, kTensorQ6_K, std::string(210, '\0')),
       "the 256 elements in a block of Q6_K"},
      {"a type that is not read", tensor({256}, 10, std::string(84, '\0')),
       "tensor 't': its type is Q2_K; read are F32 F16 BF16 Q8_0"},
      {"f64", tensor({1}, 28, std::string(8, '\0')), "its type is F64; read are"},
      {"a removed type", tensor({32}, 4, std::string(20, '\0')),
       "its type is number 4, which is unknown or was removed"},
      {"an unknown type", tensor({32}, 4000000000U, ""), "its type is number 4000000000"},
      {"a gap", gap.file(), "tensor 'b': its offset is 64; it must be 32"},
      {"a late start", late.file(), "tensor 'a': its offset is 32; it must be 0"},
      {"offset beyond 2^63", beyond.file(), "ends beyond 2^63"},
      {"an end that goes round", around.file(), "ends beyond 2^63"},
      {"data missing", tensor({8}, kTensorF32, floats(7)),
       "data: the tensors need a file of 96 bytes; it has 92 and ends before the end of tensor "
       "'t'"},
      {"no data at all", tensor({8}, kTensorF32, ""), "the tensors need a file of 96 bytes"},
      {"description cut", Gguf{}.tensor("t", {1}, kTensorF32, "").file().substr(0, 49),
       "tensor 't': the file ends in it"},
  };
}

TEST(Gguf, a_broken_front_is_refused_with_what_was_found) {
  for (const Bad& bad : bad_fronts()) EXPECT_TRUE(says(refused(bad.file), bad.message)) << bad.name;
}

TEST(Gguf, a_broken_key_is_refused_with_what_was_found) {
  for (const Bad& bad : bad_keys()) EXPECT_TRUE(says(refused(bad.file), bad.message)) << bad.name;
}

TEST(Gguf, a_broken_tensor_is_refused_with_what_was_found) {
  for (const Bad& bad : bad_tensors())
    EXPECT_TRUE(says(refused(bad.file), bad.message)) << bad.name;
}

TEST(Gguf, all_that_is_wrong_is_said_at_once) {
  Gguf gguf;
  gguf.key("k", kBool, "\2").key("k", kU8, "1").key("split.count", kU16, raw<std::uint16_t>({2}));
  gguf.tensor("a", {33}, kTensorQ8_0, std::string(34, '\0'));
  for (int n = 0; n < 5; ++n)
    gguf.tensor("iq" + std::to_string(n), {32}, 20, std::string(18, '\0'));
  gguf.tensor("good", {1}, kTensorF32, floats(1));
  const std::string said = refused(gguf.file());
  EXPECT_TRUE(says(said, "key 'k': holds a boolean"));
  EXPECT_TRUE(says(said, "key 'k': occurs twice"));
  EXPECT_TRUE(says(said, "key 'split.count'"));
  EXPECT_TRUE(says(said, "tensor 'a': rows of shape [33]"));
  EXPECT_TRUE(says(said, "tensor 'iq0': and 4 more: its type is IQ4_NL"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 5) << said;
}

TEST(Gguf, every_truncation_of_a_good_file_is_refused) {
  Gguf gguf;
  gguf.key("k", kString, gguf_text("text"))
      .key("a", kArray, gguf_array(kString, 2, gguf_text("x") + gguf_text("y")))
      .tensor("t", {2, 2}, kTensorF32, floats(4));
  const std::string file = gguf.file();
  for (std::size_t length = 0; length < file.size(); ++length) refused(file.substr(0, length));
}

}  // namespace
}  // namespace glasshead::test
