// A cache gives the bits of attend over plain tensors that hold the same numbers: however they are
// stored, came in, are shared and are called upon.
#include "glasshead/kv_cache.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/kv_input.h"
#include "core/row_reference.h"

namespace glasshead::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// Numbers of one sequence: [kv_heads, n, d], f32 exactly.
struct Rows {
  index_t heads, n, d;
  std::vector<float> x;

  Rows(index_t kv_heads, index_t count, index_t size, std::uint32_t seed)
      : heads(kv_heads), n(count), d(size), x(static_cast<std::size_t>(kv_heads * count * size)) {
    std::mt19937 bits(seed);
    for (float& element : x)  // in [-2, 2), all 24 bits in use
      element = (static_cast<float>(bits() >> 8) - 8388608.0F) * 0x1p-22F;
  }
  float& at(index_t g, index_t j, index_t e) {
    return x[static_cast<std::size_t>((g * n + j) * d + e)];
  }
  // Keys [begin, end).
  ConstTensor<3> part(index_t begin, index_t end) const {
    return {x.data() + begin * d, DType::f32, {heads, end - begin, d}, {n * d, d, 1}};
  }
  ConstTensor<3> all() const { return part(0, n); }
};

struct Sequence {
  Rows k, v;
  Sequence(index_t heads, index_t n, index_t d_k, index_t d_v, std::uint32_t seed)
      : k(heads, n, d_k, seed), v(heads, n, d_v, seed + 1) {}
};

// What the row at x becomes in a cache of that type: computed here from the definition.
std::vector<double> stored_row(const float* x, index_t size, KvType type) {
  std::vector<double> row(x, x + size);
  if (type == KvType::bf16)
    for (double& e : row) e = widen(narrow_to_bf16(e));
  if (type == KvType::f16)
    for (double& e : row) e = widen(narrow_to_f16(e));
  if (type != KvType::int8) return row;
  double largest = 0;
  bool is_finite = true;
  for (const double e : row) {
    largest = std::max(largest, std::fabs(e));
    is_finite = is_finite && std::isfinite(e);
  }
  const auto scale = static_cast<float>(largest / 127);
  for (double& e : row) {
    const double n = largest == 0 ? 0 : std::nearbyint(e / static_cast<double>(scale));
    e = is_finite ? static_cast<double>(static_cast<float>(n) * scale) : kNan;
  }
  return row;
}

// A row-major tensor [batch, heads, n, d] of the compute type, padded with NaN to the longest.
template <class T>
Tensor<T, 4> widened(const std::vector<const Rows*>& sequences, const std::vector<index_t>& lengths,
                     KvType type) {
  const index_t longest = *std::max_element(lengths.begin(), lengths.end());
  const Rows& one = *sequences[0];
  Tensor<T, 4> all({static_cast<index_t>(sequences.size()), one.heads, longest, one.d});
  std::fill_n(all.data(), all.size(), static_cast<T>(kNan));
  for (std::size_t b = 0; b < sequences.size(); ++b)
    for (index_t g = 0; g < one.heads; ++g)
      for (index_t j = 0; j < lengths[b]; ++j) {
        const float* from = sequences[b]->x.data() + (g * sequences[b]->n + j) * one.d;
        const std::vector<double> row = stored_row(from, one.d, type);
        for (index_t e = 0; e < one.d; ++e)
          all(static_cast<index_t>(b), g, j, e) = static_cast<T>(row[static_cast<std::size_t>(e)]);
      }
  return all;
}

template <class T>
struct Results {
  Tensor<T, 4> out;
  Tensor<T, 3> max, sum, lse;
  explicit Results(const std::array<index_t, 4>& shape)
      : out(shape),
        max({shape[0], shape[1], shape[2]}),
        sum({shape[0], shape[1], shape[2]}),
        lse({shape[0], shape[1], shape[2]}) {}
  RowState rows() { return {max, sum, lse}; }
};

template <class T, int Rank>
bool same(const Tensor<T, Rank>& a, const Tensor<T, Rank>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(T)) == 0;
}
template <class T>
void expect_same(const Results<T>& found, const Results<T>& wanted) {
  EXPECT_TRUE(same(found.out, wanted.out)) << "out";
  EXPECT_TRUE(same(found.max, wanted.max)) << "max";
  EXPECT_TRUE(same(found.sum, wanted.sum)) << "sum";
  EXPECT_TRUE(same(found.lse, wanted.lse)) << "lse";
}

template <class T>
Tensor<T, 4> queries(const std::array<index_t, 4>& shape, std::uint32_t seed) {
  Tensor<T, 4> q(shape);
  std::mt19937 bits(seed);
  for (index_t n = 0; n < q.size(); ++n)
    q.data()[n] = static_cast<T>((static_cast<double>(bits() >> 8) - 8388608.0) * 0x1p-22);
  return q;
}

