// The kernels of a linear layer, every set against the formulas of kernels/linear_kernels.h written
// out element by element, to the bit; their buffers end where the layout says.
#include "kernels/linear_kernels.h"

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

constexpr WeightForm kForms[] = {WeightForm::f32,  WeightForm::bf16, WeightForm::f16,
                                 WeightForm::q8_0, WeightForm::q4_0, WeightForm::q4_1,
                                 WeightForm::q5_0, WeightForm::q5_1, WeightForm::q4_k,
                                 WeightForm::q5_k, WeightForm::q6_k};
static_assert(std::size(kForms) == kWeightForms);

// A form's block of 32 outputs, as the table of linear_kernels.h has it.
struct Block {
  index_t elements, bytes, head;
  index_t scales, high;  // bytes of a sub-block's before its low bits
};
Block block_of(WeightForm form) {
  switch (form) {
    case WeightForm::f32:
      return {1, 128, 0, 0, 0};
    case WeightForm::bf16:
    case WeightForm::f16:
      return {1, 64, 0, 0, 0};
    case WeightForm::q8_0:
      return {32, 1088, 64, 0, 0};
    case WeightForm::q4_0:
      return {32, 576, 64, 0, 0};
    case WeightForm::q4_1:
      return {32, 640, 128, 0, 0};
    case WeightForm::q5_0:
      return {32, 704, 64, 0, 128};
    case WeightForm::q5_1:
      return {32, 768, 128, 0, 128};
    case WeightForm::q4_k:
      return {256, 128 + 8 * 576, 128, 64, 0};
    case WeightForm::q5_k:
      return {256, 128 + 8 * 704, 128, 64, 128};
    case WeightForm::q6_k:
      return {256, 64 + 8 * 832, 64, 64, 256};
  }
  return {};
}

template <class T>
T read(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
float half_at(const unsigned char* from) {
  const auto bits = read<std::uint16_t>(from);
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  const double size =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25);
  return static_cast<float>((bits & 0x8000) != 0 ? -size : size);
}

// w = q·scale + offset; of forms without runs q is the weight.
struct Weight {
  float q, scale, offset;
};
Weight weight(WeightForm form, const unsigned char* group, index_t o, index_t e) {
  const Block is = block_of(form);
  const unsigned char* const block = group + e / is.elements * is.bytes;
  if (form == WeightForm::f32) return {read<float>(block + 4 * o), 0, 0};
  if (form == WeightForm::f16) return {half_at(block + 2 * o), 0, 0};
  if (form == WeightForm::bf16) {
    const std::uint32_t wide = std::uint32_t{read<std::uint16_t>(block + 2 * o)} << 16;
    return {read<float>(reinterpret_cast<const unsigned char*>(&wide)), 0, 0};
  }
  const float d = half_at(block + 2 * o);
  const auto at = static_cast<int>(e % 32);
  if (form == WeightForm::q8_0)
    return {static_cast<float>(read<std::int8_t>(block + is.head + at * 32 + o)), d, 0};
  const unsigned char* const sub =
      block + is.head + e % is.elements / 32 * (is.scales + is.high + 512);
  const auto word = [&](index_t offset) { return read<std::uint32_t>(sub + offset + 4 * o); };
  int q = static_cast<int>(word(is.scales + is.high + at / 8 * 128) >> (4 * (at % 8)) & 15);
  const int series = 2 * (at / 8) + at % 2, byte = at % 8 / 2;
  if (is.high == 128) q += static_cast<int>(word(is.scales) >> (series + 8 * byte) & 1) * 16;
  if (is.high == 256)
    q += static_cast<int>(word(is.scales + series / 4 * 128) >> (2 * (series % 4) + 8 * byte) & 3) *
         16;
  const auto whole = static_cast<float>(q);
  const auto scale = [&](index_t n) {
    return static_cast<float>(read<std::int8_t>(sub + n * 32 + o));
  };
  switch (form) {
    case WeightForm::q4_0:
      return {whole, d, -8 * d};
    case WeightForm::q5_0:
      return {whole, d, -16 * d};
    case WeightForm::q6_k:
      return {whole, d * scale(at / 16), -32 * (d * scale(at / 16))};
    case WeightForm::q4_k:
    case WeightForm::q5_k:
      return {whole, d * scale(0), -(half_at(block + 64 + 2 * o) * scale(1))};
    default:
      return {whole, d, half_at(block + 64 + 2 * o)};
  }
}

