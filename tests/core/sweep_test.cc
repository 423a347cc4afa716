// Sweeps over lengths, head sizes and group sizes at which other implementations broke. Data is
// made small enough that the long double reference keeps up.
#include <algorithm>

#include "case_table.h"
#include "naive.h"
#include "testing.h"

namespace glasshead::test {
namespace {

// Scores here are of order 1, values below 5: a few roundings of each.
void expect_right(const Attention& call) {
  const Naive<long double> exact = naive_attention<long double>(call);
  for (const DType type : {DType::f64, DType::f32}) {
    SCOPED_TRACE(name(type));
    const Stored q(call.q, type), k(call.k, type), v(call.v, type);
    const auto& s = call.q.shape;
    Stored out(Block({s[0], s[1], s[2], call.v.shape[3]}, 77.0), type);
    attend(q.view(), k.view(), v.view(), out.mutable_view(), call.options);
    const Block found = out.block();
    double largest = 0;
    for (std::size_t n = 0; n < found.x.size(); ++n) {
      const double error = std::fabs(found.x[n] - static_cast<double>(exact.out[n]));
      ASSERT_FALSE(std::isnan(error)) << "entry " << n;
      largest = std::max(largest, error);
    }
    // f32: rounding the inputs moves each score by about d_k * 2^-24 and each value by 2^-24.
    const double d_k = static_cast<double>(call.q.shape[3]);
    EXPECT_LE(largest, type == DType::f64 ? 1e-13 : 0x1p-24 * (40 + 8 * std::sqrt(d_k)));
  }
}

TEST(Sweep, lengths_around_blocks_and_primes) {
  for (const index_t n :
       {1, 2, 17, 31, 33, 61, 63, 64, 65, 113, 127, 128, 129, 255, 257, 260, 512}) {
    SCOPED_TRACE(n);
    Attention call = random_call({1, 1, 1, n, n, 3, 2}, 21);
    call.options.mask = Mask::causal();
    expect_right(call);
  }
  for (const index_t n : {1023, 1024, 1025}) {
    SCOPED_TRACE(n);
    expect_right(random_call({1, 1, 1, 3, n, 3, 2}, 22));
  }
}

TEST(Sweep, queries_and_keys_of_different_lengths) {
  for (const auto& [q_len, kv_len] :
       {std::pair<index_t, index_t>{113, 203}, {203, 113}, {1024, 1023}}) {
    for (const Align align : {Align::start, Align::end}) {
      Attention call = random_call({1, 1, 1, q_len, kv_len, 2, 1}, 23);
      call.options.mask = Mask::causal() & Mask::window(150, 0);
      call.options.query_start = align;
      expect_right(call);
    }
  }
}

TEST(Sweep, head_sizes) {
  for (const index_t d : {1, 17, 40, 64, 72, 80, 96, 128, 192, 256, 320, 512, 576}) {
    for (const double softcap : {0.0, 10.0}) {
      SCOPED_TRACE(d);
      Attention call = random_call({1, 1, 1, 1, 33, d, d}, 24);
      call.options.softcap = softcap;
      expect_right(call);
      expect_right(random_call({1, 1, 1, 1, 33, d, 576 / d}, 25));
    }
  }
}

TEST(Sweep, query_counts_and_key_lengths) {
  for (const index_t kv_len : {113, 512, 1024}) {
    for (const index_t q_len : {1, 3, 32, 75}) {
      for (const double softcap : {0.0, 10.0}) {
        if (softcap > 0 && kv_len > 113) continue;
        Attention call = random_call({1, 2, 1, q_len, kv_len, 2, 3}, 26);
        call.options.mask = Mask::causal();
        call.options.query_start = Align::end;
        call.options.softcap = softcap;
        expect_right(call);
      }
    }
  }
}

TEST(Sweep, group_sizes) {
  for (const index_t group : {1, 4, 8, 12, 16, 20, 32}) {
    SCOPED_TRACE(group);
    expect_right(random_call({1, 2 * group, 2, 3, 113, 5, 3}, 27));
  }
}

}  // namespace
}  // namespace glasshead::test
