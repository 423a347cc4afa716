// The fused and the readable path over random calls, shapes x masks x biases x options x types x
// strides: both as near to the exact result as plain three-pass attention in the compute type.
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

// How far results are from the exact ones, in the rms over a row; in all rows together too.
struct Errors {
  index_t rows = 0, below_plain = 0, calls = 0, calls_above = 0;
  long double sum = 0, plain_sum = 0;  // of the errors in units of u sum |w v|
};

template <class T>
class Judge {
 public:
  explicit Judge(const Attention& stored)
      : call_(stored),
        exact_(naive_attention<long double>(stored)),
        plain_(naive_attention<T>(stored)) {}

  // At most twice the error of plain attention, and 4 u sum |w v| more: as it stands over the
  // call's rows together, each by its own u sum |w v|. In a single row the one rounding of a large
  // score may by luck spare plain attention: there such roundings count, of scores as large as
  // their terms.
  void expect_accurate(const Block& out, const char* path, Errors& errors) const {
    constexpr long double kUnit = std::numeric_limits<T>::epsilon() / 2;
    // Where sums are subnormal numbers each rounding is as large as the smallest of them.
    const long double kSmallest = 4 * std::numeric_limits<T>::denorm_min() *
                                  std::sqrt(static_cast<long double>(out.shape[3]));
    long double error = 0, plain = 0, rows = 0;
    for (index_t b = 0; b < out.shape[0]; ++b)
      for (index_t h = 0; h < out.shape[1]; ++h)
        for (index_t i = 0; i < out.shape[2]; ++i) {
          const Row row = measure(out, {b, h, i});
          EXPECT_LE(row.error,
                    2 * row.plain_error + (4 + 4 * row.score) * kUnit * row.size + kSmallest)
              << path << ", row " << b << " " << h << " " << i;
          if (row.size == 0) continue;
          ++errors.rows;
          error += square(row.error / row.size);
          plain += square(row.plain_error / row.size);
          ++rows;
          if (row.error <= row.plain_error) ++errors.below_plain;
          errors.sum += row.error / (kUnit * row.size);
          errors.plain_sum += row.plain_error / (kUnit * row.size);
        }
    if (rows < 8) return;
    ++errors.calls;
    if (std::sqrt(error / rows) > 2 * std::sqrt(plain / rows) + 4 * kUnit) ++errors.calls_above;
  }

  // A weight moves with its score, whose error is some roundings of the largest sum of its terms'
  // sizes; beside it as many roundings as above.
  void expect_weights(const Block& weights) const {
    constexpr long double kUnit = std::numeric_limits<T>::epsilon() / 2;
    for (index_t b = 0; b < weights.shape[0]; ++b)
      for (index_t h = 0; h < weights.shape[1]; ++h)
        for (index_t i = 0; i < weights.shape[2]; ++i) {
          long double error = 0, plain = 0, size = 0, score = 0;
          for (index_t j = 0; j < weights.shape[3]; ++j) {
            const std::size_t n = weights.index(b, h, i, j);
            if (exact_.weights[n] == 0) {
              EXPECT_EQ(weights.x[n], 0.0);
              continue;
            }
            error += square(weights.x[n] - exact_.weights[n]);
            plain += square(plain_.weights[n] - exact_.weights[n]);
            size += square(exact_.weights[n]);
            score = std::max(score, score_size(b, h, i, j));
          }
          EXPECT_LE(std::sqrt(error),
                    2 * std::sqrt(plain) + (4 + 4 * score) * kUnit * std::sqrt(size))
              << "weights, row " << b << " " << h << " " << i;
        }
  }

 private:
  struct Row {
    long double error = 0, plain_error = 0, size = 0;
    long double score = 0;  // the largest sum of a visible score's terms' sizes
  };
  static long double square(long double x) { return x * x; }

  Row measure(const Block& out, const std::array<index_t, 3>& at) const {
    const auto [b, h, i] = at;
    const std::vector<long double> sizes = sizes_of(b, h, i);
    Row row;
    for (index_t d = 0; d < out.shape[3]; ++d) {
      const long double exact = exact_.out_at(b, h, i, d);
      row.error += square(out(b, h, i, d) - exact);
      row.plain_error += square(plain_.out_at(b, h, i, d) - exact);
      row.size += square(sizes[static_cast<std::size_t>(d)]);
    }
    for (index_t j = 0; j < exact_.kv_len; ++j)
      if (naive_allowed(call_, b, h, i, j)) row.score = std::max(row.score, score_size(b, h, i, j));
    return {std::sqrt(row.error), std::sqrt(row.plain_error), std::sqrt(row.size), row.score};
  }