// Any bits as quants; finite factors of every size, the largest f16 and subnormal ones among them.
std::vector<unsigned char> random_group(WeightForm form, index_t in, Random& random) {
  const Block is = block_of(form);
  std::vector<unsigned char> group(static_cast<std::size_t>(in / is.elements * is.bytes));
  for (unsigned char& byte : group) byte = static_cast<unsigned char>(random.below(256));
  const auto make_finite = [&](std::size_t at) {  // a 16-bit float of either kind
    const bool is_half = form != WeightForm::bf16;
    std::uint16_t bits = read<std::uint16_t>(group.data() + at);
    if (is_half && (bits & 0x7c00) == 0x7c00) bits = static_cast<std::uint16_t>(bits ^ 0x0400);
    if (!is_half) bits = static_cast<std::uint16_t>((bits & 0x83ff) | 0x3c00);
    std::memcpy(group.data() + at, &bits, 2);
  };
  for (index_t n = 0; n < in / is.elements; ++n) {
    const auto block = static_cast<std::size_t>(n * is.bytes);
    if (form == WeightForm::f32) {
      for (std::size_t o = 0; o < 32; ++o) {
        const float w = static_cast<float>(random.uniform() - 0.5);
        std::memcpy(group.data() + block + 4 * o, &w, 4);
      }
      continue;
    }
    const index_t halves = is.elements == 1 ? 32 : is.head / 2;
    for (index_t o = 0; o < halves; ++o) make_finite(block + static_cast<std::size_t>(2 * o));
    if (form != WeightForm::q4_k && form != WeightForm::q5_k) continue;
    for (std::size_t sub = 0; sub < 8; ++sub)  // scales have six bits
      for (std::size_t o = 0; o < 64; ++o)
        group[block + 128 + sub * static_cast<std::size_t>(is.scales + is.high + 512) + o] &= 63;
  }
  return group;
}

std::vector<float> numbers(index_t count, Random& random) {
  std::vector<float> x(static_cast<std::size_t>(count));
  for (float& value : x) value = static_cast<float>(random.uniform() * 2 - 1);
  return x;
}

float quiet(float x) { return std::isnan(x) ? std::numeric_limits<float>::quiet_NaN() : x; }

// The sums of every run of x.
std::vector<float> sums_of(WeightForm form, const std::vector<float>& x) {
  std::vector<float> sixteens, pairs;
  for (std::size_t n = 0; n + 16 <= x.size(); n += 16) {
    float a[8];
    for (std::size_t i = 0; i < 8; ++i) a[i] = x[n + i] + x[n + i + 8];
    sixteens.push_back(((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7])));
  }
  for (std::size_t n = 0; n + 2 <= sixteens.size(); n += 2)
    pairs.push_back(sixteens[n] + sixteens[n + 1]);
  return run_of(form) == 16 ? sixteens : pairs;
}

// w [in, 32], a row x -> y [32]
std::vector<float> product_of_runs(WeightForm form, const std::vector<Weight>& w,
                                   const std::vector<float>& x, const std::vector<float>& bias) {
  const std::vector<float> sums = sums_of(form, x);
  const auto run = static_cast<std::size_t>(run_of(form));
  std::vector<float> y;
  for (std::size_t o = 0; o < 32; ++o) {
    float s = 0;
    for (std::size_t first = 0; first < x.size(); first += run) {
      float t = 0;
      for (std::size_t e = first; e < first + run; ++e) t = std::fma(w[e * 32 + o].q, x[e], t);
      s = std::fma(w[first * 32 + o].scale, t, s);
      if (form != WeightForm::q8_0) s = std::fma(w[first * 32 + o].offset, sums[first / run], s);
    }
    y.push_back(quiet(s + bias[o]));
  }
  return y;
}

// y [rows, 32]
std::vector<float> product(const std::vector<float>& w, index_t in, const std::vector<float>& x,
                           index_t rows, const std::vector<float>& bias) {
  std::vector<float> y(static_cast<std::size_t>(rows * 32));
  for (index_t r = 0; r < rows; ++r)
    for (index_t o = 0; o < 32; ++o) {
      float s = 0;
      for (index_t e = 0; e < in; ++e)
        s = std::fma(w[static_cast<std::size_t>(e * 32 + o)],
                     x[static_cast<std::size_t>(r * in + e)], s);
      y[static_cast<std::size_t>(r * 32 + o)] = quiet(s + bias[static_cast<std::size_t>(o)]);
    }
  return y;
}

