#include "base/stored.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace glasshead::test {
namespace {

constexpr int kTypes = static_cast<int>(Stored::f8_e5m2) + 1;

std::vector<std::byte> bytes_of_hex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (std::size_t n = 0; n < hex.size(); n += 2)
    bytes.push_back(static_cast<std::byte>(std::stoul(hex.substr(n, 2), nullptr, 16)));
  return bytes;
}

std::vector<float> floats_of_hex(const std::string& hex) {
  std::vector<float> values;
  for (std::size_t n = 0; n < hex.size(); n += 8)
    values.push_back(std::bit_cast<float>(
        static_cast<std::uint32_t>(std::stoul(hex.substr(n, 8), nullptr, 16))));
  return values;
}

// One row of tests/base/data/stored.txt.
struct Row {
  Stored type = Stored::f32;
  std::vector<std::byte> bytes;
  std::vector<float> values;
};

std::vector<Row> rows() {
  std::ifstream file(GLASSHEAD_SOURCE_DIR "/tests/base/data/stored.txt");
  std::vector<Row> rows;
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string type, bytes, values;
    words >> type >> bytes >> values;
    for (int n = 0; n < kTypes; ++n)
      if (name(static_cast<Stored>(n)) == type)
        rows.push_back({static_cast<Stored>(n), bytes_of_hex(bytes), floats_of_hex(values)});
  }
  return rows;
}

bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

TEST(Stored, every_type_widens_to_the_bits_of_ggufs_own_dequantise) {
  std::vector<int> seen(kTypes);
  for (const Row& row : rows()) {
    const auto count = static_cast<index_t>(row.values.size());
    ASSERT_EQ(count % block_elements(row.type), 0) << name(row.type);
    ASSERT_EQ(static_cast<index_t>(row.bytes.size()),
              count / block_elements(row.type) * block_bytes(row.type))
        << name(row.type);
    // One byte off, since a mapped file promises no alignment.
    std::vector<std::byte> shifted(row.bytes.size() + 1);
    std::copy(row.bytes.begin(), row.bytes.end(), shifted.begin() + 1);
    std::vector<float> out(row.values.size());
    dequantise(row.type, shifted.data() + 1, count, out.data());
    for (std::size_t e = 0; e < out.size(); ++e)
      EXPECT_TRUE(same(out[e], row.values[e]))
          << name(row.type) << " element " << e << ": " << out[e] << " is not " << row.values[e];
    ++seen[static_cast<std::size_t>(row.type)];
  }
  for (int n = 0; n < kTypes; ++n)
    EXPECT_EQ(seen[static_cast<std::size_t>(n)] > 0, is_number(static_cast<Stored>(n)))
        << name(static_cast<Stored>(n));
}

TEST(Stored, several_blocks_widen_one_after_another) {
  std::vector<Row> table = rows();
  for (int n = 0; n < kTypes; ++n) {
    const auto type = static_cast<Stored>(n);
    std::vector<std::byte> bytes;
    std::vector<float> values;
    for (const Row& row : table) {
      if (row.type != type) continue;
      bytes.insert(bytes.end(), row.bytes.begin(), row.bytes.end());
      values.insert(values.end(), row.values.begin(), row.values.end());
    }
    if (values.empty()) continue;
    std::vector<float> out(values.size());
    dequantise(type, bytes.data(), static_cast<index_t>(out.size()), out.data());
    EXPECT_TRUE(std::equal(out.begin(), out.end(), values.begin(), same)) << name(type);
  }
}

TEST(Stored, every_half_widens_as_the_tensors_do) {
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    std::byte bytes[2];
    std::memcpy(bytes, &half, sizeof half);
    float out = 0;
    dequantise(Stored::f16, bytes, 1, &out);
    ASSERT_TRUE(same(out, static_cast<float>(widen(f16{half})))) << bits;
    dequantise(Stored::bf16, bytes, 1, &out);
    ASSERT_TRUE(same(out, static_cast<float>(widen(bf16{half})))) << bits;
  }
}

TEST(Stored, types_say_their_names_and_sizes) {
  EXPECT_STREQ(name(Stored::q6_k), "q6_k");
  EXPECT_STREQ(name(Stored::boolean), "bool");
  EXPECT_STREQ(name(Stored::f8_e5m2), "f8_e5m2");
  EXPECT_EQ(block_elements(Stored::q4_1), 32);
  EXPECT_EQ(block_bytes(Stored::q4_1), 20);
  EXPECT_EQ(block_elements(Stored::q6_k), 256);
  EXPECT_EQ(block_bytes(Stored::q6_k), 210);
  EXPECT_EQ(block_elements(Stored::u16), 1);
  EXPECT_EQ(block_bytes(Stored::u16), 2);
  EXPECT_TRUE(is_quantised(Stored::q8_0) && is_quantised(Stored::q6_k));
  EXPECT_FALSE(is_quantised(Stored::bf16) || is_quantised(Stored::i64));
  EXPECT_FALSE(is_number(Stored::i64) || is_number(Stored::f8_e4m3));
}

TEST(Stored, no_elements_are_no_work) {
  for (int n = 0; n < kTypes; ++n)
    if (is_number(static_cast<Stored>(n))) dequantise(static_cast<Stored>(n), nullptr, 0, nullptr);
}

}  // namespace
}  // namespace glasshead::test
