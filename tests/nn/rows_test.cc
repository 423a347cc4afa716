// Norms, rotations and activations over rows of f32: near the f64 functions of one vector, and the
// same bits for a row alone or among others, with any threads and every instruction set.
#include "nn/rows.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "glasshead/context.h"
#include "nn/norm.h"

namespace glasshead::nn {
namespace {

using Row = std::vector<float>;

// Numbers in (-4, 4) that differ: a linear congruential generator's.
Row numbers(index_t count, std::uint32_t seed) {
  Row x(static_cast<std::size_t>(count));
  for (float& value : x) {
    seed = seed * 1664525U + 1013904223U;
    value = static_cast<float>(seed >> 8) * 0x1p-21F - 4.0F;
  }
  return x;
}

Context context_of(const std::string& isa, int threads) {
  ContextOptions options;
  options.isa = isa;
  options.threads = threads;
  return Context(options);
}

// Whether f(rows of x [rows, n], context) gives each row the bits that it has alone.
using Rows = std::function<void(const View<float, 2>&, const Context&)>;
void expect_rows_of_their_own(index_t rows, index_t n, const Rows& f) {
  const Row x = numbers(rows * n, 7);
  Row expected = x;
  const Context scalar = context_of("scalar", 1);
  for (index_t r = 0; r < rows; ++r) f({expected.data() + r * n, {1, n}}, scalar);
  for (const KernelSetInfo& set : kernel_sets()) {
    if (!set.is_supported) continue;
    for (const int threads : {1, 2, 3}) {
      Row got = x;
      f({got.data(), {rows, n}}, context_of(set.name, threads));
      EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0)
          << set.name << ", threads " << threads;
    }
    const Context context = context_of(set.name, 2);  // rows that lie apart, and turned
    Row apart(static_cast<std::size_t>(rows * (n + 3))), turned(x.size());
    for (index_t r = 0; r < rows; ++r)
      for (index_t i = 0; i < n; ++i) {
        const float value = x[static_cast<std::size_t>(r * n + i)];
        apart[static_cast<std::size_t>(r * (n + 3) + i)] = value;
        turned[static_cast<std::size_t>(i * rows + r)] = value;
      }
    f({apart.data(), {rows, n}, {n + 3, 1}}, context);
    f({turned.data(), {rows, n}, {1, rows}}, context);
    for (index_t r = 0; r < rows; ++r)
      for (index_t i = 0; i < n; ++i) {
        const float wanted = expected[static_cast<std::size_t>(r * n + i)];
        ASSERT_EQ(apart[static_cast<std::size_t>(r * (n + 3) + i)], wanted) << set.name;
        ASSERT_EQ(turned[static_cast<std::size_t>(i * rows + r)], wanted) << set.name;
      }
  }
}

std::vector<double> wide(const Row& x) { return {x.begin(), x.end()}; }

// Sums in another order than norm.h's differ in f64's last places: at most one float apart.
void expect_rounded(const Row& got, const std::vector<double>& exact) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto nearest = static_cast<float>(exact[i]);
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    EXPECT_GE(got[i], std::nextafter(nearest, -kInfinity));
    EXPECT_LE(got[i], std::nextafter(nearest, kInfinity));
  }
}

TEST(NormRows, are_the_f64_norms_rounded_once) {
  for (const index_t n : {1, 2, 15, 16, 17, 100, 576}) {
    const Row x = numbers(n, 1), gain = numbers(n, 2), bias = numbers(n, 3);
    Row y(x.size());
    std::vector<double> exact(x.size());
    const View<const float, 2> from{x.data(), {1, n}};
    const View<float, 2> to{y.data(), {1, n}};
    layer_norm_rows(from, gain, bias, 1e-5, to, default_context());
    layer_norm(wide(x), wide(gain), wide(bias), 1e-5, exact);
    expect_rounded(y, exact);
    layer_norm_rows(from, {}, {}, 1e-2, to, default_context());
    layer_norm(wide(x), {}, {}, 1e-2, exact);
    expect_rounded(y, exact);
    rms_norm_rows(from, gain, 1e-6, to, default_context());
    rms_norm(wide(x), wide(gain), 1e-6, exact);
    expect_rounded(y, exact);
    rms_norm_rows(from, {}, 1e-6, to, default_context());
    rms_norm(wide(x), {}, 1e-6, exact);
    expect_rounded(y, exact);
  }
}

// Squares of 1e30 and of 1e-30 have no place in f32.
TEST(NormRows, of_very_large_and_very_small_numbers_are_right) {
  for (const float size : {1e30F, 1e-30F}) {
    const Row x{size, -size, size, -size};
    Row y(4);
    rms_norm_rows({x.data(), {1, 4}}, {}, 0, {y.data(), {1, 4}}, default_context());
    EXPECT_EQ(y, (Row{1, -1, 1, -1}));
    layer_norm_rows({x.data(), {1, 4}}, {}, {}, 0, {y.data(), {1, 4}}, default_context());
    EXPECT_EQ(y, (Row{1, -1, 1, -1}));
  }
}

TEST(NormRows, give_a_row_the_same_bits_wherever_it_stands) {
  const Row gain = numbers(83, 4), bias = numbers(83, 5);
  expect_rows_of_their_own(40, 83, [&](const View<float, 2>& x, const Context& context) {
    layer_norm_rows(x, gain, bias, 1e-5, x, context);
  });
  expect_rows_of_their_own(40, 83, [&](const View<float, 2>& x, const Context& context) {
    rms_norm_rows(x, gain, 1e-5, x, context);
  });
}