// The queries of each sequence alone, over its tensors: what any call over a cache must give.
template <class T>
Results<T> expected(const Tensor<T, 4>& q, const std::vector<const Sequence*>& sequences,
                    const std::vector<index_t>& lengths, KvType type,
                    const AttentionOptions& options) {
  const auto& s = q.shape();
  const index_t d_v = sequences[0]->v.d;
  Results<T> all({s[0], s[1], s[2], d_v});
  for (index_t b = 0; b < s[0]; ++b) {
    const auto n = static_cast<std::size_t>(b);
    const Tensor<T, 4> k = widened<T>({&sequences[n]->k}, {lengths[n]}, type);
    const Tensor<T, 4> v = widened<T>({&sequences[n]->v}, {lengths[n]}, type);
    AttentionOptions own = options;
    if (std::holds_alternative<std::monostate>(own.query_start)) own.query_start = Align::end;
    Results<T> one({1, s[1], s[2], d_v});
    const index_t size = s[1] * s[2] * s[3], rows = s[1] * s[2];
    attend(View<const T, 4>(q.data() + b * size, {1, s[1], s[2], s[3]}), k, v, one.out, own,
           one.rows());
    std::copy_n(one.out.data(), rows * d_v, all.out.data() + b * rows * d_v);
    std::copy_n(one.max.data(), rows, all.max.data() + b * rows);
    std::copy_n(one.sum.data(), rows, all.sum.data() + b * rows);
    std::copy_n(one.lse.data(), rows, all.lse.data() + b * rows);
  }
  return all;
}

template <class T>
Results<T> attended(const Tensor<T, 4>& q, const KvInput& kv, index_t d_v,
                    const AttentionOptions& options, const Context& context = default_context()) {
  const auto& s = q.shape();
  Results<T> results({s[0], s[1], s[2], d_v});
  attend(q, kv, results.out, options, results.rows(), context);
  return results;
}

AttentionOptions with(Mask mask) {
  AttentionOptions options;
  options.mask = std::move(mask);
  return options;
}

const std::vector<KvType> kAllTypes{KvType::f64, KvType::f32, KvType::bf16, KvType::f16,
                                    KvType::int8};

struct Filled {
  Sequence sequence;
  KvCache cache;
  // `step` keys at a time.
  Filled(const KvCacheOptions& options, index_t n, index_t step, std::uint32_t seed)
      : sequence(options.kv_heads, n, options.d_k, options.d_v, seed), cache(options) {
    for (index_t j = 0; j < n; j += step) {
      const index_t end = std::min(n, j + step);
      cache.append(0, sequence.k.part(j, end), sequence.v.part(j, end));
    }
  }
};

KvCacheOptions sizes(index_t kv_heads, index_t d_k, index_t d_v, KvType type = KvType::f32,
                     KvStorage storage = KvPaged{}) {
  return {
      .batch = 1, .kv_heads = kv_heads, .d_k = d_k, .d_v = d_v, .type = type, .storage = storage};
}

template <class T>
void expect_as_tensors(const Filled& filled, index_t heads, index_t q_len, KvType type,
                       const AttentionOptions& options) {
  const Rows& k = filled.sequence.k;
  const Tensor<T, 4> q = queries<T>({1, heads, q_len, k.d}, 5);
  expect_same(attended(q, filled.cache.input(), filled.sequence.v.d, options),
              expected(q, {&filled.sequence}, {k.n}, type, options));
}

void expect_as_tensors(const Filled& filled, index_t heads, index_t q_len, KvType type,
                       const AttentionOptions& options) {
  if (type == KvType::f64)
    expect_as_tensors<double>(filled, heads, q_len, type, options);
  else
    expect_as_tensors<float>(filled, heads, q_len, type, options);
}

// --- the same bits ---

TEST(KvCache, every_type_gives_the_bits_of_the_numbers_that_it_holds) {
  for (const KvType type : kAllTypes) {
    SCOPED_TRACE(name(type));
    for (const index_t n : {1, 15, 16, 17, 127, 128, 130, 1040}) {
      const Filled filled(sizes(2, 17, 11, type, KvPaged{48}), n, n, 3);
      for (const index_t q_len : {1, 2, 3, 5, 8, 40}) {
        if (q_len > n) continue;
        SCOPED_TRACE("keys " + std::to_string(n) + ", q_len " + std::to_string(q_len));
        expect_as_tensors(filled, 6, q_len, type, with(Mask::causal()));
      }
    }
  }
}

TEST(KvCache, every_storage_gives_the_same_bits) {
  const index_t n = 1300;
  const std::vector<KvStorage> storages{KvPaged{16},   KvPaged{112},    KvPaged{128},
                                        KvPaged{4096}, KvContiguous{n}, KvContiguous{4000},
                                        KvRing{n},     KvRing{5000}};
  for (const KvStorage& storage : storages) {
    for (const KvType type : {KvType::f32, KvType::bf16, KvType::int8}) {
      const Filled filled(sizes(1, 8, 8, type, storage), n, n, 9);
      for (const index_t q_len : {1, 7, 33})
        expect_as_tensors(filled, 2, q_len, type, with(Mask::causal()));
    }
  }
}

