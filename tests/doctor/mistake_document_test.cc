#include "doctor/mistake_document.h"

#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "wire/render.h"

namespace glasshead::doctor {
namespace {

std::string file(const std::string& path) {
  std::ifstream in(std::string(GLASSHEAD_SOURCE_DIR) + "/" + path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

wire::Case three_tokens_causal() {
  std::vector<Problem> problems;
  auto c =
      wire::parse_case(file("cases/three-tokens-causal.json"), "three-tokens-causal", problems);
  EXPECT_TRUE(c) << (problems.empty() ? "" : problems[0].what);
  return c.value_or(wire::Case{});
}

MistakenRun run(const char* id, const wire::Case& c) {
  std::vector<Problem> problems;
  auto made = run_mistake(id, c, problems);
  EXPECT_TRUE(made) << (problems.empty() ? "" : problems[0].what);
  return made.value_or(MistakenRun{});
}

TEST(MistakeDocument, stands_beside_the_right_run) {
  const wire::Case c = three_tokens_causal();
  const std::string text = wire::to_text(mistake_document(run("mask-after", c), c, {}));
  EXPECT_NE(text.find("A    0.4011       ·        ·  0.4011 ✗"), std::string::npos) << text;
  EXPECT_NE(text.find("B    0.1978  0.4011        ·  0.5989 ✗      0.3302  0.6698    ·"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("C    0.2483  0.2483  0.5034′  1.0000 ✓        same"), std::string::npos)
      << text;
  EXPECT_NE(text.find("fix        hide before softmax"), std::string::npos) << text;
}

// The case's options differ in object, not in content, from step to step; the masks must change in
// all of them.
TEST(MistakeDocument, of_a_misread_mask_hides_what_the_wrong_mask_hides) {
  const wire::Case c = three_tokens_causal();
  const std::string inverted = wire::to_text(mistake_document(run("mask-inverted", c), c, {}));
  EXPECT_NE(inverted.find("A    ·  0.3302  0.6698"), std::string::npos) << inverted;
  const std::string strict = wire::to_text(mistake_document(run("mask-strict", c), c, {}));
  EXPECT_NE(strict.find("—"), std::string::npos) << "row A is empty\n" << strict;
  EXPECT_EQ(strict.find("same"), std::string::npos) << strict;
}

TEST(MistakeDocument, says_when_the_inputs_hide_it_and_when_the_program_stops) {
  const wire::Case c = three_tokens_causal();
  const std::string hidden = wire::to_text(mistake_document(run("keys-as-values", c), c, {}));
  EXPECT_NE(hidden.find("these inputs cannot show it: right when K = V"), std::string::npos);
  const std::string stops = wire::to_text(mistake_document(run("scores-untransposed", c), c, {}));
  EXPECT_NE(stops.find("stops      Q·K is 3x2 · 3x2"), std::string::npos) << stops;
}

TEST(MistakeDocument, has_every_mistake_of_the_table_as_json) {
  const wire::Case c = three_tokens_causal();
  for (const Mistake& mistake : mistakes()) {
    std::string text;
    write_mistake_json(run(mistake.id, c), c, {}, [&](std::string_view piece) { text += piece; });
    const nlohmann::json json = nlohmann::json::parse(text);
    EXPECT_EQ(json.at("mistake").at("id"), mistake.id);
    EXPECT_EQ(json.at("mistake").at("right").at("weights").size(), 3U);
    const bool runs = json.at("mistake").at("runs").get<bool>();
    EXPECT_EQ(json.contains("out"), runs) << mistake.id;
  }
}

TEST(MistakesPage, is_what_the_table_makes_of_three_tokens_causal) {
  EXPECT_EQ(file("docs/mistakes.md"), mistakes_markdown(three_tokens_causal()))
      << "make it anew: glasshead trace three-tokens-causal --mistake list --format md -o "
         "docs/mistakes.md";
}

}  // namespace
}  // namespace glasshead::doctor