TEST(NormRows, of_nan_are_nan_in_that_row_alone) {
  Row x = numbers(3 * 20, 6);
  x[25] = std::numeric_limits<float>::quiet_NaN();
  rms_norm_rows({x.data(), {3, 20}}, {}, 1e-5, {x.data(), {3, 20}}, default_context());
  for (std::size_t n = 0; n < x.size(); ++n) EXPECT_EQ(std::isnan(x[n]), n / 20 == 1) << n;
}

TEST(RotateRows, turns_each_head_as_the_f64_function_does) {
  constexpr index_t kRows = 3, kHeads = 2, kSize = 10;
  for (const RopePairing pairing : {RopePairing::halves, RopePairing::adjacent}) {
    for (const Rope& rope : {Rope{.pairing = pairing}, Rope{.pairing = pairing, .rotary = 6},
                             Rope{.pairing = pairing, .rotary = 4, .span = 8}}) {
      const Row x = numbers(kRows * kHeads * kSize, 8);
      Row got = x;
      const index_t pairs = resolved(rope, kSize).rotary / 2;
      Row cos, sin;
      for (index_t r = 0; r < kRows; ++r) {
        const RopeTable table = rope_table(rope, kSize, static_cast<double>(100 * r + 1));
        cos.insert(cos.end(), table.cos.begin(), table.cos.end());
        sin.insert(sin.end(), table.sin.begin(), table.sin.end());
      }
      rotate_rows({got.data(), {kRows, kHeads, kSize}}, {cos.data(), {kRows, pairs}},
                  {sin.data(), {kRows, pairs}}, rope, default_context());
      for (index_t r = 0; r < kRows; ++r)
        for (index_t h = 0; h < kHeads; ++h) {
          const auto first = static_cast<std::size_t>((r * kHeads + h) * kSize);
          std::vector<double> head(x.begin() + static_cast<std::ptrdiff_t>(first),
                                   x.begin() + static_cast<std::ptrdiff_t>(first) + kSize);
          const auto table = [&](const Row& all) {
            return std::vector<double>(all.begin() + r * pairs, all.begin() + (r + 1) * pairs);
          };
          rotate(head, table(cos), table(sin), rope);
          for (std::size_t i = 0; i < head.size(); ++i)
            EXPECT_EQ(got[first + i], static_cast<float>(head[i]));
        }
    }
  }
}

TEST(RotateRows, gives_a_row_the_same_bits_wherever_it_stands) {
  const Row angles = numbers(8, 9);
  expect_rows_of_their_own(30, 48, [&](const View<float, 2>& x, const Context& context) {
    const View<float, 3> heads{
        x.data, {x.shape[0], 3, 16}, {x.strides[0], 16 * x.strides[1], x.strides[1]}};
    const View<const float, 2> table{angles.data(), {x.shape[0], 8}, {0, 1}};
    rotate_rows(heads, table, table, Rope{}, context);
  });
}

constexpr Activation kActivations[] = {
    Activation::none, Activation::relu,       Activation::gelu, Activation::gelu_tanh,
    Activation::silu, Activation::quick_gelu, Activation::tanh};

// The bounds of rows.h; the f64 gelu and gelu_tanh themselves err by some 1e-16 times x.
TEST(ActivateRows, is_near_the_f64_activation) {
  for (const Activation activation : kActivations) {
    const Row x = numbers(4000, 10);
    Row y = x;
    activate_rows({y.data(), {4, 1000}}, activation, default_context());
    for (std::size_t n = 0; n < x.size(); ++n) {
      const double exact = activate(activation, static_cast<double>(x[n]));
      const double ulp = std::ldexp(1.0, std::ilogb(exact == 0 ? 1e-30 : exact) - 23);
      EXPECT_NEAR(static_cast<double>(y[n]), exact, 6 * ulp + 1e-15) << name(activation);
    }
  }
}

TEST(ActivateRows, gives_a_row_the_same_bits_wherever_it_stands) {
  for (const Activation activation : kActivations)
    expect_rows_of_their_own(21, 37, [&](const View<float, 2>& x, const Context& context) {
      activate_rows(x, activation, context);
    });
}

TEST(GateRows, multiplies_the_activated_gate_by_up) {
  const Row gate = numbers(5 * 19, 11), up = numbers(5 * 19, 12);
  for (const Activation activation : kActivations) {
    Row activated = gate, got = gate, turned(gate.size());
    activate_rows({activated.data(), {5, 19}}, activation, default_context());
    gate_rows({got.data(), {5, 19}}, {up.data(), {5, 19}}, activation, default_context());
    for (std::size_t r = 0; r < 5; ++r)
      for (std::size_t i = 0; i < 19; ++i) turned[i * 5 + r] = gate[r * 19 + i];
    gate_rows({turned.data(), {5, 19}, {1, 5}}, {up.data(), {5, 19}}, activation,
              default_context());
    for (std::size_t n = 0; n < got.size(); ++n) {
      EXPECT_EQ(got[n], activated[n] * up[n]) << name(activation);
      EXPECT_EQ(turned[n % 19 * 5 + n / 19], got[n]) << name(activation);
    }
  }
}

TEST(AddRows, adds) {
  Row x = numbers(4 * 9, 13);
  const Row before = x, y = numbers(4 * 9, 14);
  add_rows({x.data(), {4, 9}}, {y.data(), {4, 9}}, default_context());
  for (std::size_t n = 0; n < x.size(); ++n) EXPECT_EQ(x[n], before[n] + y[n]);
  x = before;
  add_rows({x.data(), {4, 9}, {1, 4}}, {y.data(), {4, 9}, {9, 1}}, default_context());
  for (std::size_t r = 0; r < 4; ++r)
    for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(x[i * 4 + r], before[i * 4 + r] + y[r * 9 + i]);
}

}  // namespace
}  // namespace glasshead::nn