TEST(KvCache, keys_may_come_at_once_or_in_chunks_or_one_by_one) {
  for (const KvType type : kAllTypes) {
    for (const KvStorage& storage : std::vector<KvStorage>{KvPaged{32}, KvContiguous{300}}) {
      for (const index_t step : {1, 3, 16, 50, 300}) {
        const Filled filled(sizes(2, 5, 3, type, storage), 300, step, 21);
        expect_as_tensors(filled, 2, 4, type, with(Mask::causal()));
      }
    }
  }
}

TEST(KvCache, decoding_token_by_token_is_prefill) {
  const index_t n = 150;
  const Sequence all(2, n, 16, 16, 4);
  const Tensor<float, 4> q = queries<float>({1, 4, n, 16}, 8);
  const AttentionOptions options = with(Mask::causal());
  const Results<float> whole = expected(q, {&all}, {n}, KvType::f32, options);
  KvCache cache(sizes(2, 16, 16));
  for (index_t i = 0; i < n; ++i) {
    cache.append(0, all.k.part(i, i + 1), all.v.part(i, i + 1));
    Tensor<float, 4> token({1, 4, 1, 16});
    for (index_t h = 0; h < 4; ++h)
      for (index_t e = 0; e < 16; ++e) token(0, h, 0, e) = q(0, h, i, e);
    const Results<float> row = attended(token, cache.input(), 16, options);
    for (index_t h = 0; h < 4; ++h)
      EXPECT_EQ(std::memcmp(&row.out(0, h, 0, 0), &whole.out(0, h, i, 0), 16 * sizeof(float)), 0)
          << "token " << i << ", head " << h;
  }
}

TEST(KvCache, a_row_is_that_of_the_literal_row_function) {
  const index_t n = 1100, d = 8;
  const Filled filled(sizes(1, d, d, KvType::int8, KvPaged{64}), n, 100, 2);
  const Tensor<float, 4> k = widened<float>({&filled.sequence.k}, {n}, KvType::int8);
  const Tensor<float, 4> v = widened<float>({&filled.sequence.v}, {n}, KvType::int8);
  const Tensor<float, 4> q = queries<float>({1, 1, 1, d}, 12);
  RowInputs<float> row;
  row.q = {q.data(), {d}};
  row.k = {k.data(), {n, d}};
  row.v = {v.data(), {n, d}};
  row.scale = 1 / std::sqrt(8.0);
  const RowReference<float> wanted = row_reference(row);
  const Results<float> found = attended(q, filled.cache.input(), d, {});
  EXPECT_EQ(std::memcmp(found.out.data(), wanted.out.data(), d * sizeof(float)), 0);
  EXPECT_EQ(found.lse(0, 0, 0), wanted.lse);
}

TEST(KvCache, a_window_may_begin_anywhere) {
  for (const KvType type : {KvType::f32, KvType::bf16, KvType::int8}) {
    const Filled filled(sizes(1, 8, 8, type, KvPaged{32}), 310, 310, 6);
    for (index_t left = 0; left < 200; left += left < 40 ? 1 : 23)
      for (const index_t q_len : {1, 9})
        expect_as_tensors(filled, 1, q_len, type, with(Mask::causal() & Mask::window(left, 0)));
  }
}

TEST(KvCache, masks_biases_and_sinks_are_as_over_tensors) {
  AttentionOptions options =
      with(Mask::causal() &
           Mask::where([](index_t, index_t, index_t p, index_t j) { return (p + j) % 3 != 0; }));
  options.bias = Bias::alibi(Bias::alibi_slopes(4));
  options.sinks = {0.5, -1, 2, 0};
  options.softcap = 3;
  options.dropout = {0.25, 7};
  for (const KvType type : kAllTypes) {
    const Filled filled(sizes(2, 16, 8, type), 400, 77, 15);
    for (const index_t q_len : {1, 20}) expect_as_tensors(filled, 4, q_len, type, options);
  }
}

TEST(KvCache, threads_change_no_bit) {
  for (const KvType type : {KvType::f32, KvType::int8}) {
    const Filled filled(sizes(2, 16, 16, type), 5000, 5000, 31);
    for (const index_t q_len : {1, 12}) {
      const Tensor<float, 4> q = queries<float>({1, 4, q_len, 16}, 2);
      const AttentionOptions options = with(Mask::causal());
      const Results<float> wanted = expected(q, {&filled.sequence}, {5000}, type, options);
      for (const int threads : {1, 2, 3, 8}) {
        ContextOptions context;
        context.threads = threads;
        expect_same(attended(q, filled.cache.input(), 16, options, Context(context)), wanted);
      }
    }
  }
}

// --- several sequences ---

