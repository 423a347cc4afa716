// A linear layer against literal loops over stored bytes: to the bit, whatever the number of
// rows and threads and the instruction set, in every type weights are stored in.
#include "nn/linear.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "glasshead/context.h"

namespace glasshead::nn {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// SplitMix64 (Steele, Lea, Flood 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

struct Type {
  Stored type;
  const char* name;
  index_t elements, bytes;      // of a block
  std::vector<index_t> halves;  // where it has f16 factors
};
const std::vector<Type>& types() {
  static const std::vector<Type> all{
      {Stored::f64, "f64", 1, 8, {}},           {Stored::f32, "f32", 1, 4, {}},
      {Stored::bf16, "bf16", 1, 2, {}},         {Stored::f16, "f16", 1, 2, {0}},
      {Stored::q8_0, "q8_0", 32, 34, {0}},      {Stored::q4_0, "q4_0", 32, 18, {0}},
      {Stored::q4_1, "q4_1", 32, 20, {0, 2}},   {Stored::q5_0, "q5_0", 32, 22, {0}},
      {Stored::q5_1, "q5_1", 32, 24, {0, 2}},   {Stored::q4_k, "q4_k", 256, 144, {0, 2}},
      {Stored::q5_k, "q5_k", 256, 176, {0, 2}}, {Stored::q6_k, "q6_k", 256, 210, {208}}};
  return all;
}

template <class T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
int u8(const std::byte* from) { return std::to_integer<int>(*from); }
float half(const std::byte* from) { return static_cast<float>(widen(read<f16>(from))); }

// Element e of a quantised block, w = q·scale + offset (the table of base/stored.h, from
// ggml-org/ggml's ggml-quants.c).
struct Quantised {
  int q;
  float scale, offset;
};
Quantised quantised(Stored type, const std::byte* b, int e) {
  const auto nibble = [&](const std::byte* bytes) {
    return e < 16 ? u8(bytes + e) & 15 : u8(bytes + e - 16) >> 4;
  };
  const auto bit = [&](const std::byte* bits) {
    return static_cast<int>(read<std::uint32_t>(bits) >> e & 1) * 16;
  };
  switch (type) {
    case Stored::q8_0:
      return {read<std::int8_t>(b + 2 + e), half(b), 0};
    case Stored::q4_0:
      return {nibble(b + 2), half(b), -8 * half(b)};
    case Stored::q4_1:
      return {nibble(b + 4), half(b), half(b + 2)};
    case Stored::q5_0:
      return {nibble(b + 6) + bit(b + 2), half(b), -16 * half(b)};
    case Stored::q5_1:
      return {nibble(b + 8) + bit(b + 4), half(b), half(b + 2)};
    case Stored::q4_k:
    case Stored::q5_k: {
      const int j = e / 32, l = e % 32;
      const std::byte* const s = b + 4;
      const int sc = j < 4 ? u8(s + j) & 63 : (u8(s + j + 4) & 15) | (u8(s + j - 4) >> 6) << 4;
      const int m = j < 4 ? u8(s + j + 4) & 63 : u8(s + j + 4) >> 4 | (u8(s + j) >> 6) << 4;
      const bool has_fifth = type == Stored::q5_k;
      const int both = u8(b + (has_fifth ? 48 : 16) + j / 2 * 32 + l);
      int q = j % 2 == 0 ? both & 15 : both >> 4;
      if (has_fifth) q += (u8(b + 16 + l) >> j & 1) * 16;
      return {q, half(b) * static_cast<float>(sc), -half(b + 2) * static_cast<float>(m)};
    }
    default: {  // q6_k
      const int n = e / 128, r = e % 128 / 32, l = e % 32;
      const int both = u8(b + 64 * n + l + 32 * (r & 1));
      const int q = (r < 2 ? both & 15 : both >> 4) | (u8(b + 128 + 32 * n + l) >> (2 * r) & 3)
                                                          << 4;
      const float scale = half(b + 208) * read<std::int8_t>(b + 192 + 8 * n + 2 * r + l / 16);
      return {q, scale, -32 * scale};
    }
  }
}

float literal(Stored type, const std::byte* b, int e) {
  if (type == Stored::f64) return static_cast<float>(read<double>(b));
  if (type == Stored::bf16) return static_cast<float>(widen(read<bf16>(b)));
  if (type == Stored::f16) return half(b);
  if (!is_quantised(type)) return read<float>(b);
  const Quantised w = quantised(type, b, e);
  const int from = type == Stored::q4_0 ? 8 : type == Stored::q5_0 ? 16 : 32;
  if (from < 32 || type == Stored::q6_k) return static_cast<float>(w.q - from) * w.scale;
  if (type == Stored::q8_0) return static_cast<float>(w.q) * w.scale;
  return static_cast<float>(w.q) * w.scale + w.offset;
}

struct Matrix {
  Type type;
  index_t out, in;
  std::vector<std::byte> bytes;  // one too many in front: no address is aligned
  bool is_transposed = false;

