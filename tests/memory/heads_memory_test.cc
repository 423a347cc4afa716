// That HeadStudy::bytes() is what a study holds: what its end gives back.
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "glasshead/head_study.h"
#include "memory/counted.h"

namespace glasshead {
namespace {

using counted::live_bytes;

void expect_counted(const HeadStudyOptions& options) {
  Session session(Model::load(GLASSHEAD_SOURCE_DIR "/tests/data/models/llama"),
                  {.rows_at_once = 64});
  std::optional<HeadStudy> heads(options);
  std::vector<index_t> ids;
  for (index_t i = 0; i < 200; ++i) ids.push_back(3 + i * i % 23);
  session.forward({{.ids = ids}}, LogitRows::none, nullptr, &*heads);
  const auto told = static_cast<double>(heads->bytes());
  const std::size_t before = live_bytes;
  heads.reset();
  const auto held = static_cast<double>(before - live_bytes);
  // Beside what is told: the study itself, names, and what malloc rounds each block up to.
  EXPECT_LE(told, held);
  EXPECT_GE(told, held - 0.02 * held - 4096);
  // 6 heads x 64 rows x 2 blocks of keys, each of 16 bytes and two cells of 8.
  EXPECT_GE(told, 6 * 64 * 2 * 32);
}

TEST(HeadsMemory, the_room_for_tiles_is_counted) { expect_counted({.cell = 64}); }
TEST(HeadsMemory, what_is_kept_of_every_row_is_counted) {
  expect_counted({.cell = 8, .keeps_rows = true});
}

}  // namespace
}  // namespace glasshead