TEST(KvCache, sequences_of_different_lengths_share_a_call) {
  for (const KvType type : {KvType::f32, KvType::bf16}) {
    KvCacheOptions options = sizes(2, 8, 8, type, KvPaged{16});
    options.batch = 4;
    KvCache cache(options);
    const std::vector<index_t> lengths{200, 33, 200, 1150};
    std::vector<Sequence> sequences;
    for (index_t b = 0; b < 4; ++b) {
      const index_t n = lengths[static_cast<std::size_t>(b)];
      sequences.emplace_back(2, n, 8, 8, 40 + static_cast<std::uint32_t>(b));
      cache.append(b, sequences.back().k.all(), sequences.back().v.all());
    }
    AttentionOptions call = with(Mask::causal() & Mask::window(150, 0));
    call.bias = Bias::alibi(Bias::alibi_slopes(4));
    for (const index_t q_len : {1, 6, 30}) {
      const Tensor<float, 4> q = queries<float>({4, 4, q_len, 8}, 3);
      expect_same(attended(q, cache.input(), 8, call),
                  expected(q, {&sequences[0], &sequences[1], &sequences[2], &sequences[3]}, lengths,
                           type, call));
      const Tensor<float, 4> two = queries<float>({2, 4, q_len, 8}, 4);
      expect_same(attended(two, cache.input({3, 1}), 8, call),
                  expected(two, {&sequences[3], &sequences[1]}, {1150, 33}, type, call));
    }
  }
}

TEST(KvCache, an_empty_sequence_gives_zeros_beside_others) {
  KvCacheOptions options = sizes(1, 4, 4);
  options.batch = 2;
  KvCache cache(options);
  const Sequence one(1, 20, 4, 4, 1);
  cache.append(1, one.k.all(), one.v.all());
  const Tensor<float, 4> q = queries<float>({2, 1, 3, 4}, 1);
  const Results<float> found = attended(q, cache.input(), 4, {});
  EXPECT_EQ(found.out(0, 0, 2, 3), 0);
  EXPECT_EQ(found.lse(0, 0, 2), -std::numeric_limits<float>::infinity());
  EXPECT_NE(found.out(1, 0, 2, 3), 0);
  AttentionOptions error;
  error.empty_row = EmptyRow::error;
  EXPECT_THROW(attended(q, cache.input(), 4, error), OptionError);
}

TEST(KvCache, a_batch_is_appended_at_once) {
  KvCacheOptions options = sizes(2, 4, 4, KvType::f16);
  options.batch = 2;
  KvCache cache(options);
  Tensor<float, 4> k = queries<float>({2, 2, 5, 4}, 1), v = queries<float>({2, 2, 5, 4}, 2);
  cache.append(k, v);
  cache.append(k, v);
  EXPECT_EQ(cache.length(0), 10);
  EXPECT_EQ(cache.length(1), 10);
  Sequence second(2, 10, 4, 4, 0);
  for (index_t g = 0; g < 2; ++g)
    for (index_t j = 0; j < 10; ++j)
      for (index_t e = 0; e < 4; ++e) {
        second.k.at(g, j, e) = k(1, g, j % 5, e);
        second.v.at(g, j, e) = v(1, g, j % 5, e);
      }
  const Tensor<float, 4> q = queries<float>({1, 2, 2, 4}, 1);
  expect_same(attended(q, cache.input({1}), 4, {}),
              expected(q, {&second}, {10}, KvType::f16, AttentionOptions{}));
}

// --- sharing, going back ---

TEST(KvCache, forks_share_their_prefix_and_part_where_they_differ) {
  for (const KvStorage& storage :
       std::vector<KvStorage>{KvPaged{16}, KvPaged{64}, KvContiguous{100}, KvRing{100}}) {
    for (const KvType type : {KvType::f32, KvType::int8}) {
      Sequence first(2, 90, 4, 4, 1), second(2, 90, 4, 4, 2), third(2, 90, 4, 4, 3);
      for (Rows Sequence::* side : {&Sequence::k, &Sequence::v})
        for (index_t g = 0; g < 2; ++g)
          for (index_t j = 0; j < 50; ++j)
            for (index_t e = 0; e < 4; ++e)
              (third.*side).at(g, j, e) = (second.*side).at(g, j, e) = (first.*side).at(g, j, e);
      KvCache cache(sizes(2, 4, 4, type, storage));
      cache.append(0, first.k.part(0, 50), first.v.part(0, 50));
      const index_t before = cache.bytes();
      ASSERT_EQ(cache.fork(0), 1);
      ASSERT_EQ(cache.fork(1), 2);
      EXPECT_EQ(cache.bytes(), before);
      cache.append(1, second.k.part(50, 90), second.v.part(50, 90));
      cache.append(0, first.k.part(50, 90), first.v.part(50, 90));
      cache.append(2, third.k.part(50, 90), third.v.part(50, 90));
      const Tensor<float, 4> q = queries<float>({3, 2, 3, 4}, 6);
      const AttentionOptions options = with(Mask::causal());
      expect_same(attended(q, cache.input(), 4, options),
                  expected(q, {&first, &second, &third}, {90, 90, 90}, type, options));
    }
  }
}

