// What core's tests share: small tensors written as numbers, stored in any type and layout, one
// call run every way that must agree, and expectations with the tolerances of the list of faults.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "glasshead/attention.h"

namespace glasshead::test {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kFloatMin =
    -3.4028234663852886e38;  // finfo(f32).min, written -3.4028235e38

// Numbers in row-major order, before they are stored in some type.
struct Block {
  std::array<index_t, 4> shape{};
  std::vector<double> x;

  Block() = default;
  Block(const std::array<index_t, 4>& extents, std::vector<double> numbers)
      : shape(extents), x(std::move(numbers)) {}
  Block(const std::array<index_t, 4>& extents, double fill)
      : shape(extents),
        x(static_cast<std::size_t>(extents[0] * extents[1] * extents[2] * extents[3]), fill) {}

  std::size_t index(index_t a, index_t b, index_t c, index_t d) const {
    return static_cast<std::size_t>(((a * shape[1] + b) * shape[2] + c) * shape[3] + d);
  }
  double& operator()(index_t a, index_t b, index_t c, index_t d) { return x[index(a, b, c, d)]; }
  double operator()(index_t a, index_t b, index_t c, index_t d) const {
    return x[index(a, b, c, d)];
  }
};

// How a block lies in memory: axes from the slowest to the fastest, elements `gap` apart (what lies
// between is NaN), one axis possibly backwards.
struct Layout {
  std::array<int, 4> order{0, 1, 2, 3};
  index_t gap = 1;
  int backwards = -1;
};

class Stored {
 public:
  Stored(const Block& block, DType type, const Layout& layout = {})
      : type_(type), shape_(block.shape) {
    index_t step = layout.gap;
    for (std::size_t n = 4; n-- > 0;) {
      const auto axis = static_cast<std::size_t>(layout.order[n]);
      strides_[axis] = step;
      step *= shape_[axis];
    }
    memory_.resize((static_cast<std::size_t>(step) * size_of(type) + 7) / 8 + 1);
    for (index_t n = 0; n < step; ++n) store_element(memory_.data(), type, n, kNan);
    if (layout.backwards >= 0) {
      const auto axis = static_cast<std::size_t>(layout.backwards);
      if (shape_[axis] > 0) first_ = (shape_[axis] - 1) * strides_[axis];
      strides_[axis] = -strides_[axis];
    }
    const MutableTensor<4> target = mutable_view();
    std::size_t n = 0;
    for_each([&](const std::array<index_t, 4>& at) { target.store_at(at, block.x[n++]); });
  }

  ConstTensor<4> view() const { return const_cast<Stored*>(this)->mutable_view(); }
  MutableTensor<4> mutable_view() {
    auto* base = reinterpret_cast<unsigned char*>(memory_.data());
    return {base + static_cast<std::size_t>(first_) * size_of(type_), type_, shape_, strides_};
  }
  // The stored numbers, widened: what the library really gets.
  Block block() const {
    Block result{shape_, std::vector<double>{}};
    for_each([&](const std::array<index_t, 4>& at) { result.x.push_back(view().load_at(at)); });
    return result;
  }

 private:
  template <class F>
  void for_each(const F& f) const {
    for (index_t a = 0; a < shape_[0]; ++a)
      for (index_t b = 0; b < shape_[1]; ++b)
        for (index_t c = 0; c < shape_[2]; ++c)
          for (index_t d = 0; d < shape_[3]; ++d) f({a, b, c, d});
  }

  DType type_;
  std::array<index_t, 4> shape_;
  std::array<index_t, 4> strides_{};
  index_t first_ = 0;
  std::vector<double> memory_;  // for its alignment
};

inline bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

// A mask or bias tensor that keeps its own memory.
inline Broadcast broadcast_of(const std::vector<index_t>& shape, const std::vector<double>& numbers,
                              DType type) {
  auto memory = std::make_shared<std::vector<double>>(numbers.size() + 1);
  for (std::size_t n = 0; n < numbers.size(); ++n)
    store_element(memory->data(), type, static_cast<index_t>(n), numbers[n]);
  Broadcast result;
  result.data = memory->data();
  result.dtype = type;
  result.rank = static_cast<int>(shape.size());
  index_t step = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    result.shape[axis] = shape[axis];
    result.strides[axis] = step;
    step *= shape[axis];
  }
  result.owner = memory;
  return result;
}
inline Mask mask_of(const std::vector<index_t>& shape, const std::vector<double>& numbers) {
  return Mask::allowed(broadcast_of(shape, numbers, DType::u8));
}
inline Bias bias_of(const std::vector<index_t>& shape, const std::vector<double>& numbers,
                    DType type = DType::f32) {
  return Bias::dense(broadcast_of(shape, numbers, type));
}

