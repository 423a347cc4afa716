// The kernels of linear_kernels.h for one vector type V of f32. Beside the operations that
// panel.inl.h lists it has a register Word of W unsigned 32-bit numbers:
//
//   load_word(from)           from memory aligned to the vector
//   both(a, b)                a & b, or with a mask for every lane
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
  [[gnu::always_inline]] inline void take(int c, V w) { acc[c] = V::fma(w, xe, acc[c]); }
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
[[gnu::always_inline]] inline void walk_elements(const E* w, index_t depth, Use& use) {
  for (index_t e = 0; e < depth; ++e, w += kGroup) {
    use.at(e);
    for (int c = 0; c < C; ++c) use.take(c, load_wide<V>(w + c * V::W));
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

// Pointers that the compiler takes for new ones: what they point to is then loaded where it is
// used. A mask that it keeps in a register for a whole block drives sums out of theirs.
template <class T>
[[gnu::always_inline]] inline const T* anew(const T* from) {
  __asm__("" : "+r"(from));
  return from;
}

// mask[k]: the bits of nibble k, for every lane.
struct NibbleMasks {
  alignas(64) std::uint32_t mask[7][kGroup];
};
constexpr NibbleMasks nibble_masks() {
  NibbleMasks masks{};
  for (int k = 0; k < 7; ++k)
    for (std::uint32_t& lane : masks.mask[k]) lane = 0xFU << (4 * k);
  return masks;
}
constexpr NibbleMasks kNibbles = nibble_masks();

// Each of these three reads a sub-block of 32 elements of C vectors of outputs: `begin`, then eight
// elements at a time.

template <class V, int C>
struct Bytes {
  V scale[C];
  const Int8* q;

  [[gnu::always_inline]] inline void begin(const unsigned char* block, const unsigned char* sub,
                                           index_t lane) {
    for (int c = 0; c < C; ++c)
      scale[c] = load_wide<V>(reinterpret_cast<const F16*>(block) + lane + c * V::W);
    q = reinterpret_cast<const Int8*>(sub) + lane;
  }
  template <int kEight, class Use>
  [[gnu::always_inline]] inline void eight(index_t e, Use& use) {
    for (int k = 0; k < 8; ++k) {
      use.at(e + k);
      for (int c = 0; c < C; ++c)
        use.take(c, V::mul(load_wide<V>(q + (8 * kEight + k) * kGroup + c * V::W), scale[c]));
    }
  }
};

// Four-bit elements are masked where they stand, which multiplies element k of eight by 16^k, and
// multiplied by the scale over 16^k. The last of eight is moved down, for the others' sign.
template <class V, int C, WeightForm kForm>
struct Nibbles {
  alignas(64) float scale[7 * C * V::W], offset[C * V::W];
  const std::uint32_t* low;

  [[gnu::always_inline]] inline void begin(const unsigned char* block, const unsigned char* sub,
                                           index_t lane) {
    Line<V, C> line;
    line_of<V, C, kForm>(block, sub, lane, 0, line);
    for (int c = 0; c < C; ++c) {
      V::store(offset + c * V::W, line.offset[c]);
      for (int k = 0; k < 7; ++k)
        V::store(scale + (k * C + c) * V::W,
                 V::mul(line.scale[c], V::set1(1.0F / static_cast<float>(1 << (4 * k)))));
    }
    low = reinterpret_cast<const std::uint32_t*>(sub + Form<kForm>::kScales) + lane;
  }
  template <int kEight, class Use>
  [[gnu::always_inline]] inline void eight(index_t e, Use& use) {
    typename V::Word word[C];
    V least[C];
    for (int c = 0; c < C; ++c) {
      word[c] = V::load_word(low + kEight * kGroup + c * V::W);
      least[c] = V::load(anew(offset) + c * V::W);
    }
    one<0>(word, least, e, use);
    one<1>(word, least, e, use);
    one<2>(word, least, e, use);
    one<3>(word, least, e, use);
    one<4>(word, least, e, use);
    one<5>(word, least, e, use);
    one<6>(word, least, e, use);
    one<7>(word, least, e, use);
  }
  template <int k, class Use>
  [[gnu::always_inline]] inline void one(const typename V::Word (&word)[C], const V (&least)[C],
                                         index_t e, Use& use) {
    const float* const factor = anew(scale) + k % 7 * C * V::W;
    use.at(e + k);
    if constexpr (k == 7) {
      for (int c = 0; c < C; ++c)
        use.take(c, V::fma(V::whole(V::template moved<-28>(word[c])), V::load(factor + c * V::W),
                           least[c]));
    } else {
      const typename V::Word mask = V::load_word(anew(kNibbles.mask[k]));
      for (int c = 0; c < C; ++c)
        use.take(c, V::fma(V::whole(V::both(word[c], mask)), V::load(factor + c * V::W), least[c]));
    }
  }
};

// Elements of five or six bits are brought into bytes: two words of four elements each.
template <class V, int C, WeightForm kForm>
struct Wider {
  using F = Form<kForm>;
  using Word = typename V::Word;
  const unsigned char *block, *sub;
  index_t lane;
  V scale[3][C], offset[C];

  [[gnu::always_inline]] inline void begin(const unsigned char* the_block,
                                           const unsigned char* the_sub, index_t the_lane) {
    block = the_block;
    sub = the_sub;
    lane = the_lane;
    prepare(0);
  }
  [[gnu::always_inline]] inline void prepare(int half) {
    Line<V, C> line;
    line_of<V, C, kForm>(block, sub, lane, half, line);
    for (int c = 0; c < C; ++c) {
      scale[0][c] = line.scale[c];
      scale[1][c] = V::mul(line.scale[c], V::set1(0x1p-8F));
      scale[2][c] = V::mul(line.scale[c], V::set1(0x1p-16F));
      offset[c] = line.offset[c];
    }
  }
  // The bits above the low four of elements 0, 2, 4, 6 of an eight (an odd place: 1, 3, 5, 7), each
  // four bits above the beginning of its byte.
  template <int kPlace>
  [[gnu::always_inline]] static inline Word high_bits(const std::uint32_t* high) {
    if constexpr (F::kHigh == 1)
      return V::both(V::template moved<4 - kPlace>(V::load_word(high)), 0x10101010U);
    else
      return V::both(
          V::template moved<4 - 2 * (kPlace % 4)>(V::load_word(high + kPlace / 4 * kGroup)),
          0x30303030U);
  }
  template <int kEight, class Use>
  [[gnu::always_inline]] inline void eight(index_t e, Use& use) {
    if constexpr (kForm == WeightForm::q6_k && kEight == 2) prepare(1);
    const auto* high = reinterpret_cast<const std::uint32_t*>(sub + F::kScales) + lane;
    const std::uint32_t* const low = high + (F::kHigh + kEight) * kGroup;
    Word bytes[2][C];
    for (int c = 0; c < C; ++c, high += V::W) {
      const Word word = V::load_word(low + c * V::W);
      bytes[0][c] = V::either(V::both(word, 0x0F0F0F0FU), high_bits<2 * kEight>(high));
      bytes[1][c] = V::either(V::both(V::template moved<-4>(word), 0x0F0F0F0FU),
                              high_bits<2 * kEight + 1>(high));
    }
    for (int n = 0; n < 8; ++n) {
      use.at(e + n);
      const int byte = n / 2;
      for (int c = 0; c < C; ++c) {
        const V q = byte == 3 ? V::whole(V::template moved<-24>(bytes[n % 2][c]))
                              : V::whole(V::both(bytes[n % 2][c], 0xFFU << (8 * byte)));
        use.take(c, V::fma(q, scale[byte % 3][c], offset[c]));
      }
    }
  }
};

template <class V, int C, WeightForm kForm>
struct SubBlock : Wider<V, C, kForm> {};
template <class V, int C>
struct SubBlock<V, C, WeightForm::q8_0> : Bytes<V, C> {};
template <class V, int C>
struct SubBlock<V, C, WeightForm::q4_0> : Nibbles<V, C, WeightForm::q4_0> {};
template <class V, int C>
struct SubBlock<V, C, WeightForm::q4_1> : Nibbles<V, C, WeightForm::q4_1> {};
template <class V, int C>
struct SubBlock<V, C, WeightForm::q4_k> : Nibbles<V, C, WeightForm::q4_k> {};

// How far ahead of what is computed weights are asked for: a sub-block takes longer to compute than
// to read, and while it fills the processor's window nothing after it is read. 8 to 15 % of a row's
// time (Zen 3, one thread, weights in memory); 1 to 4 KB are alike.
constexpr index_t kWeightsAhead = 2048;

template <class V, int C, WeightForm kForm, class Use>
[[gnu::always_inline]] inline void walk_blocks(const unsigned char* block, index_t lane,
                                               index_t depth, Use& use) {
  using F = Form<kForm>;
  for (index_t e = 0; e < depth; block += F::kBytes) {
    const unsigned char* sub = block + F::kHead;
    for (index_t n = 0; n < F::kSubBlocks; ++n, e += 32, sub += F::kSubBytes) {
      constexpr index_t kNext = F::kSubBlocks == 1 ? F::kBytes : F::kSubBytes;
      for (index_t line = 0; line < kNext; line += 64)
        __builtin_prefetch(sub + kWeightsAhead + line);
      SubBlock<V, C, kForm> part;
      part.begin(block, sub, lane);
      part.template eight<0>(e, use);
      part.template eight<1>(e + 8, use);
      part.template eight<2>(e + 16, use);
      part.template eight<3>(e + 24, use);
    }
  }
}

// --- kernels ---

// C vectors from output `lane` of a group on, elements from `first`.
template <class V, int C, WeightForm kForm, class Use>
void walk_of(const void* weights, index_t lane, index_t first, index_t depth, Use& given) noexcept {
  Use use = given;  // in registers
  if constexpr (kForm == WeightForm::f32) {
    walk_elements<V, C>(static_cast<const float*>(weights) + first * kGroup + lane, depth, use);
  } else if constexpr (kForm == WeightForm::bf16) {
    walk_elements<V, C>(static_cast<const Bf16*>(weights) + first * kGroup + lane, depth, use);
  } else if constexpr (kForm == WeightForm::f16) {
    walk_elements<V, C>(static_cast<const F16*>(weights) + first * kGroup + lane, depth, use);
  } else {
    using F = Form<kForm>;
    const auto* const block =
        static_cast<const unsigned char*>(weights) + first / F::kElements * F::kBytes;
    walk_blocks<V, C, kForm>(block, lane, depth, use);
  }
  given = use;
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
constexpr int kRowVectors = V::W == 1           ? 1
                            : kGroup / V::W < 4 ? kGroup / V::W
                                                : 4;

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
    use.xe = V::set1(0);
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

// R rows from r0 on, C vectors of outputs at a time.
template <class V, int R, int C>
void tile_strip(const glasshead::LinearTileArgs& args, index_t r0, index_t lane) noexcept {
  Strip<GroupPanel<V>, R, C, Walk::along> strip(args.x + r0 * args.x_stride, args.x_stride, 1,
                                                args.tile + lane);
  const index_t at = r0 * kGroup + lane;  // in sums, which are there where they are needed
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c)
      strip.acc[r][c] =
          args.is_first ? V::set1(0) : V::load(args.sums + at + r * kGroup + c * V::W);
  strip.run(args.depth);
  for (int r = 0; r < R; ++r) {
    if (args.is_last)
      put_outputs<V, C>(strip.acc[r], args.bias + lane, args.count - lane,
                        args.y + (r0 + r) * args.y_stride + lane);
    else
      for (int c = 0; c < C; ++c) V::store(args.sums + at + r * kGroup + c * V::W, strip.acc[r][c]);
  }
}

// The rows from r0 on, fewer than R: one strip of their number; of two rows and of one wider ones,
// for chains that do not wait for each other.
template <class V, class L, int R>
[[gnu::always_inline]] inline void last_rows(const glasshead::LinearTileArgs& args, index_t r0) {
  if constexpr (R > 1) {
    if (args.rows - r0 < R - 1) return last_rows<V, L, R - 1>(args, r0);
    constexpr int kVectors = static_cast<int>(kGroup) / V::W;
    constexpr int kWide = 2 * L::kVectors < kVectors ? 2 * L::kVectors : kVectors;
    constexpr int C = R - 1 <= 2 ? kWide : L::kVectors;
    for (index_t lane = 0; lane < args.count; lane += C * V::W)
      tile_strip<V, R - 1, C>(args, r0, lane);
  }
}

template <class V, class L>
void linear_tile(const glasshead::LinearTileArgs& args) noexcept {
  constexpr index_t R = L::kRows;
  const index_t whole = args.rows / R * R;
  for (index_t lane = 0; lane < args.count; lane += L::kVectors * V::W)
    for (index_t r = 0; r < whole; r += R) tile_strip<V, L::kRows, L::kVectors>(args, r, lane);
  if (whole < args.rows) last_rows<V, L, L::kRows>(args, whole);
}

template <class V, class L>
constexpr glasshead::LinearKernels linear_kernels() {
  return {linear_row<V>, linear_unpack<V>, linear_tile<V, L>};
}

}  // namespace