void expect_same(const float* got, const float* expected, index_t count, const std::string& what) {
  for (index_t n = 0; n < count; ++n)
    ASSERT_EQ(std::memcmp(got + n, expected + n, sizeof(float)), 0)
        << what << ": " << got[n] << " instead of " << expected[n] << " at " << n;
}

// One form's group and a row of x, and what comes of them.
struct Layer {
  Layer(WeightForm the_form, index_t the_in, Random& random)
      : form(the_form), in(the_in), bytes(random_group(form, in, random)), x(numbers(in, random)) {
    for (index_t e = 0; e < in; ++e)
      for (index_t o = 0; o < 32; ++o) w.push_back(weight(form, bytes.data(), o, e));
    for (const Weight& one : w) q.push_back(one.q);
    bias = numbers(32, random);
    y = run_of(form) == 0 ? product(q, in, x, 1, bias) : product_of_runs(form, w, x, bias);
  }
  // As takes_x_in_place says.
  std::vector<float> placed() const {
    std::vector<float> all = x;
    for (std::size_t e = 0; takes_x_in_place(form) && e < all.size(); ++e)
      if (e % 8 != 7) all[e] = std::ldexp(all[e], -4 * static_cast<int>(e % 8));
    return all;
  }

  WeightForm form;
  index_t in;
  std::vector<unsigned char> bytes;
  std::vector<float> x, q, bias, y;
  std::vector<Weight> w;
};

// Elements [first, first + depth) are unpacked as they are, and as a tile give the row.
void expect_unpacked(const Layer& layer, const Guarded<unsigned char>& group, const KernelSet& set,
                     index_t first, const std::string& what) {
  const index_t depth = layer.in - first, run = run_of(layer.form);
  const index_t runs = run == 0 ? 0 : depth / run;
  const bool has_offsets = has_offset(layer.form);
  Guarded<float> tile(depth * 32, Edge::end, 64), scale(runs * 32, Edge::end, 64),
      offset(has_offsets ? runs * 32 : 0, Edge::end, 64);
  set.linear.unpack({.form = layer.form,
                     .weights = &group[0],
                     .first = first,
                     .depth = depth,
                     .tile = tile.data(),
                     .scale = scale.data(),
                     .offset = offset.data()});
  expect_same(tile.data(), layer.q.data() + first * 32, depth * 32, what + ", unpacked");
  for (index_t n = 0; n < runs * 32; ++n) {
    const Weight& w = layer.w[static_cast<std::size_t>((first + n / 32 * run) * 32 + n % 32)];
    ASSERT_EQ(scale[n], w.scale) << what;
    if (has_offsets) {
      ASSERT_EQ(offset[n], w.offset) << what;
    }
  }
  if (first > 0) return;
  const Guarded<float> x(layer.x, Edge::end), x_sums(sums_of(layer.form, layer.x), Edge::end),
      bias(layer.bias, Edge::end, 64);
  Guarded<float> sums(32, Edge::end, 64), y(32, Edge::end);
  set.linear.tile({.x = &x[0],
                   .x_stride = layer.in,
                   .rows = 1,
                   .tile = tile.data(),
                   .depth = depth,
                   .run = run,
                   .has_offset = has_offsets,
                   .scale = scale.data(),
                   .offset = offset.data(),
                   .x_sums = has_offsets ? &x_sums[0] : nullptr,
                   .x_sums_stride = run == 0 ? 0 : layer.in / run,
                   .sums = sums.data(),
                   .is_first = true,
                   .is_last = true,
                   .bias = &bias[0],
                   .count = 32,
                   .y = y.data(),
                   .y_stride = 32});
  expect_same(y.data(), layer.y.data(), 32, what + ", a row of a tile");
}