  StoredMatrix stored() const { return {type.type, out, in, bytes.data() + 1, is_transposed}; }
  Quantised quantised_weight(index_t o, index_t e) const {
    const index_t block = o * (in / type.elements) + e / type.elements;
    return quantised(type.type, bytes.data() + 1 + block * type.bytes,
                     static_cast<int>(e % type.elements));
  }
  float weight(index_t o, index_t e) const {
    const std::byte* const data = bytes.data() + 1;
    if (is_transposed) return literal(type.type, data + (e * out + o) * type.bytes, 0);
    const index_t block = o * (in / type.elements) + e / type.elements;
    return literal(type.type, data + block * type.bytes, static_cast<int>(e % type.elements));
  }
  std::byte* block(index_t o, index_t n) {
    return bytes.data() + 1 + (o * (in / type.elements) + n) * type.bytes;
  }
};

Matrix random_matrix(const Type& type, index_t out, index_t in, Random& random) {
  Matrix matrix{type, out, in,
                std::vector<std::byte>(
                    static_cast<std::size_t>(out * (in / type.elements) * type.bytes + 1))};
  std::byte* block = matrix.bytes.data() + 1;
  for (index_t n = 0; n < out * (in / type.elements); ++n, block += type.bytes) {
    for (index_t i = 0; i < type.bytes; ++i) block[i] = static_cast<std::byte>(random.next() >> 56);
    const double x = random.uniform() - 0.5;
    const auto single = static_cast<float>(x);
    const bf16 brief = narrow_to_bf16(x);
    if (type.type == Stored::f64) std::memcpy(block, &x, sizeof x);
    if (type.type == Stored::f32) std::memcpy(block, &single, sizeof single);
    if (type.type == Stored::bf16) std::memcpy(block, &brief, sizeof brief);
    for (const index_t at : type.halves) {  // of every size, subnormal ones among them
      const f16 factor = narrow_to_f16(
          std::ldexp(random.uniform() - 0.5, static_cast<int>(random.next() % 24) - 20));
      std::memcpy(block + at, &factor, sizeof factor);
    }
  }
  return matrix;
}

std::vector<float> numbers(index_t count, Random& random) {
  std::vector<float> x(static_cast<std::size_t>(count));
  for (float& value : x) value = static_cast<float>(random.uniform() * 2 - 1);
  return x;
}

// What one output of a row is before its bias: a chain through the weights or, of finite quantised
// ones, runs of 32 (q6_k: 16) elements whose scale comes last.
float chain(const Matrix& w, index_t o, const float* x) {
  float s = 0;
  for (index_t e = 0; e < w.in; ++e) s = std::fma(w.weight(o, e), x[e], s);
  return s;
}
float runs(const Matrix& w, index_t o, const float* x) {
  const index_t run = w.type.type == Stored::q6_k ? 16 : 32;
  float s = 0;
  for (index_t first = 0; first < w.in; first += run) {
    float t = 0, sums[2] = {};
    for (index_t e = first; e < first + run; ++e)
      t = std::fma(static_cast<float>(w.quantised_weight(o, e).q), x[e], t);
    for (index_t half = 0; half < run / 16; ++half) {
      float a[8];
      for (index_t i = 0; i < 8; ++i)
        a[i] = x[first + 16 * half + i] + x[first + 16 * half + i + 8];
      sums[half] = ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
    }
    const Quantised w_run = w.quantised_weight(o, first);
    s = std::fma(w_run.scale, t, s);
    if (w.type.type != Stored::q8_0)
      s = std::fma(w_run.offset, run == 16 ? sums[0] : sums[0] + sums[1], s);
  }
  return s;
}

bool has_runs(const Matrix& w) {
  if (!is_quantised(w.type.type)) return false;
  for (index_t o = 0; o < w.out; ++o)
    for (index_t e = 0; e < w.in; e += 16)
      if (!std::isfinite(w.quantised_weight(o, e).scale)) return false;
  return true;
}

std::vector<float> product(const std::vector<Matrix>& parts, const std::vector<float>& x,
                           index_t rows, const std::vector<float>& bias) {
  std::vector<float> y;
  for (index_t r = 0; r < rows; ++r) {
    std::size_t n = 0;
    for (const Matrix& part : parts) {
      const bool in_runs = has_runs(part);
      for (index_t o = 0; o < part.out; ++o, ++n) {
        const float* const row = x.data() + r * part.in;
        float s = in_runs ? runs(part, o, row) : chain(part, o, row);
        s += bias.empty() ? 0.0F : bias[n];
        y.push_back(std::isnan(s) ? std::numeric_limits<float>::quiet_NaN() : s);
      }
    }
  }
  return y;
}

Context context_of(const std::string& isa, int threads) {
  ContextOptions options;
  options.isa = isa;
  options.threads = threads;
  return Context(options);
}

std::vector<std::string> sets() {
  std::vector<std::string> names;
  for (const KernelSetInfo& set : kernel_sets())
    if (set.is_supported) names.emplace_back(set.name);
  return names;
}

void expect_same(const std::vector<float>& got, const std::vector<float>& expected,
                 const std::string& what) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t n = 0; n < got.size(); ++n)
    ASSERT_EQ(std::memcmp(&got[n], &expected[n], sizeof(float)), 0)
        << what << ": " << got[n] << " instead of " << expected[n] << " at " << n;
}

