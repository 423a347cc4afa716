#include <array>

#include <gtest/gtest.h>

#include "formats/bytes.h"

namespace glasshead::test {
namespace {

NamedTensors accepted(const std::string& file) {
  NamedTensors tensors;
  std::vector<Problem> problems;
  EXPECT_TRUE(parse_safetensors(bytes_of(file), tensors, problems)) << lines(problems);
  EXPECT_TRUE(problems.empty());
  return tensors;
}

std::string refused(const std::string& file) {
  NamedTensors tensors{{"before", {}}};
  std::vector<Problem> problems;
  EXPECT_FALSE(parse_safetensors(bytes_of(file), tensors, problems));
  EXPECT_EQ(tensors, (NamedTensors{{"before", {}}}))
      << "a refused file must leave the tensors alone";
  EXPECT_FALSE(problems.empty());
  return lines(problems);
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"a":)" + entry(dtype, shape, offsets) + "}";
}

TEST(Safetensors, tensors_are_read_in_the_headers_order_whatever_the_datas) {
  const std::string header = R"({"b":)" + entry("F32", "[2]", "[8,16]") + R"(,"a":)" +
                             entry("F64", "[]", "[0,8]") + R"(,"__metadata__":{"format":"pt"}}   )";
  const NamedTensors expected{{"b", tensor_of<float>({2}, {1, 2})},
                              {"a", tensor_of<double>({}, {3})}};
  EXPECT_EQ(accepted(safetensors_file(header, raw<double>({3}) + raw<float>({1, 2}))), expected);
}

TEST(Safetensors, every_element_type_is_kept_or_widened) {
  struct Type {
    const char* dtype;
    std::string data;
    DType kept;
    double value;
  };
  const std::vector<Type> types{
      {"F64", raw<double>({-2}), DType::f64, -2},
      {"F32", raw<float>({-2}), DType::f32, -2},
      {"F16", raw<std::uint16_t>({0xC000}), DType::f16, -2},
      {"BF16", raw<std::uint16_t>({0xC000}), DType::bf16, -2},
      {"I64", raw<std::int64_t>({-2}), DType::i64, -2},
      {"I32", raw<std::int32_t>({-2}), DType::i64, -2},
      {"I16", raw<std::int16_t>({-2}), DType::i64, -2},
      {"I8", raw<std::int8_t>({-2}), DType::i64, -2},
      {"U64", raw<std::uint64_t>({254}), DType::i64, 254},
      {"U32", raw<std::uint32_t>({254}), DType::i64, 254},
      {"U16", raw<std::uint16_t>({254}), DType::i64, 254},
      {"U8", raw<std::uint8_t>({254}), DType::u8, 1},  // loaded as a boolean: not 0
      {"BOOL", raw<std::uint8_t>({1}), DType::u8, 1},
  };
  for (const Type& type : types) {
    const std::string end = "[0," + std::to_string(type.data.size()) + "]";
    const NamedTensors tensors = accepted(safetensors_file(one(type.dtype, "[1]", end), type.data));
    ASSERT_EQ(tensors.size(), 1U) << type.dtype;
    EXPECT_EQ(tensors[0].second.dtype, type.kept) << type.dtype;
    EXPECT_EQ(tensors[0].second.load(0), type.value) << type.dtype;
  }
}

TEST(Safetensors, empty_files_and_empty_tensors_are_read) {
  EXPECT_TRUE(accepted(safetensors_file("{}", "")).empty());
  EXPECT_EQ(accepted(safetensors_file(one("F32", "[0,4]", "[0,0]"), "")),
            (NamedTensors{{"a", tensor_of<float>({0, 4}, {})}}));
}

TEST(Safetensors, data_need_not_be_aligned) {
  const std::string header =
      R"({"a":)" + entry("U8", "[1]", "[0,1]") + R"(,"b":)" + entry("F64", "[1]", "[1,9]") + "}";
  EXPECT_EQ(accepted(safetensors_file(header, "\7" + raw<double>({3})))[1].second,
            tensor_of<double>({1}, {3}));
}

struct Bad {
  std::string name, file, message;
};