TEST(LinearKernels, compute_every_form_of_weights_to_the_bit) {
  Random random(1);
  for (const WeightForm form : kForms) {
    const index_t elements = block_of(form).elements;
    for (const index_t in : {elements, 2 * elements, elements == 1 ? 37 : 3 * elements}) {
      const Layer layer(form, in, random);
      const Guarded<unsigned char> group(layer.bytes, Edge::end, 64);
      const Guarded<float> x(layer.placed(), Edge::end), x_sums(sums_of(form, layer.x), Edge::end),
          bias(layer.bias, Edge::end, 64);
      for (const KernelSet& set : runnable_sets()) {
        const std::string what = std::string(set.name) + ", form " +
                                 std::to_string(static_cast<int>(form)) + ", in " +
                                 std::to_string(in);
        expect_unpacked(layer, group, set, 0, what);
        expect_unpacked(layer, group, set, in - elements, what);
        for (const index_t count : {1, 7, 8, 31, 32}) {
          Guarded<float> y(count, Edge::end);
          set.linear.row({.form = form,
                          .weights = &group[0],
                          .in = in,
                          .x = &x[0],
                          .x_sums = has_offset(form) ? &x_sums[0] : nullptr,
                          .bias = &bias[0],
                          .count = count,
                          .y = y.data()});
          expect_same(y.data(), layer.y.data(), count, what + ", a row");
        }
      }
    }
  }
}

TEST(LinearKernels, give_a_row_the_same_bits_among_any_number_of_rows) {
  Random random(2);
  constexpr index_t kIn = 41, kRows = 31;
  const std::vector<float> w_all = numbers(kIn * 32, random);
  const Guarded<float> w(w_all, Edge::end, 64);
  const std::vector<float> x_all = numbers(kIn * kRows, random);
  const std::vector<float> bias_all = numbers(32, random);
  const Guarded<float> bias(bias_all, Edge::end, 64);
  const std::vector<float> expected = product(w_all, kIn, x_all, kRows, bias_all);
  for (const KernelSet& set : runnable_sets()) {
    for (index_t rows = 1; rows <= kRows; rows += rows < 14 ? 1 : 5) {
      for (const index_t split :
           {index_t{0}, index_t{1}, index_t{20}}) {  // depth of the first tile
        const Guarded<float> x(std::vector<float>(x_all.begin(), x_all.begin() + kIn * rows),
                               Edge::end);
        const index_t count = rows % 2 == 0 ? 32 : 19;
        Guarded<float> sums(rows * 32, Edge::end, 64);
        Guarded<float> y(rows * count, Edge::end);
        LinearTileArgs args{.x = &x[0],
                            .x_stride = kIn,
                            .rows = rows,
                            .tile = &w[0],
                            .depth = split,
                            .sums = sums.data(),
                            .is_first = true,
                            .is_last = false,
                            .bias = &bias[0],
                            .count = count,
                            .y = y.data(),
                            .y_stride = count};
        if (split > 0) set.linear.tile(args);
        args.is_first = split == 0;
        args.is_last = true;
        args.x += split;
        args.tile += split * 32;
        args.depth = kIn - split;
        set.linear.tile(args);
        for (index_t r = 0; r < rows; ++r)
          expect_same(
              y.data() + r * count, expected.data() + r * 32, count,
              std::string(set.name) + ", row " + std::to_string(r) + " of " + std::to_string(rows));
      }
    }
  }
}

TEST(LinearKernels, write_every_nan_as_one_quiet_nan_and_keep_infinities) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Guarded<float> w(std::vector<float>(2 * 32, 1.0F), Edge::end, 64);
  const std::uint32_t signalling = 0xff800123U;
  std::memcpy(&w[0], &signalling, 4);
  w[1] = kInfinity;
  w[2] = kInfinity;
  w[32 + 2] = -kInfinity;
  w[3] = std::numeric_limits<float>::max();
  w[32 + 3] = std::numeric_limits<float>::max();
  const Guarded<float> x(std::vector<float>{1, 1}, Edge::end);
  const Guarded<float> bias(std::vector<float>(32, 0.0F), Edge::end, 64);
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const float expected[] = {kNan, kInfinity, kNan, kInfinity, 2};
  for (const KernelSet& set : runnable_sets()) {
    float y[32], sums[32];
    set.linear.row({.form = WeightForm::f32,
                    .weights = &w[0],
                    .in = 2,
                    .x = &x[0],
                    .bias = &bias[0],
                    .count = 32,
                    .y = y});
    expect_same(y, expected, 5, set.name);
    set.linear.tile({.x = &x[0],
                     .x_stride = 2,
                     .rows = 1,
                     .tile = &w[0],
                     .depth = 2,
                     .sums = sums,
                     .is_first = true,
                     .is_last = true,
                     .bias = &bias[0],
                     .count = 32,
                     .y = y,
                     .y_stride = 32});
    expect_same(y, expected, 5, set.name);
  }
}

}  // namespace
}  // namespace glasshead::test
