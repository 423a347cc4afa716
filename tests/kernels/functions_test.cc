// Each of the six functions alone against the lines of kernel_set.h that say what it does, number
// by number: where a whole row differs, these say which function is wrong.
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "guarded.h"
#include "random_rows.h"
#include "sets.h"

namespace glasshead::test {
namespace {

float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }

// Between the functions a NaN is a NaN: which one depends on the instruction.
template <class T>
bool same(T a, T b) {
  return (a != a && b != b) || std::memcmp(&a, &b, sizeof a) == 0;
}

// What the functions of one test share: a kernel set's shape, sizes and numbers.
template <class T>
struct Stage {
  const Kernels<T>& kernels;
  Random random;
  index_t lanes = kernels.lanes, count, vectors;
  Numbers kind;

  Stage(const Kernels<T>& given, std::uint64_t seed) : kernels(given), random(seed) {
    count = random.between(1, lanes);
    vectors = random.between((count + kernels.width - 1) / kernels.width, lanes / kernels.width);
    kind = Numbers(random.below(5));
  }
  Edge edge() { return random.one_in(2) ? Edge::begin : Edge::end; }
  Guarded<T> panel(index_t n) { return numbers(n * lanes); }
  Guarded<T> numbers(index_t n) {
    return Guarded<T>(random_numbers<T>(random, n, kind), edge(), 64);
  }
  Guarded<std::uint32_t> bits(index_t n) {
    std::vector<std::uint32_t> words;
    for (index_t key = 0; key < n; ++key)
      words.push_back(random.one_in(3) ? 0xFFFFFFFF : static_cast<std::uint32_t>(random.bits()));
    return Guarded<std::uint32_t>(words, edge());
  }
  Guarded<T> ordinary(index_t n) {  // a panel of running maxima or probabilities: no NaN
    return Guarded<T>(random_numbers<T>(random, n * lanes, Numbers::normal), edge(), 64);
  }
};

// How far each vector of lanes reaches into `keys`, or no limit.
struct Reach {
  std::vector<index_t> ends;
  index_t width, keys;

