// Public bugs of other implementations: causality, windows, lengths (see
// faults_empty_rows_test.cc).
#include "testing.h"

namespace glasshead::test {
namespace {

TEST(Faults, F22_the_causal_corner_is_stated_never_guessed) {
  Attention call = probe(1, 16);
  call.options.mask = Mask::causal();
  const std::vector<Problem> problems = problems_of(call);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_TRUE(says(problems, "query_start", "Align::start (query_start 0)"));
  EXPECT_TRUE(says(problems, "query_start", "see 1 and 1 of 16 keys"));
  EXPECT_TRUE(says(problems, "query_start", "Align::end (query_start 15)"));
  EXPECT_TRUE(says(problems, "query_start", "see 16 and 16 of 16 keys"));
  call.options.query_start = Align::start;
  for_types(call, [](const Result& r) { EXPECT_EQ(r.out(0, 0, 0, 0), 1.0); });
  for (const QueryStart& start : {QueryStart(Align::end), QueryStart(index_t{15})}) {
    call.options.query_start = start;
    for_types(call, [](const Result& r) {
      EXPECT_EQ(r.out(0, 0, 0, 0), 4095.9375);
      expect_lse(r, 0, 0, 0, 2.7725887222);
    });
  }
}

TEST(Faults, F23_more_queries_than_keys) {
  Attention call = probe(5, 2);
  call.options.mask = Mask::causal();
  call.options.query_start = Align::end;
  for_types(call, [](const Result& r) {
    for (index_t i = 0; i < 3; ++i) expect_empty(r, 0, 0, i);
    EXPECT_EQ(r.out(0, 0, 3, 0), 1.0);
    EXPECT_EQ(r.out(0, 0, 4, 0), 1.5);
  });
  call.options.query_start = Align::start;
  for_types(call, [](const Result& r) {
    EXPECT_EQ(r.out.x, (std::vector<double>{1, 1.5, 1.5, 1.5, 1.5}));
  });
}

TEST(Faults, F24_a_preallocated_cache_keeps_its_offset) {
  Attention call = probe(2, 8);
  for (index_t j = 5; j < 8; ++j) call.k(0, 0, j, 0) = call.v(0, 0, j, 0) = kNan;
  call.options.mask = Mask::key_lengths({5}) & Mask::causal();
  call.options.query_start = index_t{3};
  for_types(call, [](const Result& r) {
    expect_row(r, 0, 0, 0, {3.75});
    expect_row(r, 0, 0, 1, {6.2});
    expect_lse(r, 0, 0, 0, 1.3862943611);
    expect_lse(r, 0, 0, 1, 1.6094379124);
  });
}

TEST(Faults, F25_a_window_counts_keys_beside_the_query) {
  const auto windowed = [](index_t left) {
    Attention call = probe(6, 6);
    call.options.mask = Mask::causal() & Mask::window(left, 0);
    return call;
  };
  for_types(windowed(1), [](const Result& r) {
    EXPECT_EQ(r.out.x, (std::vector<double>{1, 1.5, 3, 6, 12, 24}));
  });
  for_types(windowed(2), [](const Result& r) { expect_row(r, 0, 0, 3, {4.6666666667}); });
  for_types(windowed(0),
            [](const Result& r) { EXPECT_EQ(r.out.x, (std::vector<double>{1, 2, 4, 8, 16, 32})); });
  // "0 keys, the query's own included" has no meaning: it would be left -1.
  EXPECT_TRUE(says(problems_of(windowed(-1)), "mask.window", "left is -1"));
}

TEST(Faults, F26_positions_do_not_count_left_padding) {
  const auto prompt = [](std::vector<double> x) {
    const auto n = static_cast<index_t>(x.size());
    Attention call{Block({1, 1, n, 1}, std::move(x)), {}, {}, {}};
    call.v = call.k = call.q;
    call.options.scale = 1.0;
    call.options.mask = Mask::causal();
    return call;
  };
  // x = (1, 2, 4) plus the position table (0, 0.5, 1) of positions 0, 1, 2.
  const Attention alone = prompt({1, 2.5, 5});
  Attention padded = prompt({kNan, kNan, 1, 2.5, 5});
  padded.options.mask = padded.options.mask & mask_of({5}, {0, 0, 1, 1, 1});
  for_types(alone, [&](const Result& r) {
    expect_row(r, 0, 0, 0, {1});
    expect_row(r, 0, 0, 1, {2.4655339451});
    expect_row(r, 0, 0, 2, {4.9999906752});
    const Result with_padding = run(padded, r.type);
    for (index_t i = 0; i < 3; ++i) EXPECT_EQ(with_padding.out(0, 0, i + 2, 0), r.out(0, 0, i, 0));
  });
}

TEST(Faults, F28_lengths_that_are_no_multiple_of_the_block) {
  for (const auto& [n, mean] : {std::pair<index_t, double>{1025, 512}, {64, 31.5}, {192, 95.5}}) {
    Attention call = probe(1, 1);
    call.k = Block({1, 1, n, 1}, 0.0);
    call.v = call.k;
    for (index_t j = 0; j < n; ++j) call.v(0, 0, j, 0) = static_cast<double>(j);
    const double expected = mean;
    for_types(call, [&](const Result& r) { expect_row(r, 0, 0, 0, {expected}); });
  }
  Attention call{
      Block({1, 1, 1, 1}, 1.0), Block({1, 1, 192, 1}, -100.0), Block({1, 1, 192, 1}, 0.0), {}};
  for (index_t j = 0; j < 192; ++j) call.v(0, 0, j, 0) = static_cast<double>(j);
  call.options.scale = 1.0;
  for_types(call, [](const Result& r) {
    expect_row(r, 0, 0, 0, {95.5});
    expect_lse(r, 0, 0, 0, -94.7425046280);
  });
  for (const DType type : {DType::f64, DType::f32}) {
    const GradientBlocks d = run_backward(call, Block({1, 1, 1, 1}, 1.0), type);
    // 192 terms of size 0.5 times k = -100 cancel; the roundings of each term and of the sum so far
    // leave at most 192 * 100 u.
    const double u = type == DType::f64 ? 0x1p-53 : 0x1p-24;
    EXPECT_NEAR(d.dq.x[0], 0.0, 192 * 100 * u);
    EXPECT_NEAR(d.dk.x[0], -0.4973958333, 6e-11 + u);
    EXPECT_NEAR(d.dk.x[191], 0.4973958333, 6e-11 + u);
    for (const double x : d.dv.x) EXPECT_NEAR(x, 1.0 / 192, u / 64);
  }
}

// F28's sweep: every length up to two blocks, equal scores that make exp(0 - lse) overflow where a
// padded key counts, forward and backward.
TEST(Faults, F28_every_length_modulo_the_block) {
  for (index_t n = 1; n <= 260; ++n) {
    SCOPED_TRACE(n);
    Attention call{
        Block({1, 1, 1, 1}, 1.0), Block({1, 1, n, 1}, -100.0), Block({1, 1, n, 1}, 0.0), {}};
    for (index_t j = 0; j < n; ++j) call.v(0, 0, j, 0) = static_cast<double>(j);
    const double mean = static_cast<double>(n - 1) / 2;
    const double size = static_cast<double>(n);
    for_types(call, [&](const Result& r) {
      expect_row(r, 0, 0, 0, {mean});
      expect_lse(r, 0, 0, 0, -100 + std::log(size));
    });
    const GradientBlocks d = run_backward(call, Block({1, 1, 1, 1}, 1.0), DType::f64);
    EXPECT_NEAR(d.dk.x.front(), -mean / size, 1e-14);
    EXPECT_NEAR(d.dk.x.back(), mean / size, 1e-14);
    EXPECT_NEAR(d.dv.x.back(), 1 / size, 1e-15);
  }
}

}  // namespace
}  // namespace glasshead::test
