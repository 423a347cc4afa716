// A few of the trials of bench/doctor, by number: each mistake of the catalogue once where it
// shows, some pairs, and right attention in every way and type.
#include <set>

#include <gtest/gtest.h>

#include "right_attention.h"

namespace glasshead::doctor::trials {
namespace {

std::string listed(const Count& count) {
  std::string text;
  for (const std::string& miss : count.misses) text += miss + "\n";
  return text;
}

TEST(DoctorTrials, every_mistake_is_named_or_known_to_be_alike) {
  std::set<std::string> tried;
  Count all;
  for (std::uint64_t n = 0; n < 10; ++n) {
    const Inputs in = random_inputs(n);
    all += try_singles(in, n + 1, n % 3 != 0, [&](const std::string& name) {
      return tried.insert(name.substr(0, name.find(':')) + (n % 2 == 0 ? "" : " again")).second;
    });
  }
  EXPECT_EQ(all.wrong + all.unexplained, 0) << listed(all);
  EXPECT_GT(all.exact + all.grouped, 100);
}

TEST(DoctorTrials, pairs_are_named_or_left_unexplained) {
  Inputs in{"small", {1, 2, 1, 12, 20, 8, 8}, {}};
  in.options.mask = Mask::causal();
  in.options.query_start = Align::end;
  const Pairing pairing(in, 1);
  Count all;
  for (std::size_t n = 3; n < pairing.size(); n += pairing.size() / 25) pairing.try_pair(n, all);
  EXPECT_EQ(all.wrong, 0) << listed(all);
  EXPECT_LE(all.unexplained, 1) << listed(all);
  EXPECT_GT(all.made, 20);
}

TEST(DoctorTrials, right_attention_of_any_order_and_type_is_called_right) {
  struct Type {
    DType type;
    Store store;
  };
  for (const Type& type : {Type{DType::f32, as_f32}, {DType::bf16, as_bf16}, {DType::f16, as_f16}})
    for (std::uint64_t n = 0; n < 10; ++n) {
      const Inputs in = random_inputs(n);
      const HeldInputs held(in, 500 + n, type.store);
      const bool keeps = n % 2 == 0;
      const Way way = kWays[n % 6];
      const Written theirs = RightAttention(held.attention, in.shape, way, type.store, keeps).run();
      const Diagnosis d = diagnose(held.attention, theirs.claims(true), {.arithmetic = type.type});
      EXPECT_TRUE(d.is_right()) << in.name << " in " << name(type.type) << "\n"
                                << diagnosis_text(d);
    }
}

}  // namespace
}  // namespace glasshead::doctor::trials