std::vector<float> applied(const Linear& layer, const std::vector<float>& x, index_t rows,
                           const Context& context) {
  std::vector<float> y(static_cast<std::size_t>(rows * layer.out()), -77.0F);
  layer.apply({x.data(), {rows, layer.in()}}, {y.data(), {rows, layer.out()}}, context);
  return y;
}

TEST(Linear, computes_what_literal_loops_over_stored_bytes_compute) {
  Random random(11);
  for (const Type& type : types()) {
    for (const auto& [out, blocks] : {std::pair<index_t, index_t>{1, 1},
                                      {33, 2},
                                      {96, 3},
                                      {50, type.elements == 1 ? 300 : 2}}) {
      const index_t in = blocks * type.elements;
      const Matrix matrix = random_matrix(type, out, in, random);
      const std::vector<float> bias = out == 33 ? std::vector<float>{} : numbers(out, random);
      const Linear layer(matrix.stored(), bias);
      EXPECT_EQ(layer.type(), type.type);
      const std::vector<float> x = numbers(9 * in, random);
      const std::vector<float> expected = product({matrix}, x, 9, bias);
      for (const std::string& set : sets()) {
        const Context context = context_of(set, 2);
        for (const index_t rows : {1, 3, 9})
          expect_same(applied(layer, x, rows, context),
                      {expected.begin(), expected.begin() + rows * out},
                      std::string(type.name) + ", " + set + ", rows " + std::to_string(rows));
      }
    }
  }
}

TEST(Linear, gives_a_row_the_same_bits_among_1_to_40_rows_and_with_1_to_3_threads) {
  Random random(12);
  for (const Stored stored : {Stored::f32, Stored::q4_1, Stored::q8_0}) {
    for (const Type& type : types()) {
      if (type.type != stored) continue;
      const index_t in = type.elements == 1 ? 801 : 832,
                    out = 71;  // a tile of 768, then a short one
      const Matrix matrix = random_matrix(type, out, in, random);
      const Linear layer(matrix.stored(), {});
      const std::vector<float> x = numbers(40 * in, random);
      const std::vector<float> expected = product({matrix}, x, 40, {});
      for (const int threads : {1, 2, 3}) {
        const Context context = context_of("", threads);
        for (index_t rows = 1; rows <= 40; ++rows)
          expect_same(applied(layer, x, rows, context),
                      {expected.begin(), expected.begin() + rows * out},
                      std::string(type.name) + ", rows " + std::to_string(rows));
      }
    }
  }
}

