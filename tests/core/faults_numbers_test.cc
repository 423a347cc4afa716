// Public bugs of other implementations: range and precision, dropout, bias, scale, types (see
// faults_empty_rows_test.cc).
#include "naive.h"
#include "testing.h"

namespace glasshead::test {
namespace {

TEST(Faults, F35_values_are_not_summed_in_half_precision) {
  for (const auto& [n, value] : {std::pair<index_t, double>{4096, 30}, {400, 300}}) {
    const Attention call{
        Block({1, 1, 1, 64}, 0.0), Block({1, 1, n, 64}, 1.0), Block({1, 1, n, 64}, value), {}};
    const double expected = value;
    for_types(call, {DType::f16},
              [&](const Result& r) { expect_row(r, 0, 0, 0, std::vector<double>(64, expected)); });
  }
}

TEST(Faults, F36_a_query_beyond_half_precision) {
  const Attention call{
      Block({1, 1, 1, 64}, 70000.0), Block({1, 1, 64, 64}, 0.01), Block({1, 1, 64, 64}, 1.0), {}};
  for_types(call, [](const Result& r) { expect_row(r, 0, 0, 0, std::vector<double>(64, 1.0)); });
  // q in f32, k and v in f16: mixed types are refused, never narrowed.
  const Stored q(call.q, DType::f32), k(call.k, DType::f16), v(call.v, DType::f16);
  const std::vector<Problem> problems = check(q.view(), k.view(), v.view());
  EXPECT_EQ(problems.size(), 2U);
  EXPECT_TRUE(says(problems, "k", "has dtype f16 where q has f32"));
  EXPECT_TRUE(says(problems, "v", "has dtype f16 where q has f32"));
}

TEST(Faults, F37_large_bf16_values) {
  const Block large({1, 1, 1, 64}, 133120.0);
  const Attention call{large, large, large, {}};
  for_types(call, {DType::f64, DType::f32, DType::bf16}, [](const Result& r) {
    for (const double x : r.out.x) EXPECT_EQ(x, 133120.0);
    EXPECT_NEAR(r.lse(0, 0, 0, 0), 141767475200.0, r.type == DType::f64 ? 0.0 : 1.5e5);
  });
}

TEST(Faults, F38_the_maximum_is_subtracted_before_exp) {
  Attention call{
      Block({1, 1, 1, 1}, 1.0), Block({1, 1, 2, 1}, {151, 150}), Block({1, 1, 2, 1}, {1, 2}), {}};
  call.options.scale = 1.0;
  for_types(call, [](const Result& r) {
    expect_row(r, 0, 0, 0, {1.2689414214});
    expect_lse(r, 0, 0, 0, 151.3132616875);
  });
}

TEST(Faults, F39_scales_of_zero_and_below) {
  Attention call = small();
  call.q = call.k;
  call.options.mask = Mask::causal();
  call.options.scale = -1.0;
  for_types(call, [](const Result& r) {
    expect_row(r, 0, 0, 0, {1, 10});
    expect_row(r, 0, 0, 1, {1.2689414214, 12.6894142137});
    expect_row(r, 0, 0, 2, {1.7330436052, 17.3304360525});
    expect_lse(r, 0, 0, 0, -1);
    expect_lse(r, 0, 0, 1, 0.3132616875);
    expect_lse(r, 0, 0, 2, -0.1380051959);
  });
  call.options.scale = 0.0;
  for_types(call, [](const Result& r) {
    expect_row(r, 0, 0, 0, {1, 10});
    expect_row(r, 0, 0, 1, {1.5, 15});
    expect_row(r, 0, 0, 2, {2, 20});
    EXPECT_EQ(r.lse(0, 0, 0, 0), 0.0);
    expect_lse(r, 0, 0, 1, 0.6931471806);
    expect_lse(r, 0, 0, 2, 1.0986122887);
  });
}

TEST(Faults, F40_softcap_of_huge_scores) {
  Attention call{Block({1, 1, 1, 1}, 10000.0),
                 Block({1, 1, 3, 1}, {1, 1, -1}),
                 Block({1, 1, 3, 1}, {1, 2, 6}),
                 {}};
  call.options.scale = 1.0;
  call.options.softcap = 50;
  for_types(call, [](const Result& r) {
    expect_row(r, 0, 0, 0, {1.5});
    expect_lse(r, 0, 0, 0, 50.6931471806);
  });
}

TEST(Faults, F41_returned_weights_are_those_before_dropout) {
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{123456789}}) {
    Attention call = three_g({1, 5, 4, 4});
    call.options.dropout = {0.1, seed};
    for_types(call, [](const Result& r) {
      expect_weights(r, 0, 0, 0, {0.3347681709, 0.0122416554, 0.6415126416, 0.0114775321});
      for (index_t h = 0; h < 5; ++h) {
        for (index_t i = 0; i < 4; ++i) {
          double sum = 0;
          for (index_t j = 0; j < 4; ++j) sum += r.weights(0, h, i, j);
          EXPECT_NEAR(sum, 1.0, r.type == DType::f64 ? 4 * 4 * 0x1p-53 : 4 * 4 * 0x1p-24);
        }
      }
    });
  }
}

