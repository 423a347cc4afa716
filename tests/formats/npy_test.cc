#include <array>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "formats/bytes.h"

namespace glasshead::test {
namespace {

FileTensor accepted(const std::string& file) {
  FileTensor tensor;
  std::vector<Problem> problems;
  EXPECT_TRUE(parse_npy(bytes_of(file), tensor, problems)) << lines(problems);
  EXPECT_TRUE(problems.empty());
  return tensor;
}

std::string refused(const std::string& file) {
  FileTensor tensor = tensor_of<double>({1}, {5});
  std::vector<Problem> problems;
  EXPECT_FALSE(parse_npy(bytes_of(file), tensor, problems));
  EXPECT_EQ(tensor, tensor_of<double>({1}, {5})) << "a refused file must leave the tensor alone";
  EXPECT_FALSE(problems.empty());
  return lines(problems);
}

const std::string kTwoByThree = npy_header("<f8", "(2, 3)");
const std::string kSix = raw<double>({1, 2, 3, 4, 5, 6});

TEST(Npy, every_version_is_read) {
  for (const int major : {1, 2, 3})
    EXPECT_EQ(accepted(npy_file(kTwoByThree, kSix, major)),
              tensor_of<double>({2, 3}, {1, 2, 3, 4, 5, 6}))
        << major;
}

TEST(Npy, fortran_order_is_put_in_row_major_order) {
  const std::string columns = raw<double>({1, 4, 2, 5, 3, 6});
  EXPECT_EQ(accepted(npy_file(npy_header("<f8", "(2, 3)", "True"), columns)),
            tensor_of<double>({2, 3}, {1, 2, 3, 4, 5, 6}));
  // Element (a, b, c) lies at a + 2b + 4c; its value is its row-major number 4a + 2b + c.
  const std::string cube = raw<float>({0, 4, 2, 6, 1, 5, 3, 7});
  EXPECT_EQ(accepted(npy_file(npy_header("<f4", "(2, 2, 2)", "True"), cube)),
            tensor_of<float>({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Npy, scalars_and_empty_arrays_are_read) {
  EXPECT_EQ(accepted(npy_file(npy_header("<f8", "()"), raw<double>({7}))),
            tensor_of<double>({}, {7}));
  EXPECT_EQ(accepted(npy_file(npy_header("<f8", "(2, 0, 3)"), "")),
            tensor_of<double>({2, 0, 3}, {}));
  EXPECT_EQ(accepted(npy_file(npy_header("<f8", "(0, 4)", "True"), "")),
            tensor_of<double>({0, 4}, {}));
}

TEST(Npy, integers_are_widened_and_keep_their_value) {
  const std::array<std::pair<const char*, std::string>, 6> files{{
      {"|i1", raw<std::int8_t>({-128, 127})},
      {"<i2", raw<std::int16_t>({-128, 127})},
      {"<i4", raw<std::int32_t>({-128, 127})},
      {"<i8", raw<std::int64_t>({-128, 127})},
      {"<u2", raw<std::uint16_t>({65408, 127})},
      {"<u4", raw<std::uint32_t>({4294967168U, 127})},
  }};
  for (const auto& [descr, data] : files) {
    const FileTensor tensor = accepted(npy_file(npy_header(descr, "(2,)"), data));
    EXPECT_EQ(tensor.dtype, DType::i64);
    EXPECT_EQ(tensor.load(1), 127);
    const double first = std::string(descr) == "<u2"   ? 65408
                         : std::string(descr) == "<u4" ? 4294967168
                                                       : -128;
    EXPECT_EQ(tensor.load(0), first) << descr;
  }
}

TEST(Npy, an_unsigned_number_beyond_i64_is_refused) {
  const std::string header = npy_header("<u8", "(1,)");
  EXPECT_EQ(accepted(npy_file(header, raw<std::uint64_t>({INT64_MAX}))),
            tensor_of<index_t>({1}, {INT64_MAX}));
  EXPECT_TRUE(says(refused(npy_file(header, raw<std::uint64_t>({std::uint64_t{1} << 63}))),
                   "element 0 is 9223372036854775808; integers must be below 2^63"));
}

TEST(Npy, booleans_are_0_or_1_and_bytes_are_anything) {
  EXPECT_EQ(accepted(npy_file(npy_header("|b1", "(2,)"), raw<std::uint8_t>({0, 1}))),
            tensor_of<std::uint8_t>({2}, {0, 1}));
  EXPECT_TRUE(says(refused(npy_file(npy_header("|b1", "(2,)"), raw<std::uint8_t>({0, 2}))),
                   "element 1 is the byte 2; a boolean must be 0 or 1"));
  EXPECT_EQ(accepted(npy_file(npy_header("|u1", "(2,)"), raw<std::uint8_t>({0, 255}))),
            tensor_of<std::uint8_t>({2}, {0, 255}));
}

TEST(Npy, half_floats_keep_their_bits) {
  const FileTensor half =
      accepted(npy_file(npy_header("<f2", "(2,)"), raw<std::uint16_t>({0x3C00, 0xFC00})));
  EXPECT_EQ(half.dtype, DType::f16);
  EXPECT_EQ(half.load(0), 1);
  EXPECT_EQ(half.load(1), -std::numeric_limits<double>::infinity());
}

TEST(Npy, header_keys_may_come_in_any_order_with_either_quote) {
  EXPECT_EQ(accepted(npy_file("{\"shape\":(1,),\"fortran_order\":False,\"descr\":\"<f8\"}",
                              raw<double>({3}))),
            tensor_of<double>({1}, {3}));
}

struct Bad {
  std::string name, file, message;
};

TEST(Npy, a_broken_file_is_refused_with_what_was_found) {
  const std::string one = raw<double>({1});
  const std::string rest = "'fortran_order': False, 'shape': (1,)}";
  const std::vector<Bad> table{
      {"empty", "", "magic: found ''"},
      {"wrong magic", "\x93NUMPX\1\0", "begins with '\\x93NUMPY'"},
      {"version 0", npy_file(kTwoByThree, kSix, 0), "version: found 0.0"},
      {"version 4", npy_file(kTwoByThree, kSix, 4), "versions 1.0, 2.0 and 3.0 are read"},
      {"no header length", std::string("\x93NUMPY\1\0\5", 9), "header length: the file ends"},
      {"header past the end", npy_file(kTwoByThree, "").substr(0, 40), "header length: is"},
      {"no dictionary", npy_file("[]", one), "header: found '[]' at its byte 0; expected '{'"},
      {"unknown key", npy_file("{'shap': (1,)}", one), "the key 'shap' is unknown"},
      {"key twice", npy_file("{'descr': '<f8', 'descr': '<f8', " + rest, one),
       "the key 'descr' occurs twice"},
      {"key missing", npy_file("{" + rest, one), "the key 'descr' is missing"},
      {"no colon", npy_file("{'descr' '<f8'}", one), "expected ':'"},
      {"no comma", npy_file("{'descr': '<f8' " + rest, one), "expected ',' or '}'"},
      {"unclosed", npy_file("{'descr': '<f8'", one), "the header ends at its byte 15"},
      {"unclosed string", npy_file("{'descr", one), "expected the closing quote"},
      {"escape", npy_file("{'desc\\x72': '<f8'}", one), "a string without escapes"},
      {"more after it", npy_file(npy_header("<f8", "(1,)") + "x", one),
       "expected nothing but white space"},
      {"Fortran 1", npy_file(npy_header("<f8", "(1,)", "1"), one), "expected True or False"},
      {"an expression", npy_file(npy_header("<f8", "(1*1,)"), one), "expected ',' or ')'"},
      {"shape is a list", npy_file(npy_header("<f8", "[1]"), one), "expected '(' for shape"},
      {"shape is a number", npy_file(npy_header("<f8", "(1)"), one), "expected a tuple"},
      {"negative size", npy_file(npy_header("<f8", "(-1,)"), one),
       "expected a size: a whole number"},
      {"two commas", npy_file(npy_header("<f8", "(1,,)"), one), "expected a size"},
      {"size beyond 2^63", npy_file(npy_header("<f8", "(9223372036854775808,)"), one),
       "shape: the size '9223372036854775808' is too large"},
      {"product beyond 2^63", npy_file(npy_header("<f8", "(4294967296, 4294967296)"), one),
       "shape: the size of [4294967296, 4294967296] in bytes is beyond 2^63"},
      {"overflow hidden by a zero", npy_file(npy_header("<f8", "(4294967296, 4294967296, 0)"), ""),
       "is beyond 2^63"},
      {"bytes beyond 2^63", npy_file(npy_header("<f8", "(1152921504606846976,)"), one),
       "is beyond 2^63"},
      {"65 axes", npy_file(npy_header("<f8", "(" + repeated("1,", 65) + ")"), one),
       "shape: has 65 axes; at most 64"},
      {"truncated data", npy_file(kTwoByThree, kSix.substr(0, 47)),
       "data: 47 bytes are there; shape [2, 3] of 'f8' needs 48: the file is truncated"},
      {"data goes on", npy_file(kTwoByThree, kSix + "x"), "the file goes on after it"},
      {"big-endian", npy_file(npy_header(">f8", "(1,)"), one),
       "descr: is '>f8', big-endian; save it little-endian: a.astype('<f8')"},
      {"objects", npy_file(npy_header("|O", "(1,)"), one), "pickled code"},
      {"structured", npy_file("{'descr': [('a', '<f8')], " + rest, one), "a structured type"},
      {"complex", npy_file(npy_header("<c16", "(1,)"), one), "descr: is '<c16'; read are"},
      {"text", npy_file(npy_header("<U2", "(1,)"), one), "descr: is '<U2'; read are"},
      {"no byte order", npy_file(npy_header("f8", "(1,)"), one), "descr: is 'f8'; read are"},
      {"order not applicable", npy_file(npy_header("|f8", "(1,)"), one), "descr: is '|f8'"},
      {"empty descr", npy_file(npy_header("", "(1,)"), one), "descr: is ''; read are"},
      {"control characters", npy_file(npy_header("\x1b[2J", "(1,)"), one), "is '\\x1b[2J'"},
  };
  for (const Bad& bad : table) EXPECT_TRUE(says(refused(bad.file), bad.message)) << bad.name;
}

TEST(Npy, a_header_with_several_faults_names_them_all) {
  const std::string said = refused(npy_file("{'descr': '<f8', 'descr': '<f8'}", ""));
  EXPECT_TRUE(says(said, "'descr' occurs twice"));
  EXPECT_TRUE(says(said, "'fortran_order' is missing"));
  EXPECT_TRUE(says(said, "'shape' is missing"));
}

TEST(Npy, every_truncation_of_a_good_file_is_refused) {
  const std::string file = npy_file(kTwoByThree, kSix);
  for (std::size_t length = 0; length < file.size(); ++length) refused(file.substr(0, length));
}

TEST(Npy, what_is_written_is_read_back_to_the_bit) {
  const double nan = std::bit_cast<double>(std::uint64_t{0x7FF4000000000123});
  const std::vector<FileTensor> tensors{
      tensor_of<double>({2, 3}, {1, -0.0, nan, 4, 5, 6}),
      tensor_of<float>({3}, {1.5F, -INFINITY, 1e-45F}),
      tensor_of<f16>({1, 2}, {{0x3C00}, {0x7E00}}),
      tensor_of<std::uint8_t>({2}, {0, 1}),
      tensor_of<std::uint8_t>({2}, {7, 1}),
      tensor_of<index_t>({}, {INT64_MIN}),
      tensor_of<double>({0, 5}, {}),
  };
  for (const FileTensor& tensor : tensors) {
    FileTensor back;
    std::vector<Problem> problems;
    ASSERT_TRUE(parse_npy(npy_bytes(tensor), back, problems)) << lines(problems);
    EXPECT_EQ(back, tensor);
  }
}

TEST(Npy, the_header_written_is_numpys) {
  // The first 128 bytes of numpy.save of a (2, 3) f8 array (NumPy 1.24): data starts at a multiple
  // of 64.
  std::string expected = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
  expected.append(117 - expected.size(), ' ');
  expected = "\x93NUMPY" + std::string("\1\0\x76\0", 4) + expected + "\n";
  const std::vector<std::byte> file = npy_bytes(tensor_of<double>({2, 3}, {1, 2, 3, 4, 5, 6}));
  ASSERT_EQ(file.size(), 128U + 48U);
  EXPECT_EQ(std::vector<std::byte>(file.begin(), file.begin() + 128), bytes_of(expected));
}

TEST(Npy, bf16_has_no_npy_type) {
  EXPECT_THROW(npy_bytes(tensor_of<bf16>({1}, {{0x3F80}})), FormatError);
}

}  // namespace
}  // namespace glasshead::test