std::vector<Bad> broken_headers() {
  std::string wrong_length = safetensors_file("{}", "");
  wrong_length[0] = 3;
  std::string huge_length = wrong_length;
  huge_length[7] = '\x7f';
  const std::string four = "[0,4]";
  std::string deep = R"({"a":)";
  deep.append(100000, '[');
  return {
      {"under 8 bytes", "1234567", "the file has 7 bytes"},
      {"length past the end", wrong_length, "header length: is 3, but only 2 bytes follow"},
      {"length beyond the limit", huge_length, "at most 100000000 is allowed"},
      {"empty header", safetensors_file("", ""), "header: begins with ''"},
      {"a space first", safetensors_file(" {}", ""), "begins with ' '; it must begin with '{'"},
      {"a byte order mark", safetensors_file("\xef\xbb\xbf{}", ""), "begins with '\\xef'"},
      {"a list", safetensors_file("[]", ""), "it must begin with '{'"},
      {"not UTF-8", safetensors_file("{\"\xff\":1}", ""), "not JSON in UTF-8: at its byte"},
      {"not JSON", safetensors_file("{\"a\"}", ""), "not JSON in UTF-8"},
      {"ends early", safetensors_file("{", ""), "not JSON in UTF-8"},
      {"two values", safetensors_file("{}{}", ""), "not JSON in UTF-8"},
      {"a comment", safetensors_file("{/**/}", ""), "not JSON in UTF-8"},
      {"deep nesting", safetensors_file(deep, ""), "tensor 'a': found a list"},
      {"same tensor twice",
       safetensors_file(R"({"a":)" + entry("U8", "[1]", "[0,1]") + R"(,"a":)" +
                            entry("U8", "[1]", "[1,2]") + "}",
                        "ab"),
       "tensor 'a': occurs twice in the header"},
      {"same field twice", safetensors_file(R"({"a":{"dtype":"F32","dtype":"F32"}})", ""),
       "tensor 'a': the field 'dtype' occurs twice"},
      {"metadata twice", safetensors_file(R"({"__metadata__":{},"__metadata__":{}})", ""),
       "__metadata__: occurs twice"},
      {"metadata key twice", safetensors_file(R"({"__metadata__":{"x":"1","x":"2"}})", ""),
       "the key 'x' occurs twice"},
      {"metadata is no object", safetensors_file(R"({"__metadata__":"x"})", ""),
       "metadata is an object of strings"},
      {"metadata holds a number", safetensors_file(R"({"__metadata__":{"x":1}})", ""),
       "metadata is an object of strings"},
      {"metadata holds an object", safetensors_file(R"({"__metadata__":{"x":{}}})", ""),
       "metadata is an object of strings"},
      {"unknown field", safetensors_file(R"({"a":{"stride":[1]}})", ""),
       "the field 'stride' is unknown"},
      {"fields missing", safetensors_file(R"({"a":{"shape":[1]}})", ""),
       "tensor 'a': dtype is missing\ntensor 'a': data_offsets is missing"},
      {"a tensor is a number", safetensors_file(R"({"a":1})", ""),
       "found a number; an object with dtype"},
      {"dtype is a number", safetensors_file(R"({"a":{"dtype":1}})", ""),
       "dtype is a number; a string"},
      {"shape is a string", safetensors_file(R"({"a":{"shape":"1"}})", ""),
       "shape is a string; a list"},
      {"shape holds a list", safetensors_file(one("F32", "[[1]]", four), "abcd"),
       "shape holds a list; whole numbers"},
      {"shape holds null", safetensors_file(one("F32", "[null]", four), "abcd"),
       "shape holds null"},
      {"shape holds true", safetensors_file(one("F32", "[true]", four), "abcd"),
       "shape holds a boolean"},
      {"65 axes", safetensors_file(one("F32", "[" + repeated("1,", 64) + "1]", four), "abcd"),
       "shape has more than 64 numbers"},
  };
}

TEST(Safetensors, a_broken_header_is_refused_with_what_was_found) {
  for (const Bad& bad : broken_headers())
    EXPECT_TRUE(says(refused(bad.file), bad.message)) << bad.name;
}

