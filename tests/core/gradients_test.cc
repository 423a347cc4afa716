// attend_backward against central differences of the naive reference in long double.
#include <algorithm>
#include <functional>

#include "case_table.h"
#include "naive.h"
#include "testing.h"

namespace glasshead::test {
namespace {

// L = sum d_out * out.
long double loss(const Attention& call, const Block& d_out) {
  const Naive<long double> r = naive_attention<long double>(call);
  long double sum = 0;
  for (std::size_t n = 0; n < r.out.size(); ++n)
    sum += r.out[n] * static_cast<long double>(d_out.x[n]);
  return sum;
}

// dL/dx by (L(x+h) - L(x-h)) / 2h: with h = 2^-14 the formula is off by h^2/6 times a third
// derivative, about 6e-10 times one of order 1 here; rounding adds 1e-15.
double difference(const Attention& call, const Block& d_out, Block Attention::* which,
                  std::size_t n) {
  constexpr double kStep = 0x1p-14;
  Attention up = call, down = call;
  (up.*which).x[n] += kStep;
  (down.*which).x[n] -= kStep;
  return static_cast<double>((loss(up, d_out) - loss(down, d_out)) / (2 * kStep));
}

void expect_gradient(const Attention& call, const Block& d_out, Block Attention::* which,
                     const Block& found) {
  const std::size_t size = found.x.size();
  const std::size_t step = std::max<std::size_t>(1, size / 7);  // every axis is met, in seconds
  for (std::size_t n = 0; n < size; n += step)
    EXPECT_NEAR(found.x[n], difference(call, d_out, which, n), 2e-7) << "entry " << n;
}

TEST(Gradients, agree_with_finite_differences) {
  for (const Case& entry : case_table()) {
    SCOPED_TRACE(entry.name);
    const Attention& call = entry.call;
    // A score of size 100 and more saturates the softmax; the difference quotient can't follow it.
    if (entry.name == "huge scores" || entry.name == "large scores") continue;
    const Block d_out =
        random_block({call.q.shape[0], call.q.shape[1], call.q.shape[2], call.v.shape[3]}, 78);
    const GradientBlocks d = run_backward(call, d_out, DType::f64);
    expect_gradient(call, d_out, &Attention::q, d.dq);
    expect_gradient(call, d_out, &Attention::k, d.dk);
    expect_gradient(call, d_out, &Attention::v, d.dv);
  }
}

// (L(up) - L(down)) / 2h where `nudge` moves one number of the options.
double difference(const Attention& call, const Block& d_out,
                  const std::function<void(AttentionOptions&, double)>& nudge) {
  constexpr double kStep = 0x1p-14;
  Attention up = call, down = call;
  nudge(up.options, kStep);
  nudge(down.options, -kStep);
  return static_cast<double>((loss(up, d_out) - loss(down, d_out)) / (2 * kStep));
}

TEST(Gradients, of_sinks_and_biases_agree_with_finite_differences) {
  Attention call = random_call({2, 2, 1, 5, 6, 4, 3}, 17);
  Bias::T5 t5{8, 2, {}, true, 6};
  for (index_t n = 0; n < 16; ++n)
    t5.table.push_back(standard_normal(9, static_cast<std::uint64_t>(n)));
  std::vector<double> numbers{0.5, -1, 2, 0, 1, -0.5};
  call.options.bias = Bias::t5(t5) + bias_of({6}, numbers, DType::f64);
  call.options.sinks = {0.5, -1};
  call.options.softcap = 2;
  call.options.query_start = Align::end;
  const Block d_out = random_block({2, 2, 5, 3}, 81);
  const Stored q(call.q, DType::f64), k(call.k, DType::f64), v(call.v, DType::f64),
      d(d_out, DType::f64);
  Stored dq(call.q, DType::f64), dk(call.k, DType::f64), dv(call.v, DType::f64);
  Tensor<double, 4> table({1, 1, 8, 2}), row({1, 1, 1, 6});
  Tensor<double, 1> sinks({2});
  attend_backward(d.view(), q.view(), k.view(), v.view(),
                  {dq.mutable_view(), dk.mutable_view(), dv.mutable_view(), {table, row}, sinks},
                  call.options);
  for (std::size_t n = 0; n < 2; ++n)
    EXPECT_NEAR(sinks.data()[n],
                difference(call, d_out, [&](auto& o, double h) { o.sinks[n] += h; }), 2e-7);
  for (std::size_t n = 0; n < 16; ++n) {
    const auto nudge = [&](AttentionOptions& o, double h) {
      std::get<Bias::T5>(o.bias.terms()[0]).table[n] += h;
    };
    EXPECT_NEAR(table.data()[n], difference(call, d_out, nudge), 2e-7);
  }
  for (std::size_t n = 0; n < 6; ++n) {
    const auto nudge = [&](AttentionOptions& o, double h) {
      std::vector<double> moved = numbers;
      moved[n] += h;
      o.bias = Bias::t5(t5) + bias_of({6}, moved, DType::f64);
    };
    EXPECT_NEAR(row.data()[n], difference(call, d_out, nudge), 2e-7);
  }
}

// Two keys: w = sigmoid(s), d out / d s = w (1-w) (v0 - v1), by hand.
TEST(Gradients, of_two_keys_are_those_of_the_sigmoid) {
  Attention call{
      Block({1, 1, 1, 1}, 1.5), Block({1, 1, 2, 1}, {2, 0}), Block({1, 1, 2, 1}, {5, 1}), {}};
  call.options.scale = 1.0;
  const double w = 1 / (1 + std::exp(-3.0));
  const GradientBlocks d = run_backward(call, Block({1, 1, 1, 1}, 1.0), DType::f64);
  EXPECT_NEAR(d.dv.x[0], w, 1e-15);
  EXPECT_NEAR(d.dk.x[0], w * (1 - w) * 4 * 1.5, 1e-15);
  EXPECT_NEAR(d.dk.x[1], -w * (1 - w) * 4 * 1.5, 1e-15);
  EXPECT_NEAR(d.dq.x[0], w * (1 - w) * 4 * 2, 1e-15);
}

// Keys that no query sees and heads that share keys: the sum over the group.
TEST(Gradients, of_shared_heads_are_the_sum_over_the_group) {
  const Attention call = random_call({1, 6, 2, 3, 5, 4, 3});
  Attention repeated = call;
  repeated.k = Block({1, 6, 5, 4}, 0.0);
  repeated.v = Block({1, 6, 5, 3}, 0.0);
  for (index_t h = 0; h < 6; ++h)
    for (index_t j = 0; j < 5; ++j) {
      for (index_t d = 0; d < 4; ++d) repeated.k(0, h, j, d) = call.k(0, h / 3, j, d);
      for (index_t d = 0; d < 3; ++d) repeated.v(0, h, j, d) = call.v(0, h / 3, j, d);
    }
  const Block d_out = random_block({1, 6, 3, 3}, 79);
  const GradientBlocks shared = run_backward(call, d_out, DType::f64);
  const GradientBlocks own = run_backward(repeated, d_out, DType::f64);
  EXPECT_TRUE(same_bits(shared.dq.x, own.dq.x));
  for (index_t g = 0; g < 2; ++g)
    for (index_t j = 0; j < 5; ++j)
      for (index_t d = 0; d < 3; ++d) {
        const double sum =
            own.dv(0, 3 * g, j, d) + own.dv(0, 3 * g + 1, j, d) + own.dv(0, 3 * g + 2, j, d);
        EXPECT_NEAR(shared.dv(0, g, j, d), sum, 1e-14);
      }
}

// An infinite key that makes a score -inf has weight 0; its gradient is 0, not 0 * inf.
TEST(Gradients, of_a_score_of_minus_infinity_are_zero) {
  Attention call{Block({1, 1, 1, 1}, 1.0),
                 Block({1, 1, 3, 1}, {-kInf, 0, 1}),
                 Block({1, 1, 3, 1}, {7, 1, 2}),
                 {}};
  const GradientBlocks d = run_backward(call, Block({1, 1, 1, 1}, 1.0), DType::f64);
  EXPECT_EQ(d.dk.x[0], 0.0);
  EXPECT_EQ(d.dv.x[0], 0.0);
  EXPECT_TRUE(std::isfinite(d.dq.x[0]));
}

TEST(Gradients, are_rounded_once_to_the_type_they_are_asked_in) {
  const Attention call = random_call({1, 2, 1, 3, 5, 4, 3});
  const Block d_out = random_block({1, 2, 3, 3}, 80);
  const GradientBlocks wide = run_backward(call, d_out, DType::f64);
  const Stored q(call.q, DType::f64), k(call.k, DType::f64), v(call.v, DType::f64),
      d(d_out, DType::f64);
  Stored dq(call.q, DType::f32), dk(call.k, DType::bf16), dv(call.v, DType::f16);
  attend_backward(d.view(), q.view(), k.view(), v.view(),
                  {dq.mutable_view(), dk.mutable_view(), dv.mutable_view()});
  EXPECT_TRUE(same_bits(dq.block().x, Stored(wide.dq, DType::f32).block().x));
  EXPECT_TRUE(same_bits(dk.block().x, Stored(wide.dk, DType::bf16).block().x));
  EXPECT_TRUE(same_bits(dv.block().x, Stored(wide.dv, DType::f16).block().x));
}

}  // namespace
}  // namespace glasshead::test