// One call, before its numbers are stored.
struct Attention {
  Block q, k, v;
  AttentionOptions options;
  Layout q_layout{}, k_layout{}, v_layout{};
};

struct Result {
  DType type = DType::f64;  // of q, k, v
  Block out, weights;       // weights [batch, heads, q_len, kv_len]
  Block max, sum, lse;      // [batch, heads, q_len, 1]
  Block v;                  // as stored
};

// The call in `type`: with and without row states, into the compute type and into `type` itself.
// The answers must agree to the bit. Everything is written over garbage.
inline Result run(const Attention& call, DType type) {
  const Stored q(call.q, type, call.q_layout), k(call.k, type, call.k_layout),
      v(call.v, type, call.v_layout);
  const DType wide = type == DType::f64 ? DType::f64 : DType::f32;
  const auto& s = call.q.shape;
  const std::array<index_t, 4> shape{s[0], s[1], s[2], call.v.shape[3]};
  const Block garbage(shape, 77.0);
  Stored out(garbage, wide), again(garbage, wide), narrow(garbage, type);
  const Block rows({s[0], s[1], s[2], 1}, 77.0);
  Stored max(rows, wide), sum(rows, wide), lse(rows, wide);
  const auto state = [](Stored& stored) {
    const MutableTensor<4> t = stored.mutable_view();
    return MutableTensor<3>(t.data, t.dtype, {t.shape[0], t.shape[1], t.shape[2]},
                            {t.strides[0], t.strides[1], t.strides[2]});
  };
  attend(q.view(), k.view(), v.view(), out.mutable_view(), call.options,
         {state(max), state(sum), state(lse)});
  attend(q.view(), k.view(), v.view(), again.mutable_view(), call.options);
  attend(q.view(), k.view(), v.view(), narrow.mutable_view(), call.options);
  EXPECT_TRUE(same_bits(out.block().x, again.block().x)) << "asking for lse changed out";
  EXPECT_TRUE(same_bits(Stored(out.block(), type).block().x, narrow.block().x))
      << "out is not rounded once to its type";
  Stored weights(Block({s[0], s[1], s[2], call.k.shape[2]}, 77.0), wide);
  attention_weights(q.view(), k.view(), call.options, {0, s[1], 0, s[2]}, weights.mutable_view());
  return {type, out.block(), weights.block(), max.block(), sum.block(), lse.block(), v.block()};
}

// f(result) for each type: f64 and f32 unless said.
inline void for_types(const Attention& call, const std::vector<DType>& types,
                      const std::function<void(const Result&)>& f) {
  for (const DType type : types) {
    SCOPED_TRACE(name(type));
    f(run(call, type));
  }
}
inline void for_types(const Attention& call, const std::function<void(const Result&)>& f) {
  for_types(call, {DType::f64, DType::f32}, f);
}
inline const std::vector<DType> kAllTypes{DType::f64, DType::f32, DType::bf16, DType::f16};

// Largest |v| that a row sees: its hidden and its vanishing keys don't count.
inline double largest_seen(const Result& r, index_t b, index_t h, index_t i) {
  double largest = 0;
  const index_t group = r.out.shape[1] / r.v.shape[1];
  for (index_t j = 0; j < r.weights.shape[3]; ++j) {
    if (!(r.weights(b, h, i, j) > 0)) continue;
    for (index_t d = 0; d < r.v.shape[3]; ++d)
      largest = std::max(largest, std::fabs(r.v(b, h / group, j, d)));
  }
  return largest;
}

