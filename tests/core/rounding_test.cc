// The kernel sets that round to bf16: that nobody gets one unasked, how far they may err, what they
// refuse. Their bits are those of the literal row function in fused_random_test.cc.
#include <cmath>
#include <string>

#include "error_bound.h"
#include "glasshead/attention_weights.h"
#include "glasshead/error.h"
#include "random_calls.h"

namespace glasshead::test {
namespace {

Context context_of(const KernelSetInfo& set) {
  return Context({.isa = set.name, .threads = 2, .parallel_for = {}});
}

std::string text_of(const Error& error) {
  std::string text;
  for (const Problem& problem : error.problems())
    text += problem.where + ": " + problem.what + "\n";
  return text;
}

TEST(Rounding, runs_where_it_is_named_and_is_refused_where_the_processor_lacks_it) {
  for (const KernelSetInfo& set : rounding_kernel_sets()) {
    EXPECT_STRNE(Context().isa(), set.name);
    for (const KernelSetInfo& exact : kernel_sets()) EXPECT_STRNE(exact.name, set.name);
    try {
      EXPECT_STREQ(context_of(set).isa(), set.name);
      EXPECT_TRUE(set.is_supported);
    } catch (const OptionError& error) {
      EXPECT_FALSE(set.is_supported);
      EXPECT_NE(text_of(error).find("needs " + set.lacks.substr(0, set.lacks.find(' '))),
                std::string::npos)
          << text_of(error);
    }
  }
}

// The bound that rounding_kernel_sets() states, row by row, beside that of f32 (error_bound.h):
// 2.01 u for two roundings to bf16 and the first one, of the scaled query, to f32.
struct Bound {
  long double rounding = 0;  // of sum |w v|