TEST(KvCache, what_is_truncated_is_forgotten) {
  for (const KvStorage& storage :
       std::vector<KvStorage>{KvPaged{16}, KvContiguous{200}, KvRing{200}}) {
    Sequence all(1, 170, 8, 8, 1);
    const Sequence other(1, 100, 8, 8, 2);
    KvCache cache(sizes(1, 8, 8, KvType::bf16, storage));
    cache.append(0, other.k.all(), other.v.all());
    cache.truncate(0, 0);
    cache.append(0, all.k.part(0, 70), all.v.part(0, 70));
    cache.append(0, other.k.part(0, 60), other.v.part(0, 60));
    cache.truncate(0, 70);
    EXPECT_EQ(cache.length(0), 70);
    cache.append(0, all.k.part(70, 170), all.v.part(70, 170));
    const Tensor<float, 4> q = queries<float>({1, 1, 4, 8}, 6);
    const AttentionOptions options = with(Mask::causal());
    expect_same(attended(q, cache.input(), 8, options),
                expected(q, {&all}, {170}, KvType::bf16, options));
  }
}

TEST(KvCache, pages_are_given_back) {
  KvCache cache(sizes(1, 8, 8, KvType::f32, KvPaged{16}));
  const Sequence all(1, 64, 8, 8, 1);
  cache.append(0, all.k.all(), all.v.all());
  EXPECT_EQ(cache.bytes(), 4 * 16 * (8 + 8) * 4);
  cache.truncate(0, 17);
  EXPECT_EQ(cache.bytes(), 2 * 16 * (8 + 8) * 4);
  cache.truncate(0, 0);
  EXPECT_EQ(cache.bytes(), 0);
}

// --- rings ---

TEST(KvCache, a_ring_keeps_what_a_window_sees) {
  const index_t n = 700;
  for (const KvType type : {KvType::f32, KvType::int8}) {
    for (const index_t keys : {1, 16, 17, 40, 130}) {
      for (const index_t step : {1, 7, 40}) {
        const index_t q_len = std::min(step, keys);
        const Filled filled(sizes(1, 4, 4, type, KvRing{keys}), n, step, 3);
        EXPECT_GE(n - filled.cache.first(0), keys);
        EXPECT_LE(filled.cache.bytes(), (keys + 30) * 2 * (4 * 4 + 4) + 256);
        expect_as_tensors(filled, 1, q_len, type,
                          with(Mask::causal() & Mask::window(keys - q_len, 0)));
      }
    }
  }
}

TEST(KvCache, keys_that_a_ring_has_overwritten_cannot_be_seen) {
  const Filled filled(sizes(1, 4, 4, KvType::f32, KvRing{32}), 100, 10, 3);
  const index_t first = filled.cache.first(0);
  EXPECT_EQ(first % 16, 0);
  const Tensor<float, 4> q = queries<float>({1, 1, 1, 4}, 1);
  const auto run = [&](const AttentionOptions& options) {
    attended(q, filled.cache.input(), 4, options);
  };
  EXPECT_THROW(run(with(Mask::causal())), OptionError);
  EXPECT_THROW(run({}), OptionError);
  EXPECT_THROW(run(with(Mask::causal() & Mask::window(100 - first, 0))), OptionError);
  run(with(Mask::causal() & Mask::window(99 - first, 0)));
}

// --- numbers that are none ---

TEST(KvCache, a_nan_is_seen_by_the_rows_that_see_its_key_and_by_no_other) {
  for (const KvType type : kAllTypes) {
    if (type == KvType::f64) continue;
    for (const bool in_key : {true, false}) {
      Filled filled(sizes(1, 8, 8, type, KvPaged{32}), 0, 1, 3);
      Sequence& all = filled.sequence = Sequence(1, 60, 8, 8, 1);
      (in_key ? all.k : all.v).at(0, 40, 3) = static_cast<float>(in_key ? kNan : kInf);
      filled.cache.append(0, all.k.all(), all.v.all());
      for (const index_t q_len : {1, 30}) {
        const Tensor<float, 4> q = queries<float>({1, 1, q_len, 8}, 1);
        const AttentionOptions options = with(Mask::causal() & Mask::window(10, 0));
        const Results<float> found = attended(q, filled.cache.input(), 8, options);
        expect_same(found, expected(q, {&all}, {60}, type, options));
        for (index_t i = 0; i < q_len; ++i) {
          const index_t position = 60 - q_len + i;
          EXPECT_EQ(std::isfinite(found.out(0, 0, i, 3)), position < 40 || position > 50)
              << name(type) << " row " << i;
        }
      }
    }
  }
}