TEST(Linear, computes_more_rows_than_a_work_item_holds) {
  Random random(13);
  const Matrix matrix = random_matrix(types()[6], 40, 64, random);
  const Linear layer(matrix.stored(), {});
  const std::vector<float> x = numbers(450 * 64, random);
  const Context context = context_of("", 2);
  expect_same(applied(layer, x, 450, context), product({matrix}, x, 450, {}), "450 rows");
}

TEST(Linear, takes_weights_that_are_stored_transposed) {
  Random random(14);
  for (const Type& type : types()) {
    if (type.elements != 1) continue;
    Matrix matrix = random_matrix(type, 35, 19, random);
    matrix.is_transposed = true;
    const std::vector<float> bias = numbers(35, random), x = numbers(5 * 19, random);
    expect_same(applied(Linear(matrix.stored(), bias), x, 5, default_context()),
                product({matrix}, x, 5, bias), type.name);
  }
}

TEST(Linear, joins_matrices_of_one_input_whatever_their_types) {
  Random random(15);
  std::vector<Matrix> parts;
  for (const auto& [n, out] : {std::pair{6, 40}, {4, 9}, {1, 33}, {5, 1}})
    parts.push_back(random_matrix(types()[static_cast<std::size_t>(n)], out, 96, random));
  std::vector<StoredMatrix> stored;
  for (const Matrix& part : parts) stored.push_back(part.stored());
  const std::vector<float> bias = numbers(83, random), x = numbers(7 * 96, random);
  const Linear layer(stored, bias);
  EXPECT_EQ(layer.out(), 83);
  const std::vector<float> expected = product(parts, x, 7, bias);
  for (const index_t rows : {1, 7})
    expect_same(applied(layer, x, rows, default_context()),
                {expected.begin(), expected.begin() + rows * 83}, std::to_string(rows));
  std::vector<float> row(96);
  for (index_t o = 0, part = 0, first = 0; o < 83; ++o) {
    if (o - first == parts[static_cast<std::size_t>(part)].out)
      first += parts[static_cast<std::size_t>(part++)].out;
    layer.row(o, row);
    for (index_t e = 0; e < 96; ++e)
      ASSERT_EQ(row[static_cast<std::size_t>(e)],
                parts[static_cast<std::size_t>(part)].weight(o - first, e));
  }
}

TEST(Linear, reads_a_row_of_any_type_as_it_is_dequantised) {
  Random random(16);
  for (const Type& type : types()) {
    const index_t in = 2 * type.elements;
    const Matrix matrix = random_matrix(type, 37, in, random);
    const Linear layer(matrix.stored(), {});
    std::vector<float> row(static_cast<std::size_t>(in)), expected(row.size());
    for (const index_t o : {0, 31, 32, 36}) {
      layer.row(o, row);
      for (index_t e = 0; e < in; ++e) expected[static_cast<std::size_t>(e)] = matrix.weight(o, e);
      expect_same(row, expected, type.name);
    }
  }
}

// With d infinite, what is d·(q - 8) would be NaN as d·q - 8·d.
TEST(Linear, follows_ieee_where_a_block_s_factor_is_no_finite_number) {
  Random random(17);
  for (const Type& type : types()) {
    if (type.halves.empty() || type.elements == 1) continue;
    const index_t in = 2 * type.elements;
    for (const float factor : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
      Matrix matrix = random_matrix(type, 34, in, random);
      const f16 bits = narrow_to_f16(factor);
      std::memcpy(matrix.block(33, 1) + type.halves[0], &bits, sizeof bits);
      const Linear layer(matrix.stored(), {});
      std::vector<float> x(static_cast<std::size_t>(5 * in), 0.0F);
      for (std::size_t r = 0; r < 5; ++r)  // one element of the block each
        x[(r + 1) * static_cast<std::size_t>(in) - 1 - r] = 1;
      std::vector<float> dense = numbers(5 * in, random);
      for (const index_t rows : {1, 5}) {
        for (const std::vector<float>& input : {x, dense}) {
          const std::vector<float> expected = product({matrix}, input, rows, {});
          expect_same(applied(layer, input, rows, default_context()), expected, type.name);
        }
      }
    }
  }
}

