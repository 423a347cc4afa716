// Narrow elements widened in registers give the bits of the same numbers stored wide, wherever they
// lie: keys as rows, keys in panels of 16, values.
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "glasshead/tensor.h"
#include "guarded.h"
#include "random_rows.h"
#include "sets.h"

namespace glasshead::test {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

// Elements as they are stored, and what they mean.
struct Stored {
  Narrow type = Narrow::bf16;
  std::vector<std::uint8_t> bytes;
  index_t size_of = 2;

  Stored(Random& random, Narrow given, index_t count) : type(given) {
    size_of = type == Narrow::int8 ? 1 : 2;
    for (index_t n = 0; n < count * size_of; n += size_of) {
      std::uint64_t bits = random.bits();
      if (type == Narrow::bf16)  // sizes from 2^-16 to 2^16, some zeros
        bits = random.one_in(9) ? bits & 0x8000 : (bits & 0x807f) | (111 + bits % 32) << 7;
      if (type == Narrow::f16 && (bits & 0x7c00) == 0x7c00) bits &= ~std::uint64_t{0x4000};
      for (index_t byte = 0; byte < size_of; ++byte)
        bytes.push_back(static_cast<std::uint8_t>(bits >> (8 * byte)));
    }
  }
  float at(index_t n) const {
    if (type == Narrow::int8)
      return static_cast<float>(static_cast<std::int8_t>(bytes[static_cast<std::size_t>(n)]));
    const DType dtype = type == Narrow::bf16 ? DType::bf16 : DType::f16;
    return static_cast<float>(load_element(bytes.data(), dtype, n));
  }
};

// f(kernels, random) for every set, 60 times.
template <class F>
void for_sets(const F& f) {
  for (const KernelSet& set : runnable_sets()) {
    SCOPED_TRACE(set.name);
    if (set.f32.rows.scores == nullptr) continue;
    for (std::uint64_t seed = 0; seed < 60 && !testing::Test::HasFailure(); ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      Random random(seed);
      f(set.f32.rows, random);
    }
  }
}

struct Sizes {
  index_t rows, d, first, keys;
  explicit Sizes(Random& random)
      : rows(random.between(1, 9)),
        d(random.between(1, 70)),
        first(random.below(kBlock)),
        keys(random.between(1, kBlock - first)) {}
};

bool same_bits(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; }

// Scores of `keys` keys whose element (n, d) is key(n, d), as RowScoreArgs says.
template <class Key>
void expect_scores(const RowKernels<float>& kernels, const Sizes& sizes,
                   const std::vector<float>& q, const StridedRows<float>& strides,
                   const NarrowRows& narrow, const Key& key) {
  Guarded<float> scores(sizes.rows * kBlock, Edge::end, 64);
  std::vector<float> max(static_cast<std::size_t>(sizes.rows), kHidden);
  kernels.scores({q.data(), sizes.rows, sizes.d, strides, sizes.first, sizes.keys, 0, nullptr, 0,
                  nullptr, scores.data(), max.data(), narrow});
  for (index_t r = 0; r < sizes.rows; ++r) {
    float largest = kHidden;
    for (index_t n = 0; n < sizes.keys; ++n) {
      float s = 0;
      for (index_t d = 0; d < sizes.d; ++d)
        s = __builtin_fmaf(key(n, d), q[static_cast<std::size_t>(r * sizes.d + d)], s);
      const float found = scores[r * kBlock + sizes.first + n];
      ASSERT_TRUE(same_bits(found, s))
          << "row " << r << ", key " << n << ": " << found << ", " << s;
      if (s > largest) largest = s;
    }
    EXPECT_EQ(max[static_cast<std::size_t>(r)], largest) << "row " << r;
  }
}

TEST(NarrowRows, of_keys_score_as_wide_ones) {
  for_sets([](const RowKernels<float>& kernels, Random& random) {
    const Sizes sizes(random);
    const index_t stride = sizes.d + random.below(5);
    const Narrow type = random.one_in(2) ? Narrow::bf16 : Narrow::f16;
    const Stored stored(random, type, (sizes.keys - 1) * stride + sizes.d);
    Guarded<std::uint8_t> data(stored.bytes, Edge::end, 2);
    const auto q = random_numbers<float>(random, sizes.rows * sizes.d, Numbers::normal);
    expect_scores(kernels, sizes, q, {nullptr, stride, 1}, {type, data.data(), nullptr, 0},
                  [&](index_t n, index_t d) { return stored.at(n * stride + d); });
  });
}

TEST(NarrowRows, of_keys_in_panels_score_as_wide_ones) {
  for_sets([](const RowKernels<float>& kernels, Random& random) {
    const Sizes sizes(random);
    const Narrow types[] = {Narrow::bf16, Narrow::f16, Narrow::int8};
    const Narrow type = types[random.below(3)];
    const index_t lane = sizes.first % kPanelKeys;
    const index_t panels = (lane + sizes.keys + kPanelKeys - 1) / kPanelKeys;
    const index_t panel = kPanelKeys * sizes.d;
    const Stored stored(random, type, panels * panel);
    const auto scales = random_numbers<float>(random, panels * kPanelKeys, Numbers::normal);
    const auto q = random_numbers<float>(random, sizes.rows * sizes.d, Numbers::normal);
    const bool is_scaled = type == Narrow::int8;
    const NarrowRows narrow{type, stored.bytes.data() + lane * stored.size_of,
                            is_scaled ? scales.data() + lane : nullptr, panel};
    expect_scores(kernels, sizes, q, {nullptr, 1, kPanelKeys}, narrow, [&](index_t n, index_t d) {
      const index_t at = lane + n;
      const float x = stored.at(at / kPanelKeys * panel + d * kPanelKeys + at % kPanelKeys);
      return is_scaled ? x * scales[static_cast<std::size_t>(at)] : x;
    });
  });
}

TEST(NarrowRows, of_values_are_summed_as_wide_ones) {
  for_sets([](const RowKernels<float>& kernels, Random& random) {
    const Sizes sizes(random);
    const Narrow types[] = {Narrow::bf16, Narrow::f16, Narrow::int8};
    const Narrow type = types[random.below(3)];
    const index_t stride = sizes.d + random.below(5);
    const Stored stored(random, type, (sizes.keys - 1) * stride + sizes.d);
    Guarded<std::uint8_t> data(stored.bytes, Edge::end, 2);
    const auto scales = random_numbers<float>(random, sizes.keys, Numbers::normal);
    Guarded<float> p(random_numbers<float>(random, sizes.rows * kBlock, Numbers::normal), Edge::end,
                     64);
    const auto before = random_numbers<float>(random, sizes.rows * sizes.d, Numbers::normal);
    std::vector<float> a = before;
    const bool is_scaled = type == Narrow::int8;
    kernels.accumulate({p.data(),
                        sizes.rows,
                        sizes.first,
                        sizes.keys,
                        {nullptr, stride, 1},
                        sizes.d,
                        nullptr,
                        nullptr,
                        a.data(),
                        sizes.d,
                        {type, data.data(), is_scaled ? scales.data() : nullptr, 0}});
    for (index_t r = 0; r < sizes.rows; ++r) {
      for (index_t d = 0; d < sizes.d; ++d) {
        float sum = before[static_cast<std::size_t>(r * sizes.d + d)];
        for (index_t n = 0; n < sizes.keys; ++n) {
          float x = stored.at(n * stride + d);
          if (is_scaled) x *= scales[static_cast<std::size_t>(n)];
          sum = __builtin_fmaf(x, p[r * kBlock + sizes.first + n], sum);
        }
        const float found = a[static_cast<std::size_t>(r * sizes.d + d)];
        ASSERT_TRUE(same_bits(found, sum)) << "row " << r << ", element " << d;
      }
    }
  });
}

}  // namespace
}  // namespace glasshead::test
