// Public bugs of other implementations: masks and biases (see faults_empty_rows_test.cc).
#include "testing.h"

namespace glasshead::test {
namespace {

TEST(Faults, F08_a_row_of_the_most_negative_float_is_uniform) {
  Attention call = three_g({1, 1, 3, 4});
  std::vector<double> bias(9, 0.0);
  std::fill(bias.begin(), bias.begin() + 3, kFloatMin);
  call.options.bias = bias_of({3, 3}, bias);
  for_types(call, [](const Result& r) {
    expect_row(r, 0, 0, 0, {0.5416666667, -0.9583333333, 0.0833333333, -0.1458333333});
    expect_weights(r, 0, 0, 0, {1.0 / 3, 1.0 / 3, 1.0 / 3});
    EXPECT_EQ(r.weights(0, 0, 0, 0), r.weights(0, 0, 0, 1));
    EXPECT_NEAR(r.lse(0, 0, 0, 0), kFloatMin, 1e-6 * -kFloatMin);
  });
}

TEST(Faults, F09_several_such_rows) {
  Attention call = three_g({1, 1, 4, 4});
  std::vector<double> bias(16, 0.0);
  std::fill(bias.begin() + 4, bias.begin() + 8, kFloatMin);
  std::fill(bias.begin() + 12, bias.end(), kFloatMin);
  call.options.bias = bias_of({4, 4}, bias);
  for_types(call, [](const Result& r) {
    expect_row(r, 0, 0, 0, {-0.1412632930, -1.6412632930});
    expect_row(r, 0, 0, 1, {0.71875, -0.78125, -0.375, 0.03125});
    expect_row(r, 0, 0, 3, {0.71875, -0.78125, -0.375, 0.03125});
  });
}

TEST(Faults, F10_a_hidden_key_never_beats_a_very_negative_score) {
  Attention call{Block({1, 1, 1, 1}, -20000.0),
                 Block({1, 1, 2, 1}, {1, 0}),
                 Block({1, 1, 2, 1}, {1, 100}),
                 {}};
  call.options.scale = 1.0;
  call.options.mask = mask_of({2}, {1, 0});
  for_types(call, [](const Result& r) {
    EXPECT_EQ(r.out(0, 0, 0, 0), 1.0);
    EXPECT_EQ(r.lse(0, 0, 0, 0), -20000.0);
  });
}

TEST(Faults, F11_masks_select_where_everything_is_allowed) {
  Attention call = probe(3, 3);
  call.options.mask = Mask::causal() & mask_of({3, 3}, std::vector<double>(9, 1.0));
  for_types(call, [](const Result& r) {
    expect_row(r, 0, 0, 0, {1});
    expect_row(r, 0, 0, 1, {1.5});
    expect_row(r, 0, 0, 2, {2.3333333333});
  });
}

TEST(Faults, F12_hidden_nan_is_never_read) {
  for (const double poison : {kNan, kInf, -kInf}) {
    Attention call{Block({1, 1, 2, 4}, 1.0), Block({1, 1, 2, 4}, {1, 2, 3, 4, 0, 0, 0, 0}), {}, {}};
    std::fill(call.k.x.begin() + 4, call.k.x.end(), poison);
    call.v = call.k;
    AttentionOptions by_mask, by_length, by_bias;
    by_mask.mask = mask_of({2, 2}, {1, 0, 1, 0});
    by_length.mask = Mask::key_lengths({1});
    by_bias.bias = bias_of({2}, {0, -kInf});
    for (const AttentionOptions& options : {by_mask, by_length, by_bias}) {
      call.options = options;
      for_types(call, kAllTypes, [](const Result& r) {
        for (index_t i = 0; i < 2; ++i) {
          for (index_t d = 0; d < 4; ++d) EXPECT_EQ(r.out(0, 0, i, d), static_cast<double>(d + 1));
          EXPECT_EQ(r.lse(0, 0, i, 0), 5.0);
          EXPECT_EQ(r.weights(0, 0, i, 1), 0.0);
        }
      });
      const GradientBlocks d = run_backward(call, Block({1, 1, 2, 4}, 1.0), DType::f64);
      for (const double x : d.dq.x) EXPECT_EQ(x, 0.0);  // one key: its weight can't move
      EXPECT_EQ(d.dv(0, 0, 0, 0), 2.0);
      EXPECT_EQ(d.dv(0, 0, 1, 0), 0.0);
      EXPECT_EQ(d.dk(0, 0, 1, 0), 0.0);
    }
  }
}

TEST(Faults, F13_a_float_padding_mask_of_minus_infinity_hides) {
  for (const std::vector<index_t>& shape :
       {std::vector<index_t>{3}, std::vector<index_t>{1, 1, 1, 3}}) {
    Attention call = small();
    call.options.bias = bias_of(shape, {0, 0, -kInf});
    Attention same = small();
    same.options.mask = mask_of({3}, {1, 1, 0});
    for_types(call, [&](const Result& r) {
      expect_row(r, 0, 0, 0, {1.3302384507, 13.3023845067});
      expect_row(r, 0, 0, 1, {1.6697615493, 16.6976154933});
      expect_lse(r, 0, 0, 0, 1.1079403077);
      expect_lse(r, 0, 0, 1, 1.1079403077);
      expect_same_bits(r, run(same, r.type));
    });
  }
}

TEST(Faults, F14_a_float_mask_is_added_not_read_as_booleans) {
  Attention call{
      Block({1, 1, 2, 1}, {1, 2}), Block({1, 1, 2, 1}, {3, 6}), Block({1, 1, 2, 1}, {2, 4}), {}};
  call.options.bias = bias_of({2}, {0, 1});
  for_types(call, [](const Result& r) {
    expect_row(r, 0, 0, 0, {3.9640275801});
    expect_row(r, 0, 0, 1, {3.9981778976});
    expect_weights(r, 0, 0, 0, {0.0179862100, 0.9820137900});
  });
}

TEST(Faults, F15_a_float_mask_of_zeros_and_ones_adds_them) {
  Attention call = probe(8, 8);
  std::vector<double> bias(64, 0.0);
  for (std::size_t i = 0; i < 8; ++i)
    for (std::size_t j = 0; j <= i; ++j) bias[8 * i + j] = 1.0;
  call.options.bias = bias_of({8, 8}, bias);
  for_types(call, [](const Result& r) {
    expect_row(r, 0, 0, 0, {26.4160153369});
    expect_row(r, 0, 0, 1, {22.7476411000});
    expect_row(r, 0, 0, 7, {31.875});
  });
}

TEST(Faults, F16_a_mask_and_causality_intersect) {
  Attention call = probe(2, 2);
  const Mask square = mask_of({2, 2}, {1, 1, 0, 1});
  for (const Mask& mask : {Mask::causal() & square, square & Mask::causal()}) {
    call.options.mask = mask;
    for_types(call, [](const Result& r) {
      expect_row(r, 0, 0, 0, {1});
      expect_row(r, 0, 0, 1, {2});
    });
  }
}

TEST(Faults, F17_softcap_comes_before_the_mask) {
  AttentionOptions by_mask, by_bias;
  by_mask.mask = mask_of({3}, {1, 1, 0});
  by_bias.bias = bias_of({3}, {0, 0, -kInf});
  for (AttentionOptions options : {by_mask, by_bias}) {
    Attention call = small();
    call.v(0, 0, 2, 0) = 1e6;
    call.v(0, 0, 2, 1) = -1e6;
    options.softcap = 1;
    call.options = options;
    for_types(call, [](const Result& r) {
      expect_row(r, 0, 0, 0, {1.3523194361, 13.5231943607});
      expect_row(r, 0, 0, 1, {1.6476805639, 16.4768056393});
      EXPECT_EQ(r.weights(0, 0, 0, 2), 0.0);
      EXPECT_EQ(r.weights(0, 0, 1, 2), 0.0);
    });
  }
}

TEST(Faults, F18_masks_of_every_rank_and_unequal_head_counts) {
  const Block q = g({2, 4, 3, 8}, 1);
  const Block k = g({2, 4, 5, 8}, 2), v = g({2, 4, 5, 8}, 3);
  Attention by_head{q, k, v, {}};
  by_head.options.mask =
      mask_of({4, 3, 5}, {1, 1, 1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 1,    // head 0
                          1, 0, 1, 0, 1, 1, 0, 1, 0, 1, 1, 0, 1, 0, 1,    // head 1
                          0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1,    // head 2
                          1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});  // head 3
  for_types(by_head, [](const Result& r) {
    expect_row(r, 1, 3, 0, {-0.9289222962});
    expect_empty(r, 1, 3, 1);
    expect_row(r, 1, 3, 2, {1.125});
    expect_row(r, 1, 0, 0, {0.3597223257, -1.1162661160});
  });
  Attention by_key{q, k, v, {}};
  by_key.options.mask = mask_of({1, 1, 1, 5}, {1, 1, 0, 1, 0});
  for_types(by_key, [](const Result& r) { expect_row(r, 1, 3, 2, {1.1748661699, 0.4426178666}); });
  const Attention unmasked{q, k, v, {}};
  Attention all = unmasked, none = unmasked;
  all.options.mask = mask_of({}, {1});
  none.options.mask = mask_of({}, {0});
  for_types(all, [&](const Result& r) { expect_same_bits(r, run(unmasked, r.type)); });
  for_types(none, [](const Result& r) {
    for (index_t i = 0; i < 3; ++i) expect_empty(r, 1, 2, i);
  });
  const Attention grouped{q, g({2, 2, 5, 8}, 2), g({2, 2, 5, 8}, 3), {}};
  for_types(grouped,
            [](const Result& r) { expect_row(r, 1, 3, 2, {-1.6702457836, 0.5799120629}); });
}

TEST(Faults, F19_every_legal_mask_shape_is_taken) {
  for (const std::vector<index_t>& shape :
       {std::vector<index_t>{3}, std::vector<index_t>{1, 3}, std::vector<index_t>{1, 1, 1, 3}}) {
    Attention call = small();
    call.options.mask = mask_of(shape, {1, 1, 0});
    for_types(call, [](const Result& r) {
      expect_row(r, 0, 0, 0, {1.3302384507, 13.3023845067});
      expect_row(r, 0, 0, 1, {1.6697615493, 16.6976154933});
    });
  }
  Attention by_query = small();
  by_query.options.mask = mask_of({1, 1, 2, 1}, {1, 0});
  for_types(by_query, [](const Result& r) {
    expect_row(r, 0, 0, 0, {2, 20});
    expect_empty(r, 0, 0, 1);
  });
}

TEST(Faults, F20_a_bias_may_have_another_type_than_the_query) {
  Attention call = small();
  call.options.bias = bias_of({2, 3}, {0, 0.5, -1, 0.25, 0, -kInf}, DType::f32);
  for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    SCOPED_TRACE(name(type));
    const Result r = run(call, type);  // which compares the rounding to `type` itself
    expect_row(r, 0, 0, 0, {1.7101444428, 17.1014444276});
    expect_row(r, 0, 0, 1, {1.6123276002, 16.1232760020});
    expect_lse(r, 0, 0, 0, 1.4868041944);
    expect_lse(r, 0, 0, 1, 1.1975946264);
  }
}

TEST(Faults, F21_odd_head_counts_and_a_mask_per_head) {
  Attention per_head = three_g({8, 8, 100, 64});
  std::vector<double> mask(8 * 100 * 100);
  for (std::size_t t = 0; t < mask.size(); ++t) mask[t] = (37 * t + 55) % 61 < 40 ? 1.0 : 0.0;
  per_head.options.mask = mask_of({8, 100, 100}, mask);
  for_types(per_head, {DType::f32}, [](const Result& r) {
    expect_row(r, 0, 0, 0, {-0.4910208872, 1.5913792382});
    expect_row(r, 7, 7, 99, {-1.6284082279, 0.6215679598}, 62);
    expect_lse(r, 7, 7, 99, 10.3623566233);
  });
  Attention lengths = three_g({8, 3, 100, 40});
  lengths.options.mask = Mask::key_lengths({100, 99, 50, 33, 17, 2, 1, 0});
  for_types(lengths, [](const Result& r) {
    expect_row(r, 3, 2, 99, {1.5232243411, 0.0566323081}, 38);
    expect_row(r, 6, 2, 99, {-1.1875, 1.125}, 38);
    for (index_t i = 0; i < 100; ++i) expect_empty(r, 7, 1, i);
  });
}

}  // namespace
}  // namespace glasshead::test