TEST(Safetensors, numbers_that_contradict_each_other_are_refused) {
  const auto two = [](const std::string& a, const std::string& b) {
    return R"({"a":)" + entry("F32", "[1]", a) + R"(,"b":)" + entry("F32", "[1]", b) + "}";
  };
  const std::vector<Bad> table{
      {"unknown dtype", safetensors_file(one("F8_E4M3", "[4]", "[0,4]"), "abcd"),
       "tensor 'a': dtype is 'F8_E4M3'; read are F64"},
      {"negative size", safetensors_file(one("F32", "[-1]", "[0,4]"), "abcd"),
       "shape holds -1; whole numbers, 0 or more"},
      {"size with a point", safetensors_file(one("F32", "[1.0]", "[0,4]"), "abcd"),
       "shape holds '1.0'"},
      {"negative offset", safetensors_file(one("F32", "[1]", "[-4,0]"), "abcd"),
       "data_offsets holds -4"},
      {"offset with an exponent", safetensors_file(one("F32", "[1]", "[0,4e0]"), "abcd"),
       "data_offsets holds '4e0'"},
      {"one offset", safetensors_file(one("F32", "[1]", "[0]"), "abcd"),
       "data_offsets has 1 numbers; it must have two"},
      {"three offsets", safetensors_file(one("F32", "[1]", "[0,4,4]"), "abcd"),
       "data_offsets has 3 numbers"},
      {"size beyond 2^63", safetensors_file(one("F32", "[9223372036854775808]", "[0,4]"), "abcd"),
       "the number 9223372036854775808 is too large"},
      {"size beyond 2^64", safetensors_file(one("F32", "[99999999999999999999]", "[0,4]"), "abcd"),
       "shape holds '99999999999999999999'"},
      {"elements beyond 2^63",
       safetensors_file(one("U8", "[4294967296,4294967296]", "[0,4]"), "abcd"),
       "the size of shape [4294967296, 4294967296] in bytes is beyond 2^63"},
      {"bytes beyond 2^63", safetensors_file(one("F64", "[1152921504606846976]", "[0,4]"), "abcd"),
       "is beyond 2^63"},
      {"end before begin", safetensors_file(one("F32", "[1]", "[4,0]"), "abcd"),
       "data_offsets end at 0, before they begin at 4"},
      {"span is not the size", safetensors_file(one("F32", "[1]", "[0,8]"), "abcdefgh"),
       "data_offsets span 8 bytes; shape [1] of F32 needs 4"},
      {"overlap", safetensors_file(two("[0,4]", "[2,6]"), "abcdef"),
       "tensor 'b': its data begins at 2, but the data before it ends at 4: an overlap"},
      {"the same place", safetensors_file(two("[0,4]", "[0,4]"), "abcd"), "an overlap"},
      {"hole", safetensors_file(two("[0,4]", "[8,12]"), "abcdefghijkl"),
       "begins at 8, but the data before it ends at 4: a hole"},
      {"hole at the start", safetensors_file(one("F32", "[1]", "[4,8]"), "abcdefgh"), "a hole"},
      {"data truncated", safetensors_file(one("F32", "[1]", "[0,4]"), "abc"),
       "data: 3 bytes are there; the tensors need 4: the file is truncated"},
      {"data goes on", safetensors_file(one("F32", "[1]", "[0,4]"), "abcde"),
       "the file goes on after them"},
      {"boolean 2", safetensors_file(one("BOOL", "[1]", "[0,1]"), "\2"), "must be 0 or 1"},
      {"u64 too large", safetensors_file(one("U64", "[1]", "[0,8]"), std::string(8, '\xff')),
       "integers must be below 2^63"},
      {"control characters", safetensors_file(R"({"\u001b[2J":1})", ""), "tensor '\\x1b[2J'"},
  };
  for (const Bad& bad : table) EXPECT_TRUE(says(refused(bad.file), bad.message)) << bad.name;
}

TEST(Safetensors, all_wrong_tensors_are_named_at_once) {
  const std::string header = R"({"a":)" + entry("F33", "[1]", "[0,4]") + R"(,"b":)" +
                             entry("F32", "[2]", "[4,8]") + R"(,"c":)" +
                             entry("F32", "[1]", "[8,12]") + "}";
  const std::string said = refused(safetensors_file(header, "abcdefghijkl"));
  EXPECT_TRUE(says(said, "tensor 'a'"));
  EXPECT_TRUE(says(said, "tensor 'b'"));
  EXPECT_FALSE(says(said, "tensor 'c'"));
}

TEST(Safetensors, every_truncation_of_a_good_file_is_refused) {
  const std::string file = safetensors_file(one("F64", "[1]", "[0,8]"), raw<double>({3}));
  for (std::size_t length = 0; length < file.size(); ++length) refused(file.substr(0, length));
}

TEST(Safetensors, what_is_written_is_read_back_to_the_bit_and_is_aligned) {
  const NamedTensors tensors{
      {"mask", tensor_of<std::uint8_t>({3}, {0, 1, 1})},
      {"bytes", tensor_of<std::uint8_t>({2}, {9, 1})},
      {"q", tensor_of<bf16>({1, 3}, {{0x3F80}, {0xFF80}, {0x7FC1}})},
      {"h", tensor_of<f16>({1}, {{0x3C00}})},
      {"empty", tensor_of<float>({0, 2}, {})},
      {"x", tensor_of<double>({2}, {-0.0, 1e308})},
      {"ids \"\xc3\xa9\"", tensor_of<index_t>({}, {INT64_MIN})},
      {"f", tensor_of<float>({1}, {0.1F})},
  };
  const std::vector<std::byte> file = safetensors_bytes(tensors);
  NamedTensors back;
  std::vector<Problem> problems;
  ASSERT_TRUE(parse_safetensors(file, back, problems)) << lines(problems);
  EXPECT_EQ(back, tensors);
  std::uint64_t header = 0;
  std::memcpy(&header, file.data(), sizeof header);
  EXPECT_EQ(header % 8, 0U);
  const std::string text(reinterpret_cast<const char*>(file.data()) + 8, header);
  EXPECT_TRUE(says(text, R"("x":{"dtype":"F64","shape":[2],"data_offsets":[0,16]})"));
}

TEST(Safetensors, a_name_written_twice_or_reserved_is_refused) {
  const FileTensor tensor = tensor_of<float>({1}, {1});
  EXPECT_THROW(safetensors_bytes({{"a", tensor}, {"a", tensor}}), FormatError);
  EXPECT_THROW(safetensors_bytes({{"__metadata__", tensor}}), FormatError);
}

}  // namespace
}  // namespace glasshead::test
