#include "base/stream_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace glasshead {
namespace {

unsigned char* bytes_of(const StreamMemory& memory) {
  return static_cast<unsigned char*>(memory.data());
}

// Sizes around a line, a huge page and an area.
constexpr std::size_t kSizes[] = {
    1, 64, 65, 4096, 0, (2U << 20) - 1, 2U << 20, 1000, (5U << 20) + 1};

TEST(StreamRoom, gives_zeroed_pieces_of_whole_lines_that_do_not_overlap) {
  StreamRoom room;
  std::vector<StreamMemory> pieces;
  for (const std::size_t size : kSizes) {
    pieces.push_back(room.take(size));
    unsigned char* const piece = bytes_of(pieces.back());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece) % 64, 0U) << size;
    EXPECT_TRUE(std::all_of(piece, piece + size, [](unsigned char b) { return b == 0; })) << size;
    std::memset(piece, static_cast<int>(pieces.size()), size);
  }
  for (std::size_t n = 0; n < pieces.size(); ++n) {
    const unsigned char* const piece = bytes_of(pieces[n]);
    EXPECT_TRUE(std::all_of(piece, piece + kSizes[n], [&](unsigned char b) { return b == n + 1; }))
        << kSizes[n];
  }
}

TEST(StreamRoom, pieces_outlive_it_and_each_other) {
  StreamMemory last;
  {
    StreamRoom room;
    const StreamMemory first = room.take(5000);
    last = room.take(5000);
    std::memset(last.data(), 7, 5000);
  }
  StreamMemory moved = std::move(last);
  EXPECT_EQ(bytes_of(moved)[4999], 7);
  EXPECT_EQ(last.data(), nullptr);  // NOLINT(bugprone-use-after-move): what is left is stated
}

}  // namespace
}  // namespace glasshead
