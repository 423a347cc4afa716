// The kernels of linear_kernels.h for one vector type V of f32. Beside the operations that
// panel.inl.h lists it has a register Word of W unsigned 32-bit numbers:
//
//   load_word(from)           from memory aligned to the vector
//   both(a, mask)             a & mask
//   either(a, b)              a | b
//   moved<n>(a)               a << n, or a >> -n
//   whole(a)                  a as a float; the numbers are below 2^24
//
// and a type L says how the tile's product is cut: L::kVectors vectors of outputs by L::kRows rows.
#pragma once

#include "kernels/linear_kernels.h"
#include "kernels/panel.inl.h"

namespace {

using glasshead::kGroup;
using glasshead::WeightForm;

// How C vectors of weights are used, element by element: multiplied with a row, or kept.
template <class V, int C>
struct MultiplyRow {
  const float* x;
  V acc[C];
  V xe;
  [[gnu::always_inline]] inline void at(index_t e) { xe = V::set1(x[e]); }
  [[gnu::always_inline]] inline void take(int c, V w) { acc[c] = V::accumulate(w, xe, acc[c]); }
};
template <class V>
struct KeepTile {
  float* tile;
  float* here;
  [[gnu::always_inline]] inline void at(index_t e) { here = tile + e * kGroup; }
  [[gnu::always_inline]] inline void take(int c, V w) { V::store(here + c * V::W, w); }
};

// --- elements ---

template <class V, int C, class E, class Use>
[[gnu::always_inline]] inline void walk_elements(const E* w, index_t first, index_t depth,
                                                 Use& use) {
  for (index_t e = 0; e < depth; ++e) {
    use.at(e);
    for (int c = 0; c < C; ++c) use.take(c, load_wide<V>(w + (first + e) * kGroup + c * V::W));
  }
}

// --- quantised blocks ---

// A block's layout (linear_kernels.h): a head for `super` sub-blocks of 32 elements each.
template <WeightForm kForm>
struct Form {
  static constexpr bool kIsSuper =
      kForm == WeightForm::q4_k || kForm == WeightForm::q5_k || kForm == WeightForm::q6_k;
  static constexpr bool kHasLeast = kForm == WeightForm::q4_1 || kForm == WeightForm::q5_1 ||
                                    kForm == WeightForm::q4_k || kForm == WeightForm::q5_k;
  static constexpr int kHigh =
      kForm == WeightForm::q6_k ? 2
      : kForm == WeightForm::q5_0 || kForm == WeightForm::q5_1 || kForm == WeightForm::q5_k
          ? 1
          : 0;  // bits above the low four
  static constexpr index_t kSubBlocks = kIsSuper ? 8 : 1;
  static constexpr index_t kHead = (kHasLeast ? 2 : 1) * 2 * kGroup;  // d, m
  static constexpr index_t kScales = kIsSuper ? 2 * kGroup : 0;       // sc, sm
  static constexpr index_t kHighBytes = kHigh * 4 * kGroup;
  static constexpr index_t kLowBytes = kForm == WeightForm::q8_0 ? 32 * kGroup : 16 * kGroup;
  static constexpr index_t kSubBytes = kScales + kHighBytes + kLowBytes;
  static constexpr index_t kElements = 32 * kSubBlocks;
  static constexpr index_t kBytes = kHead + kSubBlocks * kSubBytes;
};

// What turns C vectors of whole numbers q into weights: fma(q, scale, offset).
template <class V, int C>
struct Line {
  V scale[C], offset[C];
};

// Of the elements [16 half, 16 half + 16) of a sub-block; `lane` is the first output's.
template <class V, int C, WeightForm kForm>
[[gnu::always_inline]] inline void line_of(const unsigned char* block, const unsigned char* sub,
                                           index_t lane, int half, Line<V, C>& line) {
  using F = Form<kForm>;
  const auto* d = reinterpret_cast<const F16*>(block) + lane;
  for (int c = 0; c < C; ++c) {
    line.scale[c] = load_wide<V>(d + c * V::W);
    if constexpr (F::kIsSuper) {
      const auto* sc = reinterpret_cast<const Int8*>(sub) + lane + c * V::W;
      if constexpr (kForm == WeightForm::q6_k) {
        line.scale[c] = V::mul(line.scale[c], load_wide<V>(sc + half * kGroup));
        line.offset[c] = V::mul(line.scale[c], V::set1(-32));
      } else {
        line.scale[c] = V::mul(line.scale[c], load_wide<V>(sc));
        const V least = load_wide<V>(d + kGroup + c * V::W);
        line.offset[c] = V::mul(V::mul(least, V::set1(-1)), load_wide<V>(sc + kGroup));
      }
    } else if constexpr (F::kHasLeast) {
      line.offset[c] = load_wide<V>(d + kGroup + c * V::W);
    } else if constexpr (F::kHigh == 1) {
      line.offset[c] = V::mul(line.scale[c], V::set1(-16));
    } else {
      line.offset[c] = V::mul(line.scale[c], V::set1(-8));
    }
  }
}

// Eight elements of which four bits are all: masked where they stand, which multiplies them by
// 16^k, and multiplied by the scale over 16^k. scale[k][c].
template <class V, int C, class Use>
[[gnu::always_inline]] inline void use_nibbles(const std::uint32_t* low, index_t e,
                                               const V (&scale)[4][C], const V (&offset)[C],
                                               Use& use) {
  typename V::Word word[C];
  for (int c = 0; c < C; ++c) word[c] = V::load_word(low + c * V::W);
  for (int half = 0; half < 2; ++half) {
    for (int k = 0; k < 4; ++k) {
      use.at(e + 4 * half + k);
      for (int c = 0; c < C; ++c) {
        const V q = V::whole(V::both(word[c], 0xFU << (4 * k)));
        use.take(c, V::fma(q, scale[k][c], offset[c]));
      }
    }
    if (half == 0)
      for (int c = 0; c < C; ++c) word[c] = V::template moved<-16>(word[c]);
  }
}

template <class V, int C, WeightForm kForm, class Use>
[[gnu::always_inline]] inline void use_low(const unsigned char* block, const unsigned char* sub,
                                           index_t lane, index_t e, Use& use) {
  using F = Form<kForm>;
  Line<V, C> line;
  line_of<V, C, kForm>(block, sub, lane, 0, line);
  V scale[4][C];
  for (int k = 0; k < 4; ++k)
    for (int c = 0; c < C; ++c)
      scale[k][c] =
          V::mul(line.scale[c], V::set1(1.0F / static_cast<float>(std::uint32_t{1} << (4 * k))));
  const auto* low = reinterpret_cast<const std::uint32_t*>(sub + F::kScales) + lane;
  for (int n = 0; n < 4; ++n)
    use_nibbles<V, C>(low + n * kGroup, e + 8 * n, scale, line.offset, use);
}

// The bits above the low four of elements 8n, 8n + 2, ... (odd: 8n + 1, ...), each four above the
// beginning of its byte.
template <class V, int kHigh, int kPlace>
[[gnu::always_inline]] inline typename V::Word high_bits(const std::uint32_t* high) {
  if constexpr (kHigh == 1)
    return V::both(V::template moved<4 - kPlace>(V::load_word(high)), 0x10101010U);
  else
    return V::both(
        V::template moved<4 - 2 * (kPlace % 4)>(V::load_word(high + kPlace / 4 * kGroup)),
        0x30303030U);
}

// Eight elements of five or six bits, brought into bytes: `even` holds elements 0, 2, 4, 6.
template <class V, int C, int kHigh, int kEight, class Use>
[[gnu::always_inline]] inline void use_eight(const std::uint32_t* low, const std::uint32_t* high,
                                             index_t e, const V (&scale)[3][C],
                                             const V (&offset)[C], Use& use) {
  typename V::Word bytes[2][C];
  for (int c = 0; c < C; ++c) {
    const typename V::Word word = V::load_word(low + kEight * kGroup + c * V::W);
    const std::uint32_t* const above = high + c * V::W;
    bytes[0][c] = V::either(V::both(word, 0x0F0F0F0FU), high_bits<V, kHigh, 2 * kEight>(above));
    bytes[1][c] = V::either(V::both(V::template moved<-4>(word), 0x0F0F0F0FU),
                            high_bits<V, kHigh, 2 * kEight + 1>(above));
  }
  for (int n = 0; n < 8; ++n) {
    use.at(e + n);
    for (int c = 0; c < C; ++c) {
      const typename V::Word from = bytes[n % 2][c];
      const int byte = n / 2;
      const V q = byte == 3 ? V::whole(V::template moved<-24>(from))
                            : V::whole(V::both(from, 0xFFU << (8 * byte)));
      use.take(c, V::fma(q, scale[byte == 3 ? 0 : byte][c], offset[c]));
    }
  }
}

template <class V, int C, WeightForm kForm, class Use>
[[gnu::always_inline]] inline void use_high(const unsigned char* block, const unsigned char* sub,
                                            index_t lane, index_t e, Use& use) {
  using F = Form<kForm>;
  const auto* high = reinterpret_cast<const std::uint32_t*>(sub + F::kScales) + lane;
  const auto* low = reinterpret_cast<const std::uint32_t*>(sub + F::kScales + F::kHighBytes) + lane;
  Line<V, C> line;
  V scale[3][C];
  const auto prepare = [&](int half) __attribute__((always_inline)) {
    line_of<V, C, kForm>(block, sub, lane, half, line);
    for (int c = 0; c < C; ++c) {
      scale[0][c] = line.scale[c];
      scale[1][c] = V::mul(line.scale[c], V::set1(0x1p-8F));
      scale[2][c] = V::mul(line.scale[c], V::set1(0x1p-16F));
    }
  };
  prepare(0);
  use_eight<V, C, F::kHigh, 0>(low, high, e, scale, line.offset, use);
  use_eight<V, C, F::kHigh, 1>(low, high, e + 8, scale, line.offset, use);
  if constexpr (kForm == WeightForm::q6_k) prepare(1);
  use_eight<V, C, F::kHigh, 2>(low, high, e + 16, scale, line.offset, use);
  use_eight<V, C, F::kHigh, 3>(low, high, e + 24, scale, line.offset, use);
}

template <class V, int C, class Use>
[[gnu::always_inline]] inline void use_bytes(const unsigned char* block, index_t lane, index_t e,
                                             Use& use) {
  const auto* d = reinterpret_cast<const F16*>(block) + lane;
  const auto* q = reinterpret_cast<const Int8*>(block + Form<WeightForm::q8_0>::kHead) + lane;
  V scale[C];
  for (int c = 0; c < C; ++c) scale[c] = load_wide<V>(d + c * V::W);
  for (int n = 0; n < 32; ++n) {
    use.at(e + n);
    for (int c = 0; c < C; ++c)
      use.take(c, V::mul(load_wide<V>(q + n * kGroup + c * V::W), scale[c]));
  }
}

template <class V, int C, WeightForm kForm, class Use>
[[gnu::always_inline]] inline void walk_blocks(const void* weights, index_t lane, index_t first,
                                               index_t depth, Use& use) {
  using F = Form<kForm>;
  const auto* block = static_cast<const unsigned char*>(weights) + first / F::kElements * F::kBytes;
  for (index_t e = 0; e < depth; block += F::kBytes) {
    const unsigned char* sub = block + F::kHead;
    for (index_t n = 0; n < F::kSubBlocks; ++n, e += 32, sub += F::kSubBytes) {
      if constexpr (kForm == WeightForm::q8_0)
        use_bytes<V, C>(block, lane, e, use);
      else if constexpr (F::kHigh == 0)
        use_low<V, C, kForm>(block, sub, lane, e, use);
      else
        use_high<V, C, kForm>(block, sub, lane, e, use);
    }
  }
}

// --- kernels ---

template <class V, int C, WeightForm kForm, class Use>
void walk_of(const void* weights, index_t lane, index_t first, index_t depth, Use& use) noexcept {
  if constexpr (kForm == WeightForm::f32)
    walk_elements<V, C>(static_cast<const float*>(weights) + lane, first, depth, use);
  else if constexpr (kForm == WeightForm::bf16)
    walk_elements<V, C>(static_cast<const Bf16*>(weights) + lane, first, depth, use);
  else if constexpr (kForm == WeightForm::f16)
    walk_elements<V, C>(static_cast<const F16*>(weights) + lane, first, depth, use);
  else
    walk_blocks<V, C, kForm>(weights, lane, first, depth, use);
}

template <class V, int C, class Use>
void walk(WeightForm form, const void* weights, index_t lane, index_t first, index_t depth,
          Use& use) noexcept {
#define GLASSHEAD_FORM(name) \
  case WeightForm::name:     \
    return walk_of<V, C, WeightForm::name>(weights, lane, first, depth, use)
  switch (form) {
    GLASSHEAD_FORM(f32);
    GLASSHEAD_FORM(bf16);
    GLASSHEAD_FORM(f16);
    GLASSHEAD_FORM(q8_0);
    GLASSHEAD_FORM(q4_0);
    GLASSHEAD_FORM(q4_1);
    GLASSHEAD_FORM(q5_0);
    GLASSHEAD_FORM(q5_1);
    GLASSHEAD_FORM(q4_k);
    GLASSHEAD_FORM(q5_k);
    GLASSHEAD_FORM(q6_k);
  }
#undef GLASSHEAD_FORM
}

// Vectors of outputs of one row at a time: as many chains as hide a multiply-add's latency.
template <class V>
constexpr int kRowVectors = kGroup / V::W < 4 ? kGroup / V::W : 4;

template <class V, int C>
[[gnu::always_inline]] inline void put_outputs(const V (&sums)[C], const float* bias, index_t count,
                                               float* y) {
  V out[C];
  for (int c = 0; c < C; ++c) out[c] = V::quiet(V::add(sums[c], V::load(bias + c * V::W)));
  if (count >= C * V::W) {
    for (int c = 0; c < C; ++c) V::store_unaligned(y + c * V::W, out[c]);
    return;
  }
  alignas(64) float lanes[C * V::W];
  for (int c = 0; c < C; ++c) V::store(lanes + c * V::W, out[c]);
  for (index_t n = 0; n < count; ++n) y[n] = lanes[n];
}

template <class V>
void linear_row(const glasshead::LinearRowArgs& args) noexcept {
  constexpr int C = kRowVectors<V>;
  for (index_t lane = 0; lane < args.count; lane += C * V::W) {
    MultiplyRow<V, C> use;
    use.x = args.x;
    for (V& a : use.acc) a = V::set1(0);
    walk<V, C>(args.form, args.weights, lane, 0, args.in, use);
    put_outputs<V, C>(use.acc, args.bias + lane, args.count - lane, args.y + lane);
  }
}

template <class V>
void linear_unpack(const glasshead::UnpackArgs& args) noexcept {
  constexpr int C = kRowVectors<V>;
  for (index_t lane = 0; lane < kGroup; lane += C * V::W) {
    KeepTile<V> use{args.tile + lane, nullptr};
    walk<V, C>(args.form, args.weights, lane, args.first, args.depth, use);
  }
}

template <class Vector>
struct GroupPanel {
  using V = Vector;
  static constexpr int kVectors = static_cast<int>(kGroup) / V::W;
};

template <class V, class L>
void linear_tile(const glasshead::LinearTileArgs& args) noexcept {
  constexpr int C = L::kVectors;
  for (index_t lane = 0; lane < args.count; lane += C * V::W) {
    const auto add_strip = [&]<int R>(index_t r0) {
      Strip<GroupPanel<V>, R, C, Walk::along> strip(args.x + r0 * args.x_stride, args.x_stride, 1,
                                                    args.tile + lane);
      float* const sums = args.sums + r0 * kGroup + lane;
      for (int r = 0; r < R; ++r)
        for (int c = 0; c < C; ++c)
          strip.acc[r][c] = args.is_first ? V::set1(0) : V::load(sums + r * kGroup + c * V::W);
      strip.run(args.depth);
      if (args.is_last) {
        for (int r = 0; r < R; ++r)
          put_outputs<V, C>(strip.acc[r], args.bias + lane, args.count - lane,
                            args.y + (r0 + r) * args.y_stride + lane);
      } else {
        for (int r = 0; r < R; ++r)
          for (int c = 0; c < C; ++c) V::store(sums + r * kGroup + c * V::W, strip.acc[r][c]);
      }
    };
    for_strips<L::kRows>(args.rows, add_strip);
  }
}

template <class V, class L>
constexpr glasshead::LinearKernels linear_kernels() {
  return {linear_row<V>, linear_unpack<V>, linear_tile<V, L>};
}

}  // namespace
