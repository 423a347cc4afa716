// Public bugs of other implementations: heads and memory layout (see faults_empty_rows_test.cc).
#include "testing.h"

namespace glasshead::test {
namespace {

TEST(Faults, F29_key_value_heads_are_repeated_not_tiled) {
  const Attention call{
      Block({1, 4, 1, 1}, 0.0), Block({1, 2, 1, 1}, 0.0), Block({1, 2, 1, 1}, {7, 9}), {}};
  for_types(call, kAllTypes,
            [](const Result& r) { EXPECT_EQ(r.out.x, (std::vector<double>{7, 7, 9, 9})); });
}

constexpr Layout kByToken{{0, 2, 1, 3}, 1, -1};  // memory (batch, length, heads, size)

TEST(Faults, F30_keys_are_shared_by_heads_not_stretched_along_the_sequence) {
  Attention call{Block({1, 4, 2, 1}, 0.0),
                 Block({1, 2, 2, 1}, 0.0),
                 Block({1, 2, 2, 1}, {7, 70, 9, 90}),
                 {},
                 kByToken,
                 kByToken,
                 kByToken};
  call.options.mask = Mask::causal();
  call.options.query_start = Align::start;
  for_types(call, [](const Result& r) {
    const double expected[4][2] = {{7, 38.5}, {7, 38.5}, {9, 49.5}, {9, 49.5}};
    for (index_t h = 0; h < 4; ++h) {
      EXPECT_EQ(r.out(0, h, 0, 0), expected[h][0]);
      EXPECT_EQ(r.out(0, h, 1, 0), expected[h][1]);
    }
  });
}

TEST(Faults, F31_the_last_axis_need_not_be_contiguous) {
  Attention call = small();
  call.q = Block({1, 1, 2, 2}, {1, 2, 3, 4});
  Attention by_columns = call;
  by_columns.q_layout = {{0, 1, 3, 2}, 1, -1};  // memory 1, 3, 2, 4
  for_types(by_columns, [&](const Result& r) {
    expect_row(r, 0, 0, 0, {2.4359461002, 24.3594610017});
    expect_row(r, 0, 0, 1, {2.7980585372, 27.9805853717});
    expect_same_bits(r, run(call, r.type));
  });
}

TEST(Faults, F32_values_stored_by_token) {
  Attention call{g({1, 16, 62, 128}, 1), g({1, 16, 62, 128}, 2), {}, {}};
  const Block by_token = g({1, 62, 16, 128}, 3);
  call.v = Block({1, 16, 62, 128}, 0.0);
  for (index_t h = 0; h < 16; ++h)
    for (index_t j = 0; j < 62; ++j)
      for (index_t d = 0; d < 128; ++d) call.v(0, h, j, d) = by_token(0, j, h, d);
  call.v_layout = kByToken;
  for_types(call, {DType::f32}, [](const Result& r) {
    expect_row(r, 0, 0, 0, {0.5496105865, -0.6445579937});
    expect_row(r, 0, 15, 61, {0.4607941298, -0.7311321165}, 126);
  });
}

TEST(Faults, F33_gradients_do_not_depend_on_the_memory_order_of_d_out) {
  const Attention call = three_g({2, 2, 49, 32});
  const Block d_out = g({2, 2, 49, 32}, 4);
  const GradientBlocks dense = run_backward(call, d_out, DType::f64);
  const GradientBlocks by_token = run_backward(call, d_out, DType::f64, kByToken);
  EXPECT_NEAR(dense.dq(0, 0, 1, 0), 0.0719669072, 6e-11);
  EXPECT_NEAR(dense.dq(0, 0, 1, 1), 0.0719898851, 6e-11);
  EXPECT_NEAR(dense.dv(1, 1, 48, 30), -1.0480050460, 6e-11);
  EXPECT_NEAR(dense.dv(1, 1, 48, 31), 0.4990572375, 6e-11);
  EXPECT_TRUE(same_bits(dense.dq.x, by_token.dq.x));
  EXPECT_TRUE(same_bits(dense.dk.x, by_token.dk.x));
  EXPECT_TRUE(same_bits(dense.dv.x, by_token.dv.x));
}

// Five axes, two of them leading, are a batch of their product: entry [1,2] of [2,3] is batch 5.
TEST(Faults, F34_two_leading_axes_are_one_batch) {
  const Attention call = three_g({6, 2, 5, 4});
  for_types(call, [](const Result& r) {
    expect_row(r, 5, 1, 4, {-0.2168462219, -1.4489198404, 0.3890852142, -0.9043462219});
  });
}

}  // namespace
}  // namespace glasshead::test