TEST(KvCache, what_lies_past_the_end_is_never_read) {
  KvCache cache(sizes(1, 4, 4, KvType::f32, KvPaged{64}));
  Sequence bad(1, 64, 4, 4, 1);
  for (float& x : bad.k.x) x = static_cast<float>(kNan);
  for (float& x : bad.v.x) x = static_cast<float>(kNan);
  cache.append(0, bad.k.all(), bad.v.all());
  cache.truncate(0, 0);
  const Sequence good(1, 19, 4, 4, 2);
  cache.append(0, good.k.all(), good.v.all());
  for (const index_t q_len : {1, 19}) {
    const Tensor<float, 4> q = queries<float>({1, 1, q_len, 4}, 1);
    for (const AttentionOptions& options : {AttentionOptions{}, with(Mask::causal())})
      expect_same(attended(q, cache.input(), 4, options),
                  expected(q, {&good}, {19}, KvType::f32, options));
  }
}

TEST(KvCache, int8_keeps_zeros_extremes_and_the_smallest_numbers) {
  Sequence all(1, 4, 2, 2, 1);
  const float largest = std::numeric_limits<float>::max();
  const float smallest = std::numeric_limits<float>::denorm_min();
  const std::vector<float> rows{0, 0, largest, -largest, smallest, 0, -3, 1.5F};
  all.v.x = rows;
  std::fill(all.k.x.begin(), all.k.x.end(), 0.0F);
  KvCache cache(sizes(1, 2, 2, KvType::int8));
  cache.append(0, all.k.all(), all.v.all());
  const Tensor<float, 4> q = queries<float>({1, 1, 4, 2}, 1);
  AttentionOptions options = with(Mask::window(0, 0));  // each row is its key's value
  const Results<float> found = attended(q, cache.input(), 2, options);
  EXPECT_EQ(found.out(0, 0, 0, 0), 0);
  EXPECT_NEAR(found.out(0, 0, 1, 0) / largest, 1, 1e-6F);  // finite
  EXPECT_EQ(found.out(0, 0, 1, 0), -found.out(0, 0, 1, 1));
  EXPECT_EQ(found.out(0, 0, 2, 0), smallest);
  EXPECT_EQ(found.out(0, 0, 3, 0), -127.0F * (3.0F / 127.0F));
  EXPECT_EQ(found.out(0, 0, 3, 1), 64.0F * (3.0F / 127.0F));  // 63.5 to even
}

// --- where the queries stand ---

TEST(KvCache, a_stated_query_start_must_lie_on_keys_that_are_there) {
  const Filled filled(sizes(1, 4, 4), 20, 20, 3);
  const Tensor<float, 4> q = queries<float>({1, 1, 4, 4}, 1);
  AttentionOptions options = with(Mask::causal());
  options.query_start = index_t{7};
  expect_same(attended(q, filled.cache.input(), 4, options),
              expected(q, {&filled.sequence}, {20}, KvType::f32, options));
  for (const index_t start : {-1, 17, 1000}) {
    options.query_start = start;
    EXPECT_THROW(attended(q, filled.cache.input(), 4, options), OptionError);
  }
  options.mask = Mask();  // nothing speaks of positions
  EXPECT_NO_THROW(attended(q, filled.cache.input(), 4, options));
  options = with(Mask::causal());
  const Tensor<float, 4> many = queries<float>({1, 1, 21, 4}, 1);
  EXPECT_THROW(attended(many, filled.cache.input(), 4, options), OptionError);
}

// --- what is refused ---

template <class F>
std::vector<std::string> refused(const F& f) {
  std::vector<std::string> where;
  try {
    f();
  } catch (const Error& error) {
    for (const Problem& problem : error.problems()) where.push_back(problem.where);
  }
  return where;
}
using Names = std::vector<std::string>;

TEST(KvCache, bad_options_are_refused_with_all_their_problems) {
  const auto made = [](const KvCacheOptions& options) {
    return refused([&] { KvCache cache(options); });
  };
  EXPECT_EQ(made({.batch = -1, .kv_heads = 0, .d_k = 0, .d_v = -2, .storage = KvPaged{24}}),
            (Names{"batch", "kv_heads", "d_k", "d_v", "storage.page_size"}));
  const index_t most = std::numeric_limits<index_t>::max();
  EXPECT_EQ(made(sizes(1, 4, 4, KvType::f32, KvPaged{0})), Names{"storage.page_size"});
  EXPECT_EQ(made(sizes(1, 4, 4, KvType::f32, KvPaged{-16})), Names{"storage.page_size"});
  EXPECT_EQ(made(sizes(1, 4, 4, KvType::f32, KvContiguous{0})), Names{"storage.capacity"});
  EXPECT_EQ(made(sizes(1, 4, 4, KvType::f32, KvContiguous{most})), Names{"storage.capacity"});
  EXPECT_EQ(made(sizes(1, 4, 4, KvType::f32, KvRing{-5})), Names{"storage.keys"});
  EXPECT_EQ(made(sizes(1, most / 16, 4)), Names{"storage"});
  EXPECT_EQ(made(sizes(most, 4, 4)), Names{"storage"});
  KvCacheOptions many = sizes(1, 4, 4);
  many.batch = most;
  EXPECT_EQ(made(many), Names{"batch"});
}