  Bound(const Attention& call, const std::array<index_t, 3>& row) {
    constexpr long double u = 0x1p-8L;
    const auto [b, h, i] = row;
    const index_t g = h / (call.q.shape[1] / call.k.shape[1]);
    const long double scale = call.options.scale
                                  ? *call.options.scale
                                  : 1 / std::sqrt(static_cast<long double>(call.q.shape[3]));
    long double most = 0;
    for (index_t j = 0; j < call.k.shape[2]; ++j) {
      if (!naive_allowed(call, b, h, i, j)) continue;
      long double size = 0;
      for (index_t e = 0; e < call.q.shape[3]; ++e)
        size += std::fabs(scale * call.q(b, h, i, e) * call.k(b, g, j, e));
      most = std::max(most, 2.01L * u * size);
    }
    rounding = std::exp(2 * most) * (1 + u) * (1 + u);
  }
};

struct Found {
  index_t numbers = 0, beyond_f32 = 0;
};

void judge(const Attention& call, const Block& out, Found& found) {
  const Naive<long double> exact = naive_attention<long double>(call);
  for (index_t b = 0; b < out.shape[0]; ++b)
    for (index_t h = 0; h < out.shape[1]; ++h)
      for (index_t i = 0; i < out.shape[2]; ++i) {
        const Bound bound(call, {b, h, i});
        const RowBound f32 = error_bound<float>(call, exact, {b, h, i});
        for (index_t d = 0; d < out.shape[3]; ++d) {
          const auto at = static_cast<std::size_t>(d);
          const long double error = std::fabs(out(b, h, i, d) - exact.out_at(b, h, i, d));
          const long double least = 1e-30L;  // what counts as 0 for being subnormal
          EXPECT_LE(error,
                    (bound.rounding - 1) * f32.size[at] + bound.rounding * f32.out[at] + least)
              << b << " " << h << " " << i << " " << d;
          ++found.numbers;
          if (error > f32.out[at]) ++found.beyond_f32;
        }
      }
}

TEST(Rounding, errs_by_no_more_than_bf16_can) {
  for (const KernelSetInfo& set : rounding_kernel_sets()) {
    if (!set.is_supported) continue;  // runs_where_it_is_named says what it is then
    const Context context = context_of(set);
    Found found;
    for (std::uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
      CallDraw draw(seed + 50000);
      CallDraw::Shape shape;
      shape.kv_heads = draw.within(1, 2);
      shape.pairs = {draw.within(1, 2), shape.kv_heads * draw.within(1, 3), draw.within(1, 8),
                     draw.within(1, 200)};
      shape.d_k = draw.one_in(4) ? 64 : draw.within(1, 33);
      shape.d_v = draw.within(1, 40);
      Attention call = draw.call(shape, Kind::normal);
      const DType type = draw.one_in(2) ? DType::bf16 : DType::f32;
      SCOPED_TRACE(std::string(name(type)) + ", seed " + std::to_string(seed));
      const Stored q(call.q, type, call.q_layout), k(call.k, type, call.k_layout),
          v(call.v, type, call.v_layout);
      const auto& s = call.q.shape;
      Stored out(Block({s[0], s[1], s[2], call.v.shape[3]}, 77.0), DType::f32);
      attend(q.view(), k.view(), v.view(), out.mutable_view(), call.options, {}, context);
      call.q = q.block();
      call.k = k.block();
      call.v = v.block();
      judge(call, out.block(), found);
    }
    EXPECT_GT(found.beyond_f32, found.numbers / 4) << set.name << " does not round";
  }
}

TEST(Rounding, weights_add_up_to_one_by_the_rows_state) {
  for (const KernelSetInfo& set : rounding_kernel_sets()) {
    if (!set.is_supported) continue;
    const Context context = context_of(set);
    CallDraw draw(60000);
    CallDraw::Shape shape;
    shape.pairs = {1, 2, 40, 300};
    shape.kv_heads = 2;
    shape.d_k = 64;
    shape.d_v = 8;
    Attention call = draw.call(shape, Kind::normal);
    call.options = {};
    call.options.mask = Mask::causal();
    call.options.query_start = Align::end;
    const Stored q(call.q, DType::f32), k(call.k, DType::f32), v(call.v, DType::f32);
    Stored out(Block({1, 2, 40, 8}, 77.0), DType::f32);
    Tensor<float, 3> max({1, 2, 40}), sum({1, 2, 40});
    const RowState rows{max, sum, {}};
    attend(q.view(), k.view(), v.view(), out.mutable_view(), call.options, rows, context);
    Stored weights(Block({1, 2, 40, 300}, 77.0), DType::f32);
    attention_weights(q.view(), k.view(), rows, call.options, {0, 2, 0, 40}, weights.mutable_view(),
                      context);
    const Block w = weights.block();
    for (index_t h = 0; h < 2; ++h)
      for (index_t i = 0; i < 40; ++i) {
        double total = 0;
        for (index_t j = 0; j < 300; ++j) total += w(0, h, i, j);
        EXPECT_NEAR(total, 1, 1e-5) << set.name << " " << h << " " << i;  // 300 roundings and exp's
      }
  }
}

TEST(Rounding, has_no_gradients_and_says_who_has) {
  for (const KernelSetInfo& set : rounding_kernel_sets()) {
    if (!set.is_supported) continue;
    const Context context = context_of(set);
    const std::array<index_t, 4> shape{1, 1, 3, 4};
    for (const DType type : {DType::f32, DType::f64}) {
      const Stored x(Block(shape, 0.5), type);
      Stored dq(Block(shape, 0.0), type), dk(dq), dv(dq);
      const auto back = [&] {
        attend_backward(x.view(), x.view(), x.view(), x.view(),
                        {dq.mutable_view(), dk.mutable_view(), dv.mutable_view(), {}, {}}, {},
                        context);
      };
      if (type == DType::f64) {
        EXPECT_NO_THROW(back());  // nothing rounds in f64
        continue;
      }
      try {
        back();
        ADD_FAILURE() << "accepted";
      } catch (const OptionError& error) {
        EXPECT_NE(text_of(error).find("context: the kernel set \"" + std::string(set.name) +
                                      "\" has no gradients"),
                  std::string::npos)
            << text_of(error);
        EXPECT_NE(text_of(error).find("\"avx512\""), std::string::npos) << text_of(error);
      }
    }
  }
}

}  // namespace
}  // namespace glasshead::test
