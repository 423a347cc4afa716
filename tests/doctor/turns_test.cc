// The rotary positions that all programs of a diagnosis share.
#include "doctor/turns.h"

#include <gtest/gtest.h>

namespace glasshead::doctor {
namespace {

nn::Rope rope_of(nn::RopePairing pairing, double base, index_t rotary) {
  nn::Rope rope;
  rope.pairing = pairing;
  rope.base = base;
  rope.rotary = rotary;
  return rope;
}

TEST(Turns, are_those_of_a_table_of_the_position) {
  const Turns turns;
  for (const nn::RopePairing pairing : {nn::RopePairing::halves, nn::RopePairing::adjacent})
    for (const index_t rotary : {0, 4})
      for (const index_t position : {0, 1, 63, 64, 65, -1, -64, -65, 1 << 20}) {
        const nn::Rope rope = rope_of(pairing, 10000, rotary);
        std::vector<double> expected{1, -2, 3, 4, -5, 6, 7, 8};
        std::vector<double> found = expected;
        const nn::RopeTable table = nn::rope_table(rope, 8, static_cast<double>(position));
        nn::rotate(expected, table.cos, table.sin, rope);
        turns.of(rope, 8)->turn(found.data(), position, rope);
        EXPECT_EQ(found, expected) << position;
      }
}

TEST(Turns, are_made_once_for_each_base_and_size) {
  const Turns turns;
  const auto table = turns.of(rope_of(nn::RopePairing::halves, 10000, 0), 8);
  EXPECT_EQ(turns.of(rope_of(nn::RopePairing::adjacent, 10000, 0), 8), table);
  EXPECT_NE(turns.of(rope_of(nn::RopePairing::halves, 500000, 0), 8), table);
  EXPECT_NE(turns.of(rope_of(nn::RopePairing::halves, 10000, 4), 8), table);
  EXPECT_NE(turns.of(rope_of(nn::RopePairing::halves, 10000, 0), 16), table);
}

}  // namespace
}  // namespace glasshead::doctor
