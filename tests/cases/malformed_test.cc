// Every file in tests/cases/malformed states in comments at its head what must be reported:
//   // expect <field path> | <a part of the message>
// one line per problem, no more and no fewer.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "wire/case.h"

namespace glasshead::wire {
namespace {

const char* const kFolder = GLASSHEAD_SOURCE_DIR "/tests/cases/malformed";

std::vector<std::string> malformed_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string read_text(const std::string& name) {
  std::ifstream file(std::string(kFolder) + "/" + name + ".json", std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Expected {
  std::string path, fragment;
};

std::vector<Expected> expectations(const std::string& text) {
  std::vector<Expected> expected;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::string mark = "// expect ";
    const std::size_t bar = line.find(" | ");
    if (line.rfind(mark, 0) != 0 || bar == std::string::npos) break;
    expected.push_back({line.substr(mark.size(), bar - mark.size()), line.substr(bar + 3)});
  }
  return expected;
}

class Malformed : public testing::TestWithParam<std::string> {};

TEST_P(Malformed, every_planted_fault_is_named_and_nothing_else) {
  const std::string text = read_text(GetParam());
  std::vector<Expected> expected = expectations(text);
  ASSERT_FALSE(expected.empty());
  std::vector<Problem> problems;
  EXPECT_FALSE(parse_case(text, GetParam(), problems));
  for (const Problem& problem : problems) {
    const auto found = std::find_if(expected.begin(), expected.end(), [&](const Expected& e) {
      return e.path == problem.where && problem.what.find(e.fragment) != std::string::npos;
    });
    if (found == expected.end())
      ADD_FAILURE() << "not planted: " << problem.where << ": " << problem.what;
    else
      expected.erase(found);
  }
  for (const Expected& e : expected)
    ADD_FAILURE() << "not reported: " << e.path << ": ... " << e.fragment;
}

INSTANTIATE_TEST_SUITE_P(Cases, Malformed, testing::ValuesIn(malformed_names()),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(MalformedCases, are_at_least_thirty) { EXPECT_GE(malformed_names().size(), 30U); }

}  // namespace
}  // namespace glasshead::wire