  long double score_size(index_t b, index_t h, index_t i, index_t j) const {
    const index_t g = h / (call_.q.shape[1] / call_.k.shape[1]);
    long double size = 0;
    for (index_t d = 0; d < call_.q.shape[3]; ++d)
      size += std::fabs(call_.q(b, h, i, d) * call_.k(b, g, j, d));
    const double scale = call_.options.scale ? *call_.options.scale
                                             : 1 / std::sqrt(static_cast<double>(call_.q.shape[3]));
    return size * std::fabs(scale) + std::fabs(naive_bias<long double>(call_, b, h, i, j));
  }

  // sum_j |w_j v_jd| for each d, after dropout.
  std::vector<long double> sizes_of(index_t b, index_t h, index_t i) const {
    const Dropout& dropout = call_.options.dropout;
    const index_t g = h / (call_.q.shape[1] / call_.k.shape[1]);
    std::vector<long double> sizes(static_cast<std::size_t>(call_.v.shape[3]));
    for (index_t j = 0; j < exact_.kv_len; ++j) {
      const long double w =
          exact_.weights[exact_.row(b, h, i) * static_cast<std::size_t>(exact_.kv_len) +
                         static_cast<std::size_t>(j)];
      if (w == 0 || (dropout.p > 0 && dropped(dropout.seed, {b, h, i, j}, dropout.p))) continue;
      for (std::size_t d = 0; d < sizes.size(); ++d)
        sizes[d] += w / (1 - dropout.p) * std::fabs(call_.v(b, g, j, static_cast<index_t>(d)));
    }
    return sizes;
  }

  const Attention& call_;
  Naive<long double> exact_;
  Naive<T> plain_;
};

template <class T>
void judge(const Attention& call, DType type, Errors& fused, Errors& readable) {
  const Stored q(call.q, type, call.q_layout), k(call.k, type, call.k_layout),
      v(call.v, type, call.v_layout);
  Attention stored = call;
  stored.q = q.block();
  stored.k = k.block();
  stored.v = v.block();
  const Judge<T> judge(stored);
  const auto& s = call.q.shape;
  const Block garbage({s[0], s[1], s[2], call.v.shape[3]}, 77.0);
  Stored out(garbage, dtype_of<T>()), slow(garbage, dtype_of<T>());
  attend(q.view(), k.view(), v.view(), out.mutable_view(), call.options);
  judge.expect_accurate(out.block(), "fused", fused);
  attend_transparent(q.view(), k.view(), v.view(), slow.mutable_view(), call.options);
  judge.expect_accurate(slow.block(), "readable", readable);
  Stored weights(Block({s[0], s[1], s[2], call.k.shape[2]}, 77.0), dtype_of<T>());
  attention_weights(q.view(), k.view(), call.options, {0, s[1], 0, s[2]}, weights.mutable_view());
  judge.expect_weights(weights.block());
}

TEST(Fused, is_as_accurate_as_plain_attention_over_thousands_of_random_calls) {
  Errors fused, readable;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    CallDraw draw(seed);
    const CallDraw::Shape shape = short_shape(draw);
    const Attention call = draw.call(shape, draw.one_in(8)   ? Kind::whole
                                            : draw.one_in(8) ? Kind::large
                                                             : Kind::normal);
    const DType type = draw.type();
    SCOPED_TRACE(std::string(name(type)) + ", seed " + std::to_string(seed));
    if (type == DType::f64)
      judge<double>(call, type, fused, readable);
    else
      judge<float>(call, type, fused, readable);
  }
  EXPECT_GT(fused.rows, 20000);
  // By luck a call may be above, as one with few different rows.
  EXPECT_LE(100 * fused.calls_above, fused.calls);
  EXPECT_LE(100 * readable.calls_above, readable.calls);
  // Typically below: in the mean, and in more rows than not.
  EXPECT_LT(fused.sum, fused.plain_sum);
  EXPECT_GT(2 * fused.below_plain, fused.rows);
}

}  // namespace
}  // namespace glasshead::test