TEST(KvCache, bad_keys_are_refused_and_nothing_is_stored) {
  KvCache cache(sizes(2, 4, 3, KvType::f32, KvContiguous{20}));
  const Sequence good(2, 12, 4, 3, 1), wrong(3, 12, 5, 4, 1);
  cache.append(0, good.k.all(), good.v.all());
  const auto append = [&](const ConstTensor<3>& k, const ConstTensor<3>& v) {
    return refused([&] { cache.append(0, k, v); });
  };
  EXPECT_EQ(append(good.k.all(), good.v.all()), Names{"k"});  // beyond the capacity
  EXPECT_EQ(append(wrong.k.part(0, 3), wrong.v.part(0, 3)), (Names{"k", "v"}));
  EXPECT_EQ(append(good.k.part(0, 3), good.v.part(0, 4)), Names{"v"});
  ConstTensor<3> null = good.k.part(0, 2);
  null.data = nullptr;
  EXPECT_EQ(append(null, good.v.part(0, 2)), Names{"k"});
  ConstTensor<3> bytes = good.k.part(0, 2);
  bytes.dtype = DType::i64;
  EXPECT_EQ(append(bytes, good.v.part(0, 2)), Names{"k"});
  ConstTensor<3> negative = good.k.part(0, 2);
  negative.shape[1] = -2;
  EXPECT_EQ(append(negative, good.v.part(0, 2)), (Names{"k", "v"}));
  ConstTensor<3> endless = good.k.part(0, 2);
  endless.shape[1] = std::numeric_limits<index_t>::max();
  EXPECT_FALSE(append(endless, good.v.part(0, 2)).empty());
  EXPECT_EQ(cache.length(0), 12);
  EXPECT_TRUE(append(good.k.part(0, 0), good.v.part(0, 0)).empty());
  EXPECT_EQ(refused([&] { cache.append(1, good.k.all(), good.v.all()); }), Names{"sequence"});
  EXPECT_EQ(refused([&] { cache.truncate(0, 13); }), Names{"length"});
  EXPECT_EQ(refused([&] { cache.truncate(0, -1); }), Names{"length"});
  EXPECT_EQ(refused([&] { cache.fork(-1); }), Names{"sequence"});
  EXPECT_EQ(refused([&] { (void)cache.input({0, 4}); }), Names{"sequence"});
}

TEST(KvCache, a_ring_does_not_go_back_to_what_is_gone) {
  Filled filled(sizes(1, 4, 4, KvType::f32, KvRing{16}), 100, 10, 3);
  EXPECT_EQ(refused([&] { filled.cache.truncate(0, 40); }), Names{"length"});
  filled.cache.truncate(0, 97);
  EXPECT_EQ(filled.cache.length(0), 97);
}

TEST(KvCache, a_call_that_does_not_fit_is_refused) {
  Filled filled(sizes(2, 4, 4), 20, 20, 3);
  const auto run = [&](const std::array<index_t, 4>& shape, const AttentionOptions& options = {}) {
    return refused([&] { attended(queries<float>(shape, 1), filled.cache.input(), 4, options); });
  };
  EXPECT_EQ(run({1, 3, 1, 4}), Names{"q"});  // heads
  EXPECT_EQ(run({1, 2, 1, 5}), Names{"k"});  // d_k
  EXPECT_FALSE(run({2, 2, 1, 4}).empty());   // batch
  AttentionOptions capped;
  capped.softcap = -1;
  EXPECT_EQ(run({1, 2, 1, 4}, capped), Names{"softcap"});
  EXPECT_EQ(refused([&] {
              attended(queries<double>({1, 2, 1, 4}, 1), filled.cache.input(), 4,
                       AttentionOptions{});
            }),
            Names{"q"});
  const KvInput before = filled.cache.input();
  filled.cache.append(0, filled.sequence.k.part(0, 1), filled.sequence.v.part(0, 1));
  EXPECT_EQ(
      refused([&] { attended(queries<float>({1, 2, 1, 4}, 1), before, 4, AttentionOptions{}); }),
      Names{"kv"});
}