// The first places of a word of nibbles are 2^24 times the last ones: x over that is rounded.
TEST(Linear, computes_subnormal_rows_like_others) {
  Random random(21);
  for (const Type& type : types()) {
    const index_t in = type.elements == 1 ? 64 : 2 * std::max<index_t>(32, type.elements);
    const Matrix matrix = random_matrix(type, 34, in, random);
    const Linear layer(matrix.stored(), {});
    for (const int exponent : {-96, -110, -126, -135}) {
      std::vector<float> x = numbers(3 * in, random);
      for (float& value : x) value = std::ldexp(value, exponent);
      const std::vector<float> expected = product({matrix}, x, 3, {});
      for (const index_t rows : {1, 3})
        expect_same(applied(layer, x, rows, default_context()),
                    {expected.begin(), expected.begin() + rows * 34}, type.name);
    }
  }
}

TEST(Linear, lets_nan_and_infinity_in_x_reach_only_their_row) {
  Random random(18);
  const Matrix matrix = random_matrix(types()[1], 40, 10, random);
  const Linear layer(matrix.stored(), {});
  std::vector<float> x = numbers(3 * 10, random);
  x[13] = std::numeric_limits<float>::quiet_NaN();
  x[25] = kInfinity;
  const std::vector<float> y = applied(layer, x, 3, default_context());
  expect_same(y, product({matrix}, x, 3, {}), "x");
  EXPECT_TRUE(std::isfinite(y[0]) && std::isnan(y[40]) && std::isinf(y[80]));
}

TEST(Linear, takes_rows_with_any_strides) {
  Random random(19);
  const Matrix matrix = random_matrix(types()[4], 36, 32, random);
  const Linear layer(matrix.stored(), {});
  const std::vector<float> x = numbers(5 * 32, random);
  std::vector<float> turned(x.size()), y(36 * 5);
  for (std::size_t r = 0; r < 5; ++r)
    for (std::size_t e = 0; e < 32; ++e) turned[e * 5 + r] = x[r * 32 + e];
  layer.apply({turned.data(), {5, 32}, {1, 5}}, {y.data(), {5, 36}, {1, 5}}, default_context());
  const std::vector<float> expected = product({matrix}, x, 5, {});
  for (std::size_t r = 0; r < 5; ++r)
    for (std::size_t o = 0; o < 36; ++o) ASSERT_EQ(y[o * 5 + r], expected[r * 36 + o]);
}

TEST(Linear, of_no_input_is_its_bias_and_of_no_rows_nothing) {
  const std::vector<float> bias{1, 2, 3};
  const Linear layer(StoredMatrix{.out = 3, .in = 0}, bias);
  expect_same(applied(layer, {}, 2, default_context()), {1, 2, 3, 1, 2, 3}, "in 0");
  expect_same(applied(layer, {}, 5, default_context()),
              {1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3}, "in 0");
  EXPECT_TRUE(applied(layer, {}, 0, default_context()).empty());
}

TEST(Linear, keeps_quantised_weights_about_as_small_as_they_are_stored) {
  Random random(20);
  for (const Type& type : types()) {
    const index_t in = 4 * type.elements, out = 64;
    const Matrix matrix = random_matrix(type, out, in, random);
    const index_t kept = type.type == Stored::f64 ? 4 : type.bytes;
    const index_t stored = out * in / type.elements * kept;
    const Linear layer(matrix.stored(), {});
    EXPECT_LE(layer.bytes() - out * 4, stored + stored * 3 / 100) << type.name;
  }
}

}  // namespace
}  // namespace glasshead::nn
