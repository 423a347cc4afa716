#include "core/tile_plan.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>
#include <vector>

#include "core/context_impl.h"
#include "core/plan_of_batch.h"
#include "tile_cases.h"

namespace glasshead::test {
namespace {

constexpr std::uint64_t kCases = 1500;

PairShape shape_of(const Attention& call) {
  return {call.q.shape[0], call.q.shape[1], call.q.shape[2], call.k.shape[2]};
}

// f(draw, call, shape, plan) for random calls.
template <class F>
void for_random_calls(const F& f) {
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    SCOPED_TRACE(seed);
    TileDraw draw(seed);
    const Attention call = draw.call();
    const PairShape shape = shape_of(call);
    const TilePlan plan(call.options, shape);
    f(draw, call, shape, plan);
    if (testing::Test::HasFatalFailure()) return;
  }
}

void expect_the_pairs_that_are_allowed(const Attention& call, const TilePlan& plan,
                                       const PanelRows& rows, KeyRange keys) {
  std::uint32_t bits[kTileKeys + 1];
  std::memset(bits, 0x5a, sizeof(bits));
  const TileKind kind = plan.tile(rows, keys, bits);
  const index_t count = keys.end - keys.begin;
  index_t allowed = 0;
  for (index_t n = 0; n < count; ++n) {
    std::uint32_t expected = ~std::uint32_t{0};
    for (index_t r = 0; r < rows.count; ++r) {
      const bool is_allowed = naive_allowed(call, rows.b, rows.h[r], rows.i[r], keys.begin + n);
      ASSERT_EQ(plan.mask().allowed(rows.b, rows.h[r], rows.i[r], keys.begin + n), is_allowed);
      if (!is_allowed) expected &= ~(std::uint32_t{1} << r);
      allowed += is_allowed ? 1 : 0;
    }
    if (kind == TileKind::some) {
      ASSERT_EQ(bits[n], expected) << "key " << keys.begin + n;
    }
  }
  ASSERT_EQ(kind, allowed == 0                    ? TileKind::none
                  : allowed == rows.count * count ? TileKind::all
                                                  : TileKind::some);
  ASSERT_EQ(bits[kind == TileKind::some ? count : kTileKeys], 0x5a5a5a5aU)
      << "written past the keys";
}

// The kind is exact and the bits are the pairs that the rules, read one by one, allow.
TEST(TilePlan, a_tile_is_the_set_of_allowed_pairs_for_any_options) {
  for_random_calls(
      [](TileDraw& draw, const Attention& call, const PairShape& shape, const TilePlan& plan) {
        for (int n = 0; n < 4; ++n) {
          const PanelRows rows = draw.rows(shape);
          const KeyRange keys = draw.keys(shape);
          // Twice: a plan remembers what it found in rows that heads share.
          for (int time = 0; time < 2; ++time)
            expect_the_pairs_that_are_allowed(call, plan, rows, keys);
        }
      });
}

bool has_segments(const Mask& mask) {
  return std::any_of(mask.parts().begin(), mask.parts().end(), [](const Mask::Part& part) {
    return std::holds_alternative<Mask::Segments>(part);
  });
}

TEST(TilePlan, its_key_range_is_the_union_of_the_rows_ranges) {
  for_random_calls(
      [](TileDraw& draw, const Attention& call, const PairShape& shape, const TilePlan& plan) {
        if (has_segments(call.options.mask)) return;
        const PanelRows rows = draw.rows(shape);
        const KeyRange found = plan.key_range(rows);
        const MaskPlan mask(call.options, shape);
        index_t begin = shape.kv_len;
        index_t end = 0;
        for (index_t r = 0; r < rows.count; ++r) {
          const KeyRange row = mask.key_range(rows.b, rows.h[r], rows.i[r]);
          if (row.is_empty()) continue;
          begin = std::min(begin, row.begin);
          end = std::max(end, row.end);
        }
        if (end == 0) begin = 0;
        ASSERT_EQ(found.begin, begin);
        ASSERT_EQ(found.end, end);
      });
}

TEST(TilePlan, no_allowed_pair_is_outside_its_key_range) {
  for_random_calls(
      [](TileDraw& draw, const Attention& call, const PairShape& shape, const TilePlan& plan) {
        if (!has_segments(call.options.mask)) return;
        const PanelRows rows = draw.rows(shape);
        const KeyRange found = plan.key_range(rows);
        ASSERT_LE(0, found.begin);
        ASSERT_LE(found.end, shape.kv_len);
        for (index_t r = 0; r < rows.count; ++r)
          for (index_t j = 0; j < shape.kv_len; ++j)
            ASSERT_FALSE((j < found.begin || j >= found.end) &&
                         naive_allowed(call, rows.b, rows.h[r], rows.i[r], j))
                << "row " << r << ", key " << j;
      });
}

// Documents of 5, 3 and again 5 tokens, the third with the first one's id.
TEST(TilePlan, its_key_range_ends_with_the_rows_documents) {
  const std::vector<index_t> ids{7, 7, 7, 7, 7, -2, -2, -2, 7, 7, 7, 7, 7};
  AttentionOptions options;
  options.mask = Mask::segments(1, ids, ids);
  const TilePlan plan(options, {1, 1, 13, 13});
  const auto range = [&plan](index_t begin, index_t end) {
    const KeyRange keys = plan.key_range(panel_rows(0, 0, 1, begin, end));
    return std::pair(keys.begin, keys.end);
  };
  EXPECT_EQ(range(5, 8), std::pair(index_t{5}, index_t{8}));
  EXPECT_EQ(range(6, 9), std::pair(index_t{0}, index_t{13}));
  EXPECT_EQ(range(0, 5), std::pair(index_t{0}, index_t{13}));
  options.mask = options.mask & Mask::causal();
  const TilePlan causal(options, {1, 1, 13, 13});
  const KeyRange keys = causal.key_range(panel_rows(0, 0, 1, 5, 7));
  EXPECT_EQ(keys.begin, 5);
  EXPECT_EQ(keys.end, 7);
}

TEST(TilePlan, no_keys_are_no_tile) {
  const TilePlan plan({}, {1, 1, 1, 0});
  const PanelRows rows = panel_rows(0, 0, 1, 0, 1);
  std::uint32_t bits = 7;
  EXPECT_EQ(plan.tile(rows, {0, 0}, &bits), TileKind::none);
  EXPECT_EQ(bits, 7U);
  EXPECT_TRUE(plan.key_range(rows).is_empty());
}

template <class T>
void expect_the_biases_of_the_pairs(const TilePlan& plan, const BiasPlan& pairs,
                                    const PanelRows& rows, KeyRange keys, index_t lanes) {
  const index_t count = keys.end - keys.begin;
  Tensor<T, 1> found({count * lanes + 1});  // aligned
  std::fill_n(found.data(), found.size(), T(77));
  static const Context context;
  plan.bias<T>(kernels_of<T>(context.impl()), rows, keys, lanes, found.data());
  for (index_t n = 0; n < count; ++n) {
    for (index_t r = 0; r < rows.count; ++r) {
      const T bias = found.data()[n * lanes + r];
      const T expected = pairs.at<T>(rows.b, rows.h[r], rows.i[r], keys.begin + n);
      ASSERT_EQ(std::memcmp(&bias, &expected, sizeof(T)), 0)
          << bias << " where " << expected << " is right: row " << r << " key " << keys.begin + n;
    }
  }
  ASSERT_EQ(found.data()[count * lanes], T(77)) << "written past the tile";
}

// To the bit, -0 and rounding included, into panels of both widths that are in use.
TEST(TilePlan, biases_are_those_of_the_pairs_for_any_options) {
  for_random_calls(
      [](TileDraw& draw, const Attention& call, const PairShape& shape, const TilePlan& plan) {
        const BiasPlan pairs(call.options, shape);
        ASSERT_EQ(plan.has_bias(), !call.options.bias.terms().empty());
        for (int n = 0; n < 2; ++n) {
          const PanelRows rows = draw.rows(shape);
          const KeyRange keys = draw.keys(shape);
          const index_t lanes = rows.count <= 16 && draw.one_in(2) ? 16 : kMostRows;
          expect_the_biases_of_the_pairs<float>(plan, pairs, rows, keys, lanes);
          expect_the_biases_of_the_pairs<double>(plan, pairs, rows, keys, lanes);
        }
      });
}

// Distances past 2^53 round as they are turned into f64: nothing may be gained by adding doubles.
TEST(TilePlan, alibi_of_the_furthest_positions) {
  AttentionOptions options;
  options.bias = Bias::alibi({1.0 / 3.0});
  for (const index_t start :
       {index_t{1} << 61, -(index_t{1} << 61), (index_t{1} << 53) - 60, -(index_t{1} << 52) + 60}) {
    options.query_start = start;
    const PairShape shape{1, 1, 9, 128};
    const TilePlan plan(options, shape);
    const PanelRows rows = panel_rows(0, 0, 1, 0, 9);
    expect_the_biases_of_the_pairs<double>(plan, BiasPlan(options, shape), rows, {0, 128}, 16);
  }
}

// Sequences of a cache that stand at different positions: a plan of one says what the options say
// of it.
TEST(PlanOfBatch, each_entry_at_its_place_has_the_pairs_and_biases_of_the_whole) {
  for_random_calls(
      [](TileDraw& draw, const Attention& call, const PairShape& shape, const TilePlan&) {
        std::vector<index_t> starts;
        for (index_t b = 0; b < shape.batch; ++b) starts.push_back(draw.within(-5, shape.kv_len));
        const PlanOfBatch plans(call.options, starts, shape);
        for (int n = 0; n < 2; ++n) {
          const PanelRows rows = draw.rows(shape);
          const KeyRange keys = draw.keys(shape);
          Attention at_place = call;
          at_place.options.query_start = starts[static_cast<std::size_t>(rows.b)];
          expect_the_pairs_that_are_allowed(at_place, plans[rows.b], rows, keys);
          expect_the_biases_of_the_pairs<float>(plans[rows.b], BiasPlan(at_place.options, shape),
                                                rows, keys, kMostRows);
        }
      });
}

}  // namespace
}  // namespace glasshead::test