TEST(KvCache, a_fork_takes_the_place_of_another_sequence) {
  for (const KvStorage& storage :
       std::vector<KvStorage>{KvPaged{16}, KvContiguous{100}, KvRing{100}}) {
    const Sequence first(2, 90, 4, 4, 1), second(2, 60, 4, 4, 2);
    KvCache cache(sizes(2, 4, 4, KvType::f32, storage));
    cache.append(0, first.k.part(0, 50), first.v.part(0, 50));
    ASSERT_EQ(cache.fork(0), 1);
    cache.truncate(1, 0);
    cache.append(1, second.k.all(), second.v.all());
    const KvInput before = cache.input();
    cache.fork(0, 1);
    cache.fork(1, 1);
    EXPECT_EQ(cache.sequences(), 2);
    EXPECT_EQ(cache.length(1), 50);
    cache.append(1, first.k.part(50, 90), first.v.part(50, 90));
    EXPECT_EQ(cache.length(0), 50);
    const Tensor<float, 4> q = queries<float>({2, 2, 3, 4}, 6);
    const AttentionOptions options = with(Mask::causal());
    expect_same(attended(q, cache.input(), 4, options),
                expected(q, {&first, &first}, {50, 90}, KvType::f32, options));
    EXPECT_EQ(refused([&] { attended(q, before, 4, options); }), Names{"kv"});
    const index_t bytes = cache.bytes();
    cache.fork(0, 1);
    EXPECT_LE(cache.bytes(), bytes);
    EXPECT_EQ(refused([&] { cache.fork(0, 2); }), Names{"sequence"});
  }
}

TEST(KvCache, an_input_outlives_forks_but_not_its_cache) {
  const Tensor<float, 4> q = queries<float>({1, 2, 1, 4}, 1);
  std::optional<Filled> filled(std::in_place, sizes(2, 4, 4), 20, 20, 3);
  const KvInput input = filled->cache.input();
  filled->cache.fork(0);
  expect_same(attended(q, input, 4, {}),
              expected(q, {&filled->sequence}, {20}, KvType::f32, AttentionOptions{}));
  filled.reset();
  EXPECT_EQ(refused([&] { attended(q, input, 4, AttentionOptions{}); }), Names{"kv"});
}

// --- pieces of one's own ---

TEST(KvInput, pages_of_a_pool_are_read_in_order) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const index_t page = 32, pages = 5, n = 4 * page + 9;
    Sequence all(2, n, 8, 8, 3);
    Tensor<float, 4> k32({pages, 2, page, 8}), v32({pages, 2, page, 8});
    Tensor<bf16, 4> k16({pages, 2, page, 8}), v16({pages, 2, page, 8});
    const std::vector<index_t> order{3, 0, 4, 2, 1};
    for (index_t j = 0; j < n; ++j)
      for (index_t g = 0; g < 2; ++g)
        for (index_t e = 0; e < 8; ++e) {
          const index_t p = order[static_cast<std::size_t>(j / page)];
          k32(p, g, j % page, e) = all.k.at(g, j, e);
          v32(p, g, j % page, e) = all.v.at(g, j, e);
          k16(p, g, j % page, e) = narrow_to_bf16(static_cast<double>(all.k.at(g, j, e)));
          v16(p, g, j % page, e) = narrow_to_bf16(static_cast<double>(all.v.at(g, j, e)));
        }
    const auto slice = [&](auto& pool, index_t p, index_t count) {
      return ConstTensor<3>(&pool(p, 0, 0, 0), dtype, {2, count, 8}, {page * 8, 8, 1});
    };
    KvInput::Sequence sequence;
    for (index_t n0 = 0; n0 < n; n0 += page) {
      const index_t p = order[static_cast<std::size_t>(n0 / page)];
      const index_t count = std::min(page, n - n0);
      if (dtype == DType::f32)
        sequence.pieces.push_back({slice(k32, p, count), slice(v32, p, count)});
      else
        sequence.pieces.push_back({slice(k16, p, count), slice(v16, p, count)});
    }
    const KvInput input({sequence});
    EXPECT_EQ(input.length(0), n);
    const AttentionOptions options = with(Mask::causal());
    for (const index_t q_len : {1, 3, 30}) {
      const Tensor<float, 4> q = queries<float>({1, 4, q_len, 8}, 1);
      expect_same(
          attended(q, input, 8, options),
          expected(q, {&all}, {n}, dtype == DType::f32 ? KvType::f32 : KvType::bf16, options));
    }
  }
}

TEST(KvInput, pieces_that_do_not_fit_are_refused_with_all_their_problems) {
  const Sequence all(2, 64, 8, 8, 3), other(2, 64, 4, 4, 3);
  const auto made = [](const std::vector<KvInput::Sequence>& sequences) {
    return refused([&] { KvInput input(sequences); });
  };
  EXPECT_EQ(made({}), Names{"sequences"});
  const KvInput::Piece good{all.k.part(0, 16), all.v.part(0, 16)};
  const KvInput::Piece odd{all.k.part(16, 20), all.v.part(16, 20)};
  EXPECT_EQ(made({{{good, odd, good}, 0}}), Names{"sequences[0].pieces[1]"});
  EXPECT_EQ(made({{{good}, 8}}), Names{"sequences[0].first"});
  EXPECT_EQ(made({{{good, {other.k.part(0, 16), other.v.part(0, 16)}}, 0}}),
            (Names{"sequences[0].pieces[1].k", "sequences[0].pieces[1].v"}));
  EXPECT_EQ(made({{{good, {all.k.part(0, 0), all.v.part(0, 0)}}, 0}}),
            Names{"sequences[0].pieces[1]"});
}

}  // namespace
}  // namespace glasshead::test
