// Public bugs of other implementations, as regression tests: each with the smallest input that
// shows it and the right answer (digits from exact arithmetic). The number is the entry in our
// list.
//
// Here and in faults_*_test.cc: F01-F34 and F35-F42, F46, F47, F50, F51. Of these, attention's part
// alone: F15 (that a doctor names the mistake is tested there), F26 (the model with learned
// positions is by hand), F34 (five axes are a front end's; here the batch of 6 that they mean), F50
// (one set of instructions: the readable path has no others).
// Elsewhere: F43, F44, F45 (rotary positions), F48, F49 (biases of the projections): layers.
#include "testing.h"

namespace glasshead::test {
namespace {

TEST(Faults, F01_a_row_that_hides_every_key_is_empty) {
  Attention call = three_g({1, 1, 8, 8});
  std::vector<double> mask(64, 1.0);
  std::fill(mask.begin() + 32, mask.end(), 0.0);
  const Attention unmasked = call;
  call.options.mask = mask_of({8, 8}, mask);
  for_types(call, [&](const Result& r) {
    expect_row(r, 0, 0, 0, {-0.1935642945, -1.4572638834});
    expect_lse(r, 0, 0, 0, 3.9017420223);
    const Result all = run(unmasked, r.type);
    for (index_t i = 0; i < 4; ++i) {
      for (index_t d = 0; d < 8; ++d) EXPECT_EQ(r.out(0, 0, i, d), all.out(0, 0, i, d));
    }
    for (index_t i = 4; i < 8; ++i) expect_empty(r, 0, 0, i);
  });
}

TEST(Faults, F02_an_all_false_mask_gives_zeros) {
  Attention call = three_g({1, 1, 3, 4});
  call.options.mask = mask_of({1, 1, 3, 3}, std::vector<double>(9, 0.0));
  for_types(call, [](const Result& r) {
    for (index_t i = 0; i < 3; ++i) expect_empty(r, 0, 0, i);
  });
}

TEST(Faults, F03_one_masked_head_leaves_the_others_alone) {
  Attention call = three_g({1, 3, 5, 1});
  std::vector<double> mask(75, 1.0);
  std::fill(mask.begin() + 50, mask.end(), 0.0);
  call.options.mask = mask_of({3, 5, 5}, mask);
  for_types(call, [](const Result& r) {
    expect_row(r, 0, 0, 0, {-0.0995920228});
    expect_row(r, 0, 1, 0, {-0.7176353872});
    for (index_t i = 0; i < 5; ++i) expect_empty(r, 0, 2, i);
  });
}

TEST(Faults, F04_gradients_of_an_empty_row_are_zero) {
  Attention call = small();
  call.options.mask = mask_of({2, 3}, {0, 0, 0, 1, 1, 1});
  for (const DType type : kAllTypes) {
    SCOPED_TRACE(name(type));
    const GradientBlocks d = run_backward(call, Block({1, 1, 2, 2}, 1.0), type);
    const std::vector<double> dq{0, 0, 0.6343928979, 1.8511340925};
    const std::vector<double> dk{0, -1.8511340925, 0, -0.6343928979, 0, 2.4855269904};
    const std::vector<double> dv{0.1977758146, 0.1977758146, 0.4011120927,
                                 0.4011120927, 0.4011120927, 0.4011120927};
    // Ten digits are given; in f32 a few roundings of terms no larger than 8 come on top.
    const double tolerance = 6e-11 + (type == DType::f64 ? 0 : 8 * 0x1p-24);
    for (std::size_t n = 0; n < 4; ++n) EXPECT_NEAR(d.dq.x[n], dq[n], tolerance);
    for (std::size_t n = 0; n < 6; ++n) EXPECT_NEAR(d.dk.x[n], dk[n], tolerance);
    for (std::size_t n = 0; n < 6; ++n) EXPECT_NEAR(d.dv.x[n], dv[n], tolerance);
    EXPECT_EQ(d.dq.x[0], 0.0);
    EXPECT_EQ(d.dq.x[1], 0.0);
  }
}

TEST(Faults, F05_the_lse_of_a_row_without_keys_is_minus_infinity) {
  Attention call = probe(4, 2);
  call.options.mask = Mask::causal();
  call.options.query_start = Align::end;
  for_types(call, kAllTypes, [](const Result& r) {
    expect_empty(r, 0, 0, 0);
    expect_empty(r, 0, 0, 1);
    EXPECT_EQ(r.out(0, 0, 2, 0), 1.0);
    EXPECT_EQ(r.lse(0, 0, 2, 0), 0.0);
    EXPECT_EQ(r.out(0, 0, 3, 0), 1.5);
    expect_lse(r, 0, 0, 3, 0.6931471806);
  });
}

TEST(Faults, F06_no_keys_at_all_is_minus_infinity_too) {
  const Attention call{
      Block({1, 1, 2, 4}, 1.0), Block({1, 1, 0, 4}, 0.0), Block({1, 1, 0, 4}, 0.0), {}};
  for_types(call, kAllTypes, [](const Result& r) {
    expect_empty(r, 0, 0, 0);
    expect_empty(r, 0, 0, 1);
  });
}

TEST(Faults, F07_lse_is_written_only_on_request_and_changes_nothing) {
  Attention call = small();
  call.options.mask = mask_of({2, 3}, {0, 0, 0, 1, 1, 1});
  // `run` compares out with and without the request.
  for_types(call, [](const Result& r) {
    expect_empty(r, 0, 0, 0);
    expect_lse(r, 0, 0, 1, 1.6206211391);
  });
}

TEST(Faults, F27_lengths_and_batches_of_zero) {
  Attention call{
      Block({4, 1, 1, 1}, 0.0), Block({4, 1, 1, 1}, 0.0), Block({4, 1, 1, 1}, {5, 6, 7, 8}), {}};
  call.options.mask = Mask::key_lengths({0, 1, 0, 1});
  for_types(call, kAllTypes, [](const Result& r) {
    expect_empty(r, 0, 0, 0);
    expect_empty(r, 2, 0, 0);
    EXPECT_EQ(r.out(1, 0, 0, 0), 6.0);
    EXPECT_EQ(r.out(3, 0, 0, 0), 8.0);
    EXPECT_EQ(r.lse(1, 0, 0, 0), 0.0);
    EXPECT_EQ(r.lse(3, 0, 0, 0), 0.0);
  });
  const auto sizes = [](index_t batch, index_t heads, index_t q_len, index_t kv_len, index_t d_v) {
    return Attention{Block({batch, heads, q_len, 4}, 0.0),
                     Block({batch, heads, kv_len, 4}, 0.0),
                     Block({batch, heads, kv_len, d_v}, 0.0),
                     {}};
  };
  for (const Attention& empty :
       {sizes(0, 2, 3, 3, 4), sizes(1, 2, 0, 3, 4), sizes(1, 2, 3, 0, 4), sizes(1, 0, 3, 3, 4),
        sizes(1, 2, 3, 3, 0), sizes(0, 0, 0, 0, 0)}) {
    for_types(empty, kAllTypes, [&](const Result& r) {
      EXPECT_EQ(r.out.shape[3], empty.v.shape[3]);
      EXPECT_EQ(r.lse.shape[2], empty.q.shape[2]);
    });
    const GradientBlocks d = run_backward(
        empty, Block({empty.q.shape[0], empty.q.shape[1], empty.q.shape[2], empty.v.shape[3]}, 1.0),
        DType::f64);
    for (const double x : d.dq.x) EXPECT_EQ(x, 0.0);
    for (const double x : d.dk.x) EXPECT_EQ(x, 0.0);
  }
}

}  // namespace
}  // namespace glasshead::test