  template <class T>
  Reach(Stage<T>& s, index_t given) : width(s.kernels.width), keys(given) {
    if (s.random.one_in(2)) return;
    for (index_t c = 0; c < s.vectors; ++c)
      ends.push_back(s.random.below((c == 0 ? keys : ends.back()) + 1));
  }
  const index_t* data() const { return ends.empty() ? nullptr : ends.data(); }
  index_t of(index_t lane) const {
    return ends.empty() ? keys : ends[static_cast<std::size_t>(lane / width)];
  }
};

bool bit_of(std::uint32_t bits, index_t lane) { return ((bits >> lane) & 1) != 0; }

// test(T{}, kernels, seed) for every set, 40 seeds.
template <class F>
void for_stages(const F& test) {
  for_kernels([&]<class T>(T, const KernelSet& set, const Kernels<T>& kernels) {
    SCOPED_TRACE(std::string(set.name) + (sizeof(T) == 4 ? ", float" : ", double"));
    for (std::uint64_t seed = 0; seed < 40 && !testing::Test::HasFailure(); ++seed)
      test(kernels, seed);
  });
}

TEST(Pack, scales_each_element_with_one_rounding_and_fills_with_zero) {
  for_stages([]<class T>(const Kernels<T>& kernels, std::uint64_t seed) {
    Stage<T> s(kernels, seed);
    const index_t size = s.random.between(1, 130), step = s.random.between(1, 3);
    const double scale = s.random.one_in(2) ? s.random.normal() : -0.125;  // a T, or not
    Guarded<T> panel = s.panel(size);
    const index_t row = (size - 1) * step + 1;
    Guarded<T> stored = s.numbers(s.count * row);
    std::vector<const T*> rows;
    for (index_t r = 0; r < s.count; ++r) rows.push_back(stored.data() + r * row);
    kernels.pack({rows.data(), step, s.count, size, scale, s.vectors, panel.data()});
    for (index_t r = 0; r < s.vectors * kernels.width; ++r)
      for (index_t d = 0; d < size; ++d) {
        const T expected =
            r < s.count ? static_cast<T>(static_cast<double>(stored[r * row + d * step]) * scale)
                        : T(0);
        ASSERT_TRUE(same(panel[d * s.lanes + r], expected)) << "row " << r << ", element " << d;
      }
  });
}

TEST(Scores, are_capped_biased_and_hidden_in_this_order) {
  for_stages([]<class T>(const Kernels<T>& kernels, std::uint64_t seed) {
    Stage<T> s(kernels, seed);
    const index_t d_k = s.random.between(1, 130), keys = s.random.below(kBlock + 1);
    const T softcap = s.random.one_in(2) ? T(0) : T(3);
    Guarded<T> q = s.panel(d_k), k = s.numbers(keys * d_k), bias = s.panel(keys);
    const bool has_bias = s.random.one_in(2), has_mask = !s.random.one_in(3);
    const Guarded<std::uint32_t> allowed = s.bits(keys);
    Guarded<T> scores = s.panel(keys), max = s.ordinary(1);
    std::vector<T> before(max.data(), max.data() + s.lanes);
    const Reach reach(s, keys);
    kernels.scores({q.data(),
                    d_k,
                    {k.data(), d_k, 1},
                    keys,
                    softcap,
                    has_bias ? bias.data() : nullptr,
                    has_mask ? &allowed[0] : nullptr,
                    s.vectors,
                    scores.data(),
                    max.data(),
                    reach.data()});
    for (index_t lane = 0; lane < s.vectors * kernels.width; ++lane) {
      T largest = before[static_cast<std::size_t>(lane)];
      for (index_t n = 0; n < reach.of(lane); ++n) {
        T x = 0;
        for (index_t d = 0; d < d_k; ++d) x = fused(k[n * d_k + d], q[d * s.lanes + lane], x);
        if (softcap > 0) x = softcap * row_tanh(x / softcap);
        if (has_bias) x = x + bias[n * s.lanes + lane];
        if (has_mask && !bit_of(allowed[n], lane)) x = -std::numeric_limits<T>::infinity();
        ASSERT_TRUE(same(scores[n * s.lanes + lane], x)) << "key " << n << ", lane " << lane;
        largest = x > largest ? x : largest;
      }
      ASSERT_TRUE(same(max[lane], largest)) << "lane " << lane;
    }
  });
}

TEST(Softmax, sums_in_eight_parts_before_dropout) {
  for_stages([]<class T>(const Kernels<T>& kernels, std::uint64_t seed) {
    Stage<T> s(kernels, seed);
    const index_t keys = s.random.below(kBlock + 1), first = s.random.below(2000);
    const bool has_dropout = s.random.one_in(2);
    Guarded<T> scores = s.panel(keys), new_max = s.ordinary(1), max = s.ordinary(1);
    Guarded<T> sum = s.ordinary(1), alpha = s.panel(1);
    for (index_t lane = 0; lane < s.lanes; ++lane) {  // every score is at most the new maximum
      if (max[lane] > new_max[lane]) new_max[lane] = max[lane];
      for (index_t n = 0; n < keys; ++n) {
        T& x = scores[n * s.lanes + lane];
        if (x > new_max[lane]) x = new_max[lane];
      }
    }
    const Guarded<std::uint32_t> kept = s.bits(keys);
    const Reach reach(s, keys);
    const std::vector<T> given(scores.data(), scores.data() + keys * s.lanes);
    const std::vector<T> old_max(max.data(), max.data() + s.lanes);
    const std::vector<T> old_sum(sum.data(), sum.data() + s.lanes);
    kernels.softmax({scores.data(), first, keys, has_dropout ? &kept[0] : nullptr, s.vectors,
                     new_max.data(), max.data(), sum.data(), alpha.data(), reach.data()});
    for (index_t lane = 0; lane < s.vectors * kernels.width; ++lane) {
      const auto at = static_cast<std::size_t>(lane);
      T part[8] = {};
      for (index_t n = 0; n < reach.of(lane); ++n) {
        T p = row_exp(given[static_cast<std::size_t>(n * s.lanes + lane)] - new_max[lane]);
        part[(first + n) % 8] += p;
        if (has_dropout && !bit_of(kept[n], lane)) p = 0;
        ASSERT_TRUE(same(scores[n * s.lanes + lane], p)) << "key " << n << ", lane " << lane;
      }
      const T scale = row_exp(old_max[at] - new_max[lane]);
      const T all =
          ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
      ASSERT_TRUE(same(alpha[lane], scale)) << "lane " << lane;
      ASSERT_TRUE(same(max[lane], new_max[lane])) << "lane " << lane;
      ASSERT_TRUE(same(sum[lane], fused(old_sum[at], scale, all))) << "lane " << lane;
    }
  });
}

TEST(Accumulate, leaves_a_hidden_pair_out_whatever_its_value) {
  for_stages([]<class T>(const Kernels<T>& kernels, std::uint64_t seed) {
    Stage<T> s(kernels, seed);
    const index_t d_v = s.random.between(1, 130), keys = s.random.below(kBlock + 1);
    Guarded<T> p = s.ordinary(keys), v = s.numbers(keys * d_v), alpha = s.ordinary(1);
    Guarded<T> a = s.panel(d_v);
    const bool has_alpha = s.random.one_in(2), has_mask = s.random.one_in(2);
    const bool is_first = s.random.one_in(3);
    Guarded<std::uint32_t> allowed = s.bits(keys);
    const Reach reach(s, keys);
    for (index_t n = 0; n < keys; ++n) {  // the mask hides what is out of reach
      for (index_t lane = 0; lane < s.vectors * kernels.width; ++lane)
        if (n >= reach.of(lane)) allowed[n] &= ~(std::uint32_t{1} << lane);
    }
    const std::vector<T> before(a.data(), a.data() + d_v * s.lanes);
    kernels.accumulate({p.data(),
                        keys,
                        {v.data(), d_v, 1},
                        d_v,
                        has_alpha ? alpha.data() : nullptr,
                        has_mask ? &allowed[0] : nullptr,
                        s.vectors,
                        a.data(),
                        reach.data(),
                        is_first});
    for (index_t lane = 0; lane < s.vectors * kernels.width; ++lane)
      for (index_t d = 0; d < d_v; ++d) {
        T x = before[static_cast<std::size_t>(d * s.lanes + lane)];
        if (has_alpha) x = x * alpha[lane];
        if (is_first) x = 0;
        for (index_t n = 0; n < reach.of(lane); ++n) {
          if (!has_mask || bit_of(allowed[n], lane))
            x = fused(v[n * d_v + d], p[n * s.lanes + lane], x);
        }
        ASSERT_TRUE(same(a[d * s.lanes + lane], x)) << "element " << d << ", lane " << lane;
      }
  });
}

TEST(Finite, is_false_where_one_element_is_not) {
  for_stages([]<class T>(const Kernels<T>& kernels, std::uint64_t seed) {
    Stage<T> s(kernels, seed);
    const index_t count = s.random.between(1, 40), size = s.random.between(1, 130);
    const index_t step = s.random.between(1, 2), row = size * step;
    Guarded<T> rows(count * row - step + 1, s.edge());
    using Limits = std::numeric_limits<T>;
    for (index_t n = 0; n < count * row - step + 1; ++n)  // what lies between is not asked for
      rows[n] = n % step == 0 ? Limits::max() : Limits::infinity();
    const auto ask = [&] { return kernels.are_finite({rows.data(), row, step}, count, size); };
    EXPECT_TRUE(ask());
    T& x = rows[s.random.below(count) * row + s.random.below(size) * step];
    for (const T bad : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()}) {
      x = bad;
      EXPECT_FALSE(ask()) << bad;
    }
  });
}

