// The fused and the readable path over random calls, shapes x masks x biases x options x types x
// strides. Every number is within what rounding can do at worst (error_bound.h). That bound is
// wide: roundings mostly cancel. How well is measured beside plain three-pass attention in the
// compute type, over all rows together: in a single row plain attention's own roundings may cancel
// by luck, and how often they do is measured too, by a second plain attention that sums in another
// order.
#include "accuracy_tally.h"
#include "error_bound.h"
#include "random_calls.h"

namespace glasshead::test {
namespace {

CallDraw::Shape short_shape(CallDraw& draw) {
  const index_t groups[] = {1, 1, 2, 3, 4, 8};
  CallDraw::Shape shape;
  shape.kv_heads = draw.within(1, 2);
  const index_t group = groups[draw.below(6)];
  const index_t kv_lens[] = {draw.within(1, 9), draw.within(10, 60), draw.within(10, 60),
                             draw.within(120, 140), draw.within(100, 200)};
  shape.pairs = {draw.within(1, 2), shape.kv_heads * group,
                 draw.one_in(6) ? draw.within(1, 40) : draw.within(1, 6), kv_lens[draw.below(5)]};
  shape.d_k = draw.one_in(6) ? 64 : draw.within(1, 33);
  shape.d_v = draw.within(16, 40);
  return shape;
}

struct Tallies {
  Tally fused, readable, other_plain;
};

template <class T>
class Judge {
 public:
  Judge(const Attention& stored, const Block& fused, const Block& readable, const Block& weights)
      : call_(stored),
        fused_(fused),
        readable_(readable),
        weights_(weights),
        exact_(naive_attention<long double>(stored)),
        plain_(naive_attention<T>(stored)),
        other_(naive_attention<T>(stored, Form::query_scaled)) {}

  Tallies judge() const {
    Tallies tallies;
    for (index_t b = 0; b < fused_.shape[0]; ++b)
      for (index_t h = 0; h < fused_.shape[1]; ++h)
        for (index_t i = 0; i < fused_.shape[2]; ++i) judge_row({b, h, i}, tallies);
    return tallies;
  }

 private:
  void judge_row(const std::array<index_t, 3>& row, Tallies& tallies) const {
    const auto [b, h, i] = row;
    const RowBound bound = error_bound<T>(call_, exact_, row);
    long double fused = 0, readable = 0, plain = 0, other = 0, size = 0;
    const auto squared = [](long double x) { return x * x; };
    for (index_t d = 0; d < fused_.shape[3]; ++d) {
      const auto at = static_cast<std::size_t>(d);
      const long double exact = exact_.out_at(b, h, i, d);
      EXPECT_LE(std::fabs(fused_(b, h, i, d) - exact), bound.out[at])
          << "fused, " << b << " " << h << " " << i << " " << d;
      EXPECT_LE(std::fabs(readable_(b, h, i, d) - exact), bound.out[at])
          << "readable, " << b << " " << h << " " << i << " " << d;
      fused += squared(fused_(b, h, i, d) - exact);
      readable += squared(readable_(b, h, i, d) - exact);
      plain += squared(plain_.out_at(b, h, i, d) - exact);
      other += squared(other_.out_at(b, h, i, d) - exact);
      size += squared(bound.size[at]);
    }
    for (index_t j = 0; j < exact_.kv_len; ++j) {
      const std::size_t n = weights_.index(b, h, i, j);
      EXPECT_LE(std::fabs(weights_.x[n] - exact_.weights[n]),
                bound.weights[static_cast<std::size_t>(j)])
          << "weight, " << b << " " << h << " " << i << " " << j;
    }
    constexpr long double u = std::numeric_limits<T>::epsilon() / 2;
    const long double unit = u * std::sqrt(size);
    if (std::sqrt(size) < std::numeric_limits<T>::min()) return;  // no keys, or nothing to round
    tallies.fused.add(std::sqrt(fused), std::sqrt(plain), unit);
    tallies.readable.add(std::sqrt(readable), std::sqrt(plain), unit);
    tallies.other_plain.add(std::sqrt(other), std::sqrt(plain), unit);
  }

  const Attention& call_;
  const Block &fused_, &readable_, &weights_;
  Naive<long double> exact_;
  Naive<T> plain_, other_;
};

template <class T>
Tallies judge(const Attention& call, DType type) {
  const Stored q(call.q, type, call.q_layout), k(call.k, type, call.k_layout),
      v(call.v, type, call.v_layout);
  Attention stored = call;
  stored.q = q.block();
  stored.k = k.block();
  stored.v = v.block();
  const auto& s = call.q.shape;
  const Block garbage({s[0], s[1], s[2], call.v.shape[3]}, 77.0);
  Stored out(garbage, dtype_of<T>()), slow(garbage, dtype_of<T>());
  attend(q.view(), k.view(), v.view(), out.mutable_view(), call.options);
  attend_transparent(q.view(), k.view(), v.view(), slow.mutable_view(), call.options);
  Stored weights(Block({s[0], s[1], s[2], call.k.shape[2]}, 77.0), dtype_of<T>());
  attention_weights(q.view(), k.view(), call.options, {0, s[1], 0, s[2]}, weights.mutable_view());
  return Judge<T>(stored, out.block(), slow.block(), weights.block()).judge();
}

TEST(Fused, is_as_accurate_as_plain_attention_over_thousands_of_random_calls) {
  const DType types[] = {DType::f64, DType::f32, DType::bf16, DType::f16};
  Tallies of_type[4], all;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    CallDraw draw(seed);
    const CallDraw::Shape shape = short_shape(draw);
    const Attention call = draw.call(shape, draw.one_in(8)   ? Kind::whole
                                            : draw.one_in(8) ? Kind::large
                                                             : Kind::normal);
    const DType type = draw.type();
    SCOPED_TRACE(std::string(name(type)) + ", seed " + std::to_string(seed));
    const Tallies tallies =
        type == DType::f64 ? judge<double>(call, type) : judge<float>(call, type);
    const auto n = std::find(std::begin(types), std::end(types), type) - std::begin(types);
    for (Tallies* sum : {&of_type[n], &all}) {
      sum->fused.add(tallies.fused);
      sum->readable.add(tallies.readable);
      sum->other_plain.add(tallies.other_plain);
    }
  }
  EXPECT_GT(all.fused.rows, 40000);

  // Nearer to the exact rows than plain attention, in the mean for each type (0.89 to 0.98 of its
  // error), in that over all (0.92; 0.91 to 0.94 with other seeds, 0.99 with an exp that errs
  // by 3.7 ulp) and in more rows than not (0.61). The readable path rounds products and sums apart,
  // as plain attention does that scales the query first, which costs bf16 a rounding: its products
  // need none in float.
  EXPECT_LT(all.fused.ratio(), 0.96);
  for (std::size_t n = 0; n < 4; ++n) {
    EXPECT_LT(of_type[n].fused.ratio(), 1) << name(types[n]);
    EXPECT_LT(of_type[n].readable.ratio(), of_type[n].other_plain.ratio()) << name(types[n]);
  }
  EXPECT_GT(2 * all.fused.below, all.fused.rows);

  // Never more than twice its error, and 4 u sum |w v|, but where plain attention is lucky: which
  // it is as often when it is compared with itself in another order (0.6 % of rows; fused 0.5 %).
  EXPECT_LE(all.fused.above_twice, all.other_plain.above_twice);
  EXPECT_LE(all.readable.above_twice, all.other_plain.above_twice);
}

}  // namespace
}  // namespace glasshead::test
