// tests/data/tokenizers: small vocabularies and what Hugging Face's wheel makes of a corpus.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "formats/config.h"
#include "glasshead/tokenizer.h"
#include "text/words.h"

namespace glasshead::text {

namespace fs = std::filesystem;

inline fs::path data_folder() { return fs::path(GLASSHEAD_SOURCE_DIR) / "tests/data/tokenizers"; }

inline std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::string text_of(const std::vector<Problem>& problems) {
  std::string all;
  for (const Problem& problem : problems) all += problem.where + ": " + problem.what + "\n";
  return all;
}

inline formats::Config read_json(const fs::path& path) {
  formats::Config config;
  std::vector<Problem> problems;
  EXPECT_TRUE(formats::parse_config(read_file(path), config, problems)) << text_of(problems);
  return config;
}

inline std::vector<index_t> wholes(const formats::Config& config, const char* key) {
  std::vector<Problem> problems;
  return formats::Reader(config, problems).wholes_or(key, {});
}

// The texts that every vocabulary is tried on.
inline std::vector<std::string> corpus() {
  std::vector<Problem> problems;
  const formats::Config file = read_json(data_folder() / "corpus.json");
  return formats::Reader(file, problems).texts_or("texts", {});
}

struct Expected {
  std::vector<index_t> before, after;
  std::vector<std::string> unicode;
  struct Row {
    std::vector<index_t> ids, bytes;
    std::string decoded;
  };
  std::vector<Row> rows;
};

inline Expected read_expected(const fs::path& path) {
  const formats::Config file = read_json(path);
  std::vector<Problem> problems;
  Expected expected;
  expected.unicode = formats::Reader(file, problems).texts_or("unicode", {});
  const auto list = [&](const formats::ConfigValue& value) {
    return wholes(formats::Config{{"ids", value}}, "ids");
  };
  const auto& around = std::get<formats::ConfigList>(formats::find(file, "around")->is);
  expected.before = list(around[0]);
  expected.after = list(around[1]);
  for (const formats::ConfigValue& row :
       std::get<formats::ConfigList>(formats::find(file, "rows")->is)) {
    const auto& fields = std::get<formats::ConfigObject>(row.is);
    expected.rows.push_back({wholes(fields, "ids"), wholes(fields, "bytes"),
                             formats::Reader(fields, problems).text_or("decoded", "")});
  }
  EXPECT_TRUE(problems.empty()) << text_of(problems);
  return expected;
}

inline std::vector<index_t> flat(const std::vector<ByteRange>& ranges) {
  std::vector<index_t> edges;
  for (const ByteRange& range : ranges) edges.insert(edges.end(), {range.begin, range.end});
  return edges;
}

inline std::string utf8(std::uint32_t c) {
  std::string text;
  if (c < 0x80) return {static_cast<char>(c)};
  const int following = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr unsigned char kLeads[] = {0, 0xC0, 0xE0, 0xF0};
  text += static_cast<char>(kLeads[following] | c >> (6 * following));
  for (int n = following - 1; n >= 0; --n) text += static_cast<char>(0x80 | ((c >> (6 * n)) & 63));
  return text;
}

// FNV-1a of the ids of x?1 for 4,096 characters ?, as tools/make_tokenizers.py computes it.
inline std::string digest(const Words& words, std::uint32_t start) {
  std::string text, why;
  for (std::uint32_t c = start; c < start + 0x1000; ++c)
    if (c < 0xD800 || c > 0xDFFF) text += "x" + utf8(c) + "1";
  Encoding encoding;
  EXPECT_TRUE(words.encode(text, false, encoding, why)) << why;
  std::uint64_t value = 0xCBF29CE484222325;
  for (const index_t id : encoding.ids)
    value = (value ^ static_cast<std::uint64_t>(id)) * 0x100000001B3;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (int shift = 60; shift >= 0; shift -= 4) hex += kDigits[(value >> shift) & 15];
  return hex;
}

// Ids, byte ranges and decoded texts over the corpus, and ids over the characters of Unicode where
// the data have them: a second or two, so once for each.
inline void expect_as_wheel(const Words& words, const Expected& expected) {
  const std::vector<std::string> texts = corpus();
  ASSERT_EQ(texts.size(), expected.rows.size());
  for (std::size_t n = 0; n < texts.size(); ++n) {
    SCOPED_TRACE("text " + std::to_string(n) + ": " + texts[n]);
    const Expected::Row& row = expected.rows[n];
    Encoding bare, whole;
    std::string why, decoded;
    ASSERT_TRUE(words.encode(texts[n], false, bare, why)) << why;
    EXPECT_EQ(bare.ids, row.ids);
    EXPECT_EQ(flat(bare.bytes), row.bytes);
    ASSERT_TRUE(words.decode(bare.ids, false, decoded, why)) << why;
    EXPECT_EQ(decoded, row.decoded);
    ASSERT_TRUE(words.encode(texts[n], true, whole, why)) << why;
    std::vector<index_t> ids = expected.before;
    ids.insert(ids.end(), row.ids.begin(), row.ids.end());
    ids.insert(ids.end(), expected.after.begin(), expected.after.end());
    EXPECT_EQ(whole.ids, ids);
  }
  std::uint32_t start = 0;
  for (const std::string& value : expected.unicode) {
    EXPECT_EQ(digest(words, start), value) << "characters from " << start;
    start = start < 0x20000 ? start + 0x1000 : 0xE0000;
  }
}

}  // namespace glasshead::text