// Printed digits: ten decimals in f64; f32 agrees to 5e-6 of the largest |v| that the row sees.
inline void expect_row(const Result& r, index_t b, index_t h, index_t i,
                       const std::vector<double>& values, index_t from = 0) {
  const double largest = largest_seen(r, b, h, i);
  const double tolerance = r.type == DType::f64 ? 6e-11 + 1e-15 * largest : 5e-6 * largest;
  for (std::size_t n = 0; n < values.size(); ++n) {
    EXPECT_NEAR(r.out(b, h, i, from + static_cast<index_t>(n)), values[n], tolerance)
        << "out[" << b << "," << h << "," << i << "," << from + static_cast<index_t>(n) << "]";
  }
}
// lse: ten decimals in f64, 1e-6 relative in f32.
inline void expect_lse(const Result& r, index_t b, index_t h, index_t i, double value) {
  const double size = std::max(1.0, std::fabs(value));
  EXPECT_NEAR(r.lse(b, h, i, 0), value, r.type == DType::f64 ? 6e-11 + 1e-15 * size : 1e-6 * size)
      << "lse[" << b << "," << h << "," << i << "]";
}
inline void expect_weights(const Result& r, index_t b, index_t h, index_t i,
                           const std::vector<double>& values) {
  for (std::size_t j = 0; j < values.size(); ++j)
    EXPECT_NEAR(r.weights(b, h, i, static_cast<index_t>(j)), values[j],
                r.type == DType::f64 ? 6e-11 : 5e-6)
        << "weights[" << b << "," << h << "," << i << "," << j << "]";
}
// Out 0 (not -0), weights 0, lse -inf.
inline void expect_empty(const Result& r, index_t b, index_t h, index_t i) {
  for (index_t d = 0; d < r.out.shape[3]; ++d) {
    EXPECT_EQ(r.out(b, h, i, d), 0.0);
    EXPECT_FALSE(std::signbit(r.out(b, h, i, d)));
  }
  for (index_t j = 0; j < r.weights.shape[3]; ++j) EXPECT_EQ(r.weights(b, h, i, j), 0.0);
  EXPECT_EQ(r.lse(b, h, i, 0), -kInf);
  EXPECT_EQ(r.max(b, h, i, 0), -kInf);
  EXPECT_EQ(r.sum(b, h, i, 0), 0.0);
}
// Two results are the same bits in everything.
inline void expect_same_bits(const Result& a, const Result& b) {
  EXPECT_TRUE(same_bits(a.out.x, b.out.x)) << "out";
  EXPECT_TRUE(same_bits(a.weights.x, b.weights.x)) << "weights";
  EXPECT_TRUE(same_bits(a.lse.x, b.lse.x)) << "lse";
}

struct GradientBlocks {
  Block dq, dk, dv;
};
inline GradientBlocks run_backward(const Attention& call, const Block& d_out, DType type,
                                   const Layout& d_out_layout = {}) {
  const Stored q(call.q, type, call.q_layout), k(call.k, type, call.k_layout),
      v(call.v, type, call.v_layout), d(d_out, type, d_out_layout);
  Stored dq(Block(call.q.shape, 77.0), DType::f64), dk(Block(call.k.shape, 77.0), DType::f64),
      dv(Block(call.v.shape, 77.0), DType::f64);
  attend_backward(d.view(), q.view(), k.view(), v.view(),
                  {dq.mutable_view(), dk.mutable_view(), dv.mutable_view()}, call.options);
  return {dq.block(), dk.block(), dv.block()};
}

// The inputs of the list of faults.
inline Block g(const std::array<index_t, 4>& shape, index_t s) {
  Block block(shape, 0.0);
  for (std::size_t t = 0; t < block.x.size(); ++t)
    block.x[t] = static_cast<double>((37 * static_cast<index_t>(t) + 11 * s) % 61 - 30) / 16.0;
  return block;
}
inline Attention three_g(const std::array<index_t, 4>& shape) {
  return {g(shape, 1), g(shape, 2), g(shape, 3), {}};
}
inline Attention small() {
  return {Block({1, 1, 2, 2}, {1, 0, 0, 1}),
          Block({1, 1, 3, 2}, {1, 0, 0, 1, 1, 1}),
          Block({1, 1, 3, 2}, {1, 10, 2, 20, 3, 30}),
          {}};
}
inline Attention probe(index_t n, index_t m) {
  Attention call{Block({1, 1, n, 1}, 0.0), Block({1, 1, m, 1}, 0.0), Block({1, 1, m, 1}, 0.0), {}};
  for (index_t j = 0; j < m; ++j) call.v(0, 0, j, 0) = std::ldexp(1.0, static_cast<int>(j));
  return call;
}

// Whether `check` names this argument, with this text somewhere in what it says.
inline bool says(const std::vector<Problem>& problems, const std::string& where,
                 const std::string& text) {
  for (const Problem& problem : problems) {
    if (problem.where == where && problem.what.find(text) != std::string::npos) return true;
  }
  return false;
}
inline std::vector<Problem> problems_of(const Attention& call, DType type = DType::f64) {
  const Stored q(call.q, type), k(call.k, type), v(call.v, type);
  return check(q.view(), k.view(), v.view(), call.options);
}

}  // namespace glasshead::test
