// The kernels of the gradients against their formulas, pair by pair: the same bits from every set.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "glasshead/tensor.h"
#include "sets.h"

namespace glasshead::test {
namespace {

template <class T>
using Numbers = std::vector<T>;

// An array that vectors can be loaded from.
template <class T>
struct Aligned {
  Tensor<T, 1> memory;
  explicit Aligned(const Numbers<T>& x) : memory({static_cast<index_t>(x.size())}) {
    std::copy(x.begin(), x.end(), memory.data());
  }
  Numbers<T> numbers() const { return {memory.data(), memory.data() + memory.size()}; }
};

// Normal numbers, some of them NaN, infinite or 0 where asked for.
template <class T>
Numbers<T> draw(index_t count, std::uint64_t seed, bool has_specials = false) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  Numbers<T> x(static_cast<std::size_t>(count));
  for (std::size_t n = 0; n < x.size(); ++n) {
    x[n] = static_cast<T>(standard_normal(seed, n));
    const double draw = uniform(seed, n, 1);
    if (!has_specials || draw > 0.1) continue;
    x[n] = draw < 0.02   ? std::numeric_limits<T>::quiet_NaN()
           : draw < 0.04 ? kInfinity
           : draw < 0.06 ? -kInfinity
                         : T(0);
  }
  return x;
}

std::vector<std::uint32_t> draw_bits(index_t count, std::uint64_t seed) {
  std::vector<std::uint32_t> bits(static_cast<std::size_t>(count));
  for (std::size_t n = 0; n < bits.size(); ++n)
    bits[n] = static_cast<std::uint32_t>(uniform(seed, n) * 4294967296.0);
  return bits;
}

// Bits, but any NaN is as good as another: which of two a multiplication keeps is the compiler's.
template <class T>
bool same(T a, T b) {
  return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T>
T by_scalar(void (*f)(const T*, T*, index_t) noexcept, T x) {
  T y = 0;
  f(&x, &y, 1);
  return y;
}

// Whether each part of a call is there.
struct Options {
  bool softcap, through, bias, allowed, kept;
};

template <class T>
struct Pair {
  T weight, score;
};
// The formula of DifferentiateArgs, with exp and tanh of the scalar set.
template <class T>
Pair<T> differentiate_pair(const DifferentiateArgs<T>& args, index_t lanes, index_t n, index_t r) {
  const KernelSet scalar = filled(*find_kernel_set("scalar"));
  const Kernels<T>& functions = kernels_of<T>(scalar);
  const auto at = n * lanes + r;
  T s = args.weights[at], dp = args.scores[at], t = 0;
  if (args.softcap > 0) {
    t = by_scalar<T>(functions.tanh, s / args.softcap);
    s = args.softcap * t;
  }
  if (args.bias != nullptr) s += args.bias[at];
  const auto has_bit = [&](const std::uint32_t* bits) { return (bits[n] >> r & 1) != 0; };
  if (args.allowed != nullptr && !has_bit(args.allowed)) s = -std::numeric_limits<T>::infinity();
  const bool is_hidden = s == -std::numeric_limits<T>::infinity();
  const T w = is_hidden ? T(0) : by_scalar<T>(functions.exp, s - args.max[r]) * args.inverse[r];
  T used = w;
  if (args.kept != nullptr) {
    dp = has_bit(args.kept) ? dp * args.kept_scale : T(0);
    used = has_bit(args.kept) ? w * args.kept_scale : T(0);
  }
  T ds = w == 0 ? T(0) : w * (dp - args.mean[r]);
  if (args.softcap > 0) ds *= args.through_softcap ? (T(1) - t) * (T(1) + t) : T(1);
  return {used, ds};
}

template <class T>
void compare_differentiate(const KernelSet& set, std::uint64_t seed, const Options& options) {
  const Kernels<T>& kernels = kernels_of<T>(set);
  const index_t lanes = kernels.lanes, keys = 1 + static_cast<index_t>(uniform(seed, 1) * 20);
  const index_t most = lanes / kernels.width;
  const index_t vectors = 1 + static_cast<index_t>(uniform(seed, 2) * static_cast<double>(most));
  Aligned<T> weights(draw<T>(keys * lanes, seed, true)),
      scores(draw<T>(keys * lanes, seed + 1, true));
  const Aligned<T> bias(draw<T>(keys * lanes, seed + 2)), mean(draw<T>(lanes, seed + 3));
  Numbers<T> largest = draw<T>(lanes, seed + 4), inverse = draw<T>(lanes, seed + 5);
  for (T& x : largest) x = 6 + std::abs(x);  // no score is above, with the bias added
  for (std::size_t r = 0; r < inverse.size(); ++r)
    inverse[r] = r % 7 == 0 ? T(0) : std::abs(inverse[r]);
  const Aligned<T> max(largest), factors(inverse);
  const auto allowed = draw_bits(keys, seed + 6), kept = draw_bits(keys, seed + 7);
  const DifferentiateArgs<T> args{weights.memory.data(),
                                  scores.memory.data(),
                                  keys,
                                  options.softcap ? T(1.5) : T(0),
                                  options.through,
                                  options.bias ? bias.memory.data() : nullptr,
                                  options.allowed ? allowed.data() : nullptr,
                                  options.kept ? kept.data() : nullptr,
                                  T(1.25),
                                  vectors,
                                  max.memory.data(),
                                  factors.memory.data(),
                                  mean.memory.data()};
  std::vector<Pair<T>> expected;
  for (index_t n = 0; n < keys; ++n)
    for (index_t r = 0; r < vectors * kernels.width; ++r)
      expected.push_back(differentiate_pair(args, lanes, n, r));
  kernels.backward.differentiate(args);
  std::size_t at = 0;
  for (index_t n = 0; n < keys; ++n)
    for (index_t r = 0; r < vectors * kernels.width; ++r, ++at) {
      EXPECT_TRUE(same(args.weights[n * lanes + r], expected[at].weight))
          << set.name << " w, seed " << seed << " key " << n << " lane " << r;
      EXPECT_TRUE(same(args.scores[n * lanes + r], expected[at].score))
          << set.name << " ds, seed " << seed << " key " << n << " lane " << r;
    }
}

TEST(BackwardKernels, make_weights_and_gradients_of_scores_by_the_formula) {
  for (const KernelSet& set : runnable_sets()) {
    for (std::uint64_t seed = 1; seed <= 64; ++seed) {
      const Options options{(seed & 1) != 0, (seed & 2) != 0, (seed & 4) != 0, (seed & 8) != 0,
                            (seed & 16) != 0};
      compare_differentiate<float>(set, 100 * seed, options);
      compare_differentiate<double>(set, 100 * seed, options);
      if (testing::Test::HasFailure()) return;
    }
  }
}

template <class T>
void compare_outer(const KernelSet& set, std::uint64_t seed, bool skips_zeros) {
  const Kernels<T>& kernels = kernels_of<T>(set);
  const index_t lanes = kernels.lanes;
  const auto up_to = [&](std::uint64_t n, double most) {
    return 1 + static_cast<index_t>(uniform(seed, n) * most);
  };
  const index_t keys = up_to(1, 19), size = kernels.width * up_to(2, 9), count = up_to(3, 4);
  std::vector<Aligned<T>> weights, rows;
  std::vector<OuterPanel<T>> panels;
  for (index_t p = 0; p < count; ++p) {
    const auto part = seed + 10 * static_cast<std::uint64_t>(p + 1);
    weights.emplace_back(draw<T>(keys * lanes, part));
    rows.emplace_back(draw<T>(lanes * size, part + 1, skips_zeros));
    for (index_t n = 0; n < keys * lanes; n += 3) weights.back().memory.data()[n] = 0;
  }
  for (std::size_t p = 0; p < weights.size(); ++p)
    panels.push_back({weights[p].memory.data(), rows[p].memory.data(),
                      up_to(4 + p, static_cast<double>(lanes))});
  Aligned<T> to(draw<T>(keys * size, seed + 2));
  Numbers<T> expected = to.numbers();
  for (index_t n = 0; n < keys; ++n)
    for (const OuterPanel<T>& panel : panels)
      for (index_t r = 0; r < panel.count; ++r) {
        const T weight = panel.weights[n * lanes + r];
        if (skips_zeros && weight == 0) continue;
        for (index_t e = 0; e < size; ++e) {
          T& sum = expected[static_cast<std::size_t>(n * size + e)];
          sum = std::fma(weight, panel.rows[r * size + e], sum);
        }
      }
  kernels.backward.outer({panels.data(), count, keys, size, skips_zeros, to.memory.data()});
  for (std::size_t n = 0; n < expected.size(); ++n)
    EXPECT_TRUE(same(to.memory.data()[n], expected[n]))
        << set.name << ", seed " << seed << " entry " << n;
}

TEST(BackwardKernels, add_the_rows_of_all_panels_in_order) {
  for (const KernelSet& set : runnable_sets()) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      compare_outer<float>(set, 1000 * seed, seed % 4 == 0);
      compare_outer<double>(set, 1000 * seed, seed % 4 == 0);
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace glasshead::test