TEST(Faults, F42_dropout_happens_only_when_asked_for) {
  const Attention call = three_g({1, 5, 4, 4});
  Attention zero = call, some = call, other = call;
  zero.options.dropout = {0.0, 7};
  some.options.dropout = {0.5, 7};
  other.options.dropout = {0.5, 8};
  for_types(call, [&](const Result& r) {
    expect_same_bits(r, run(call, r.type));
    expect_same_bits(r, run(zero, r.type));
    const Result dropped_once = run(some, r.type);
    expect_same_bits(dropped_once, run(some, r.type));
    EXPECT_FALSE(same_bits(r.out.x, dropped_once.out.x));
    EXPECT_FALSE(same_bits(dropped_once.out.x, run(other, r.type).out.x));
  });
}

TEST(Faults, F46_a_relative_bias_follows_the_cache) {
  Attention call = probe(4, 4);
  call.options.mask = Mask::causal();
  // bias(i, j) = (0, 1, -1, 2)[i - j]; what stands after the query is hidden.
  call.options.bias = bias_of({4, 4}, {0, 9, 9, 9, 1, 0, 9, 9, -1, 1, 0, 9, 2, -1, 1, 0});
  Attention last = probe(1, 4);
  last.options.mask = Mask::causal();
  last.options.query_start = index_t{3};
  last.options.bias = bias_of({1, 4}, {2, -1, 1, 0});
  for_types(call, [&](const Result& r) {
    expect_row(r, 0, 0, 0, {1});
    expect_row(r, 0, 0, 1, {1.2689414214});
    expect_row(r, 0, 0, 2, {2.3994263689});
    expect_row(r, 0, 0, 3, {2.3527172887});
    EXPECT_EQ(run(last, r.type).out.x[0], r.out(0, 0, 3, 0));
  });
}

TEST(Faults, F47_the_stated_scale_is_the_scale) {
  Attention call = small();
  call.options.scale = 1 / (2 * std::sqrt(2.0));
  for_types(call, [](const Result& r) {
    expect_row(r, 0, 0, 1, {2.1102112227, 21.1021122269});
    expect_lse(r, 0, 0, 1, 1.3476153913);
  });
  call.options.scale = 0.5;
  for_types(call, [](const Result& r) {
    expect_row(r, 0, 0, 1, {2.1509551936, 21.5095519357});
    expect_lse(r, 0, 0, 1, 1.4580200879);
  });
}

TEST(Faults, F50_every_head_size) {
  struct Digits {
    index_t d;
    double first, last, lse;
  };
  const std::vector<Digits> printed{{16, 1.1886600209, 1.4748486574, 6.1399058946},
                                    {40, 1.4404124978, 0.1468788974, 8.2270019333},
                                    {48, 0.4417335328, -1.4299667724, 9.0870556763},
                                    {80, -0.3163685807, -0.6288669810, 10.9898005175}};
  for (index_t d = 1; d <= 130; ++d) {
    SCOPED_TRACE(d);
    const Attention call{g({1, 1, 3, d}, 1), g({1, 1, 33, d}, 2), g({1, 1, 33, d}, 3), {}};
    const Naive<long double> exact = naive_attention<long double>(call);
    for_types(call, kAllTypes, [&](const Result& r) {  // g is exact in every type
      for (const Digits& digits : printed) {
        if (digits.d != d) continue;
        expect_row(r, 0, 0, 2, {digits.first});
        expect_row(r, 0, 0, 2, {digits.last}, d - 1);
        expect_lse(r, 0, 0, 2, digits.lse);
      }
      for (index_t i = 0; i < 3; ++i) {
        std::vector<double> row;
        for (index_t e = 0; e < d; ++e)
          row.push_back(static_cast<double>(exact.out_at(0, 0, i, e)));
        expect_row(r, 0, 0, i, row);
        expect_lse(r, 0, 0, i, static_cast<double>(exact.lse_at(0, 0, i)));
      }
    });
  }
}

TEST(Faults, F51_an_unsupported_type_is_refused_with_the_supported_ones) {
  const Block q({1, 1, 2, 2}, 1.0);
  for (const DType type : {DType::u8, DType::i64}) {
    const Stored good(q, DType::f32), bad(q, type);
    const std::vector<Problem> problems = check(good.view(), bad.view(), bad.view());
    EXPECT_EQ(problems.size(), 2U);
    for (const char* which : {"k", "v"}) {
      EXPECT_TRUE(says(problems, which, std::string("has dtype ") + name(type)));
      EXPECT_TRUE(says(problems, which, "f64, f32, bf16 and f16"));
    }
  }
}

}  // namespace
}  // namespace glasshead::test