TEST(Merge, rescales_the_earlier_state_first) {
  for_stages([]<class T>(const Kernels<T>& kernels, std::uint64_t seed) {
    Stage<T> s(kernels, seed);
    const index_t d_v = s.random.between(1, 130);
    Guarded<T> x_max = s.ordinary(1), y_max = s.ordinary(1);
    Guarded<T> x_sum = s.panel(1), y_sum = s.panel(1), x_a = s.panel(d_v), y_a = s.panel(d_v);
    for (index_t lane = 0; lane < s.lanes; lane += 3) {  // one without a key
      Guarded<T>& max = s.random.one_in(2) ? x_max : y_max;
      max[lane] = Arithmetic<T>::kStart;
    }
    const std::vector<T> max(x_max.data(), x_max.data() + s.lanes);
    const std::vector<T> sum(x_sum.data(), x_sum.data() + s.lanes);
    const std::vector<T> a(x_a.data(), x_a.data() + d_v * s.lanes);
    kernels.merge({{x_max.data(), x_sum.data(), x_a.data()},
                   {y_max.data(), y_sum.data(), y_a.data()},
                   d_v,
                   s.vectors});
    for (index_t lane = 0; lane < s.vectors * kernels.width; ++lane) {
      const auto at = static_cast<std::size_t>(lane);
      const T both = y_max[lane] > max[at] ? y_max[lane] : max[at];
      const T fx = row_exp(max[at] - both), fy = row_exp(y_max[lane] - both);
      ASSERT_TRUE(same(x_max[lane], both)) << "lane " << lane;
      ASSERT_TRUE(same(x_sum[lane], fused(y_sum[lane], fy, sum[at] * fx))) << "lane " << lane;
      for (index_t d = 0; d < d_v; ++d) {
        const index_t here = d * s.lanes + lane;
        ASSERT_TRUE(same(x_a[here], fused(y_a[here], fy, a[static_cast<std::size_t>(here)] * fx)))
            << "element " << d << ", lane " << lane;
      }
    }
  });
}

TEST(Finish, divides_once_and_writes_no_minus_zero_and_one_nan) {
  for_stages([]<class T>(const Kernels<T>& kernels, std::uint64_t seed) {
    Stage<T> s(kernels, seed);
    const index_t d_v = s.random.between(1, 130), step = s.random.between(1, 3);
    const T kept = s.random.one_in(2) ? T(1) : T(1.25);
    Guarded<T> max = s.ordinary(1), sum = s.panel(1), a = s.panel(d_v);
    for (index_t lane = 0; lane < s.lanes; lane += 5) sum[lane] = 0;
    const index_t row = (d_v - 1) * step + 1;
    Guarded<T> out(s.count * row, s.edge());
    std::vector<T*> rows;
    for (index_t r = 0; r < s.count; ++r) rows.push_back(out.data() + r * row);
    kernels.finish(
        {{max.data(), sum.data(), a.data()}, s.count, d_v, kept, s.vectors, rows.data(), step});
    for (index_t r = 0; r < s.count; ++r) {
      const T factor = kept / sum[r];
      for (index_t d = 0; d < d_v; ++d) {
        T x = sum[r] == 0 ? T(0) : a[d * s.lanes + r] * factor + T(0);
        if (x != x) x = std::numeric_limits<T>::quiet_NaN();
        const T got = out[r * row + d * step];
        ASSERT_EQ(std::memcmp(&got, &x, sizeof x), 0) << "row " << r << ", element " << d;
      }
    }
  });
}

}  // namespace
}  // namespace glasshead::test
