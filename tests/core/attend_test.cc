// What attend writes where numbers are special: empty rows, sinks, infinities, NaN, zeros, range.
#include <bit>

#include "case_table.h"
#include "naive.h"
#include "testing.h"

namespace glasshead::test {
namespace {

// One query against keys that give the stated scores exactly: d_k 1, q 1, scale 1.
Attention with_scores(std::vector<double> scores, std::vector<double> values) {
  const auto n = static_cast<index_t>(scores.size());
  Attention call{Block({1, 1, 1, 1}, 1.0),
                 Block({1, 1, n, 1}, std::move(scores)),
                 Block({1, 1, n, 1}, std::move(values)),
                 {}};
  call.options.scale = 1.0;
  return call;
}

TEST(Attend, row_with_no_key_is_an_error_when_asked) {
  Attention call = small();
  call.options.mask = mask_of({2, 3}, {0, 0, 0, 1, 1, 1});
  call.options.empty_row = EmptyRow::error;
  try {
    run(call, DType::f64);
    FAIL() << "was not refused";
  } catch (const OptionError& error) {
    EXPECT_TRUE(says(error.problems(), "empty_row",
                     "1 row has no allowed key: (batch, head, row) (0, 0, 0)"));
  }
}

TEST(Attend, row_of_minus_infinity_through_the_data_counts_as_empty) {
  Attention call = with_scores({-kInf, -kInf}, {1, 2});
  for_types(call, kAllTypes, [](const Result& r) { expect_empty(r, 0, 0, 0); });
  const GradientBlocks d = run_backward(call, Block({1, 1, 1, 1}, 1.0), DType::f64);
  for (const Block* block : {&d.dq, &d.dk, &d.dv}) {
    for (const double x : block->x) EXPECT_EQ(x, 0.0);
  }
  call.options.empty_row = EmptyRow::error;
  EXPECT_TRUE(problems_of(call).empty());  // check never reads q or k
  try {
    run(call, DType::f64);
    FAIL() << "was not refused";
  } catch (const OptionError& error) {
    EXPECT_TRUE(says(error.problems(), "empty_row", "only scores of -inf"));
  }
}

TEST(Attend, sink_takes_part_in_the_sum_and_carries_no_value) {
  // Scores 0 and ln 2, sink ln 5: weights 1/8 and 2/8.
  Attention call = with_scores({0, std::log(2.0)}, {8, 16});
  call.options.sinks = {std::log(5.0)};
  for_types(call, [](const Result& r) {
    expect_weights(r, 0, 0, 0, {0.125, 0.25});
    expect_row(r, 0, 0, 0, {5});
    expect_lse(r, 0, 0, 0, std::log(8.0));
    EXPECT_NEAR(r.max(0, 0, 0, 0), std::log(5.0), 1e-7);
  });
}

TEST(Attend, row_with_only_a_sink_is_zero_with_the_sink_as_lse) {
  Attention call = with_scores({1, 2}, {kNan, kNan});
  call.options.mask = Mask::key_lengths({0});
  call.options.sinks = {-2.5};
  call.options.softcap = 1;  // sinks are not capped
  for_types(call, kAllTypes, [](const Result& r) {
    EXPECT_EQ(r.out(0, 0, 0, 0), 0.0);
    EXPECT_EQ(r.weights(0, 0, 0, 0), 0.0);
    EXPECT_EQ(r.lse(0, 0, 0, 0), -2.5);
    EXPECT_EQ(r.sum(0, 0, 0, 0), 1.0);
  });
}

TEST(Attend, infinite_scores) {
  // +inf makes its row NaN; -inf has weight 0 exactly.
  for_types(with_scores({kInf, 0, 1}, {1, 2, 3}), [](const Result& r) {
    EXPECT_TRUE(std::isnan(r.out(0, 0, 0, 0)));
    EXPECT_TRUE(std::isnan(r.lse(0, 0, 0, 0)));
  });
  for_types(with_scores({-kInf, 0, 0}, {1, 2, 4}), [](const Result& r) {
    EXPECT_EQ(r.out(0, 0, 0, 0), 3.0);
    EXPECT_EQ(r.weights(0, 0, 0, 0), 0.0);
  });
}

TEST(Attend, nan_scores_make_the_row_nan_wherever_they_stand) {
  for (std::size_t at = 0; at < 3; ++at) {
    std::vector<double> scores{0, 1, 2};
    scores[at] = kNan;
    for_types(with_scores(scores, {1, 2, 3}), [](const Result& r) {
      EXPECT_TRUE(std::isnan(r.out(0, 0, 0, 0)));
      EXPECT_TRUE(std::isnan(r.max(0, 0, 0, 0)));
      EXPECT_TRUE(std::isnan(r.lse(0, 0, 0, 0)));
    });
  }
}

TEST(Attend, infinite_value_behind_a_vanishing_weight_is_never_finite) {
  for_types(with_scores({0, -200}, {1, kInf}), [](const Result& r) {
    if (r.type == DType::f64)
      EXPECT_EQ(r.out(0, 0, 0, 0), kInf);  // e^-200 is not 0 in f64
    else
      EXPECT_FALSE(std::isfinite(r.out(0, 0, 0, 0)));
  });
}

TEST(Attend, overflow_gives_a_non_finite_result_never_a_finite_wrong_one) {
  Attention call = with_scores({5e39, 4e39}, {1, 2});
  call.q.x = {5e19};
  call.k.x = {1e20, 0.8e20};
  for_types(call, [](const Result& r) {
    if (r.type == DType::f64)
      EXPECT_EQ(r.out(0, 0, 0, 0), 1.0);
    else
      EXPECT_FALSE(std::isfinite(r.out(0, 0, 0, 0)));
  });
}

TEST(Attend, q_is_scaled_before_the_product) {
  // q.k = 6e38 and 5.6e38 overflow f32, half of them doesn't.
  Attention call = with_scores({3e38, 2.8e38}, {1, 2});
  call.q.x = {2};
  call.options.scale = 0.5;
  for_types(call, [](const Result& r) { EXPECT_EQ(r.out(0, 0, 0, 0), 1.0); });
}

TEST(Attend, nan_is_one_quiet_nan_and_zero_is_plus_zero) {
  double negative_nan = std::copysign(kNan, -1.0);
  Attention call = with_scores({0, negative_nan}, {1, 1});
  EXPECT_EQ(std::bit_cast<std::uint64_t>(run(call, DType::f64).out.x[0]), 0x7ff8000000000000U);
  const Attention zeros = with_scores({0, 0}, {-0.0, -0.0});
  for_types(zeros, kAllTypes,
            [](const Result& r) { EXPECT_FALSE(std::signbit(r.out(0, 0, 0, 0))); });
}

TEST(Attend, one_key_returns_its_value_bit_for_bit) {
  Attention call = random_call({2, 3, 1, 4, 1, 5, 6});
  for_types(call, kAllTypes, [](const Result& r) {
    for (index_t b = 0; b < 2; ++b)
      for (index_t h = 0; h < 3; ++h)
        for (index_t i = 0; i < 4; ++i)
          for (index_t d = 0; d < 6; ++d) EXPECT_EQ(r.out(b, h, i, d), r.v(b, 0, 0, d));
  });
}

TEST(Attend, subnormal_numbers_are_honoured) {
  // q = 1e-40 is subnormal in f32; k = 1e38 and 3e38 bring the scores to 1 and 3 (scale 100).
  Attention call = with_scores({0, 0}, {0, 1});
  call.q.x = {1e-40};
  call.k.x = {1e38, 3e38};
  call.options.scale = 100.0;
  for_types(call, [](const Result& r) {
    // 1e-40 has 17 bits in f32: its own rounding moves the scores by up to 2^-18 each.
    EXPECT_NEAR(r.out(0, 0, 0, 0), 1 / (1 + std::exp(-2.0)), r.type == DType::f64 ? 1e-15 : 2e-5);
  });
  const Attention tiny = with_scores({0, 0}, {0x1p-1060, 0x1p-1060});
  EXPECT_EQ(run(tiny, DType::f64).out.x[0], 0x1p-1060);
}

TEST(Attend, row_state_gives_back_the_weights) {
  const Attention call = random_call({1, 2, 1, 3, 200, 4, 2});
  const Result r = run(call, DType::f64);
  const Naive<long double> exact = naive_attention<long double>(call);
  for (index_t h = 0; h < 2; ++h)
    for (index_t i = 0; i < 3; ++i) {
      // lse = max + ln(sum), and the weights add to 1 within n roundings.
      EXPECT_NEAR(r.max(0, h, i, 0) + std::log(r.sum(0, h, i, 0)), r.lse(0, h, i, 0), 1e-15 * 8);
      double total = 0;
      for (index_t j = 0; j < 200; ++j) total += r.weights(0, h, i, j);
      EXPECT_NEAR(total, 1.0, 4 * 200 * 0x1p-53);
    }
  EXPECT_EQ(exact.lse.size(), r.lse.x.size());
}

TEST(Attend, weights_of_a_few_heads_and_rows_are_those_of_the_whole) {
  Attention call = random_call({2, 4, 2, 6, 9, 3, 2});
  call.options.mask = Mask::causal();
  call.options.query_start = Align::end;
  for (const DType type : {DType::f64, DType::f32}) {
    const Result whole = run(call, type);
    const Stored q(call.q, type), k(call.k, type);
    Stored part(Block({2, 2, 3, 9}, 77.0), type);
    attention_weights(q.view(), k.view(), call.options, {1, 3, 2, 5}, part.mutable_view());
    const Block block = part.block();
    for (index_t b = 0; b < 2; ++b)
      for (index_t h = 0; h < 2; ++h)
        for (index_t i = 0; i < 3; ++i)
          for (index_t j = 0; j < 9; ++j)
            EXPECT_EQ(block(b, h, i, j), whole.weights(b, h + 1, i + 2, j));
  }
}

TEST(Attend, dropout_keeps_the_same_pairs_in_every_type_and_scales_them) {
  // Equal scores and values of powers of two: out spells out which keys were kept.
  Attention call = probe(3, 16);
  call.options.dropout = {0.5, 42};
  const Result r = run(call, DType::f64);
  for (index_t i = 0; i < 3; ++i) {
    double sum = 0;
    for (index_t j = 0; j < 16; ++j) {
      if (!dropped(42, {0, 0, i, j}, 0.5)) sum += std::ldexp(1.0, static_cast<int>(j)) / 16 * 2;
    }
    EXPECT_EQ(r.out(0, 0, i, 0), sum);
    EXPECT_EQ(run(call, DType::f32).out(0, 0, i, 0), sum);
  }
}

TEST(Attend, many_equal_keys_are_summed_in_blocks) {
  // 65,537 weights of 1/65537 on values of 0.1f: plain index order in f32 is off by hundreds of
  // ulp.
  constexpr index_t kKeys = 65537;
  const Attention call{Block({1, 1, 1, 1}, 0.0),
                       Block({1, 1, kKeys, 1}, 0.0),
                       Block({1, 1, kKeys, 1}, static_cast<double>(0.1F)),
                       {}};
  for_types(call, [](const Result& r) {
    const double right = static_cast<double>(0.1F);
    // 128 additions in a block and 513 of blocks, half an ulp each at worst: 641, not 65,537.
    EXPECT_NEAR(r.out.x[0], right, right * 641 * (r.type == DType::f64 ? 0x1p-53 : 0x1p-24));
  });
}

}  // namespace
}  // namespace glasshead::test
