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

// How C vectors of weights are used, element by element: multiplied with a row, or kept. Weights of
// quantised forms come as whole numbers q, in runs that end with what makes weights of them.
template <class V, int C>
struct MultiplyRow {
  static constexpr bool kTakesInPlace = true;  // q·16^k where x has 16^-k
  const float *x, *x_sums;
  V chain[C], sum[C], xe;

  [[gnu::always_inline]] inline void begin() {
    for (V& s : chain) s = V::set1(0);
  }
  [[gnu::always_inline]] inline void at(index_t e) { xe = V::set1(x[e]); }
  [[gnu::always_inline]] inline void take(int c, V w) { chain[c] = V::fma(w, xe, chain[c]); }
  [[gnu::always_inline]] inline void end() {  // of elements
    for (int c = 0; c < C; ++c) sum[c] = chain[c];
  }
  template <class L>
  [[gnu::always_inline]] inline void end_run(index_t e, const L& line) {
    for (int c = 0; c < C; ++c) sum[c] = V::fma(line.scale[c], chain[c], sum[c]);
    if constexpr (L::kHasOffset) {
      const V x_sum = V::set1(x_sums[e / L::kRun]);
      for (int c = 0; c < C; ++c) sum[c] = V::fma(line.offset[c], x_sum, sum[c]);
    }
  }
};
template <class V, int C>
struct KeepTile {
  static constexpr bool kTakesInPlace = false;
  float *tile, *scale, *offset;
  index_t lane;
  float* here;

  [[gnu::always_inline]] inline void begin() {}
  [[gnu::always_inline]] inline void at(index_t e) { here = tile + e * kGroup + lane; }
  [[gnu::always_inline]] inline void take(int c, V w) { V::store(here + c * V::W, w); }
  [[gnu::always_inline]] inline void end() {}
  template <class L>
  [[gnu::always_inline]] inline void end_run(index_t e, const L& line) {
    const index_t at = e / L::kRun * kGroup + lane;
    for (int c = 0; c < C; ++c) {
      V::store(scale + at + c * V::W, line.scale[c]);
      if constexpr (L::kHasOffset) V::store(offset + at + c * V::W, line.offset[c]);
    }
  }
};

// --- elements ---

template <class V, int C, class E, class Use>
[[gnu::always_inline]] inline void walk_elements(const E* w, index_t depth, Use& use) {
  use.begin();
  for (index_t e = 0; e < depth; ++e, w += kGroup) {
    use.at(e);
    for (int c = 0; c < C; ++c) use.take(c, load_wide<V>(w + c * V::W));
  }
  use.end();
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
  static constexpr index_t kHead = kGroup * 2 * (kHasLeast ? 2 : 1);  // d, m
  static constexpr index_t kScales = kIsSuper ? 2 * kGroup : 0;       // sc, sm
  static constexpr index_t kHighBytes = kGroup * 4 * kHigh;
  static constexpr index_t kLowBytes = kForm == WeightForm::q8_0 ? 32 * kGroup : 16 * kGroup;
  static constexpr index_t kSubBytes = kScales + kHighBytes + kLowBytes;
  static constexpr index_t kElements = 32 * kSubBlocks;
  static constexpr index_t kBytes = kHead + kSubBlocks * kSubBytes;
};

// What makes weights of C vectors of whole numbers q: q·scale + offset.
template <class V, int C, WeightForm kForm>
struct Line {
  static constexpr index_t kRun = glasshead::run_of(kForm);
  static constexpr bool kHasOffset = glasshead::has_offset(kForm);
  V scale[C], offset[C];

  // Of run `half` of a sub-block; `lane` is the first output's.
  [[gnu::always_inline]] inline Line(const unsigned char* block, const unsigned char* sub,
                                     index_t lane, int half) {
    using F = Form<kForm>;
    const auto* d = reinterpret_cast<const F16*>(block) + lane;
    for (int c = 0; c < C; ++c) {
      scale[c] = load_wide<V>(d + c * V::W);
      if constexpr (F::kIsSuper) {
        const auto* sc = reinterpret_cast<const Int8*>(sub) + lane + c * V::W;
        if constexpr (kForm == WeightForm::q6_k) {
          scale[c] = V::mul(scale[c], load_wide<V>(sc + half * kGroup));
          offset[c] = V::mul(scale[c], V::set1(-32));
        } else {
          scale[c] = V::mul(scale[c], load_wide<V>(sc));
          const V least = load_wide<V>(d + kGroup + c * V::W);
          offset[c] = V::mul(V::mul(least, V::set1(-1)), load_wide<V>(sc + kGroup));
        }
      } else if constexpr (F::kHasLeast) {
        offset[c] = load_wide<V>(d + kGroup + c * V::W);
      } else if constexpr (kHasOffset) {
        offset[c] = V::mul(scale[c], V::set1(F::kHigh == 1 ? -16 : -8));
      }
    }
  }
};

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

// Each of these three reads a sub-block of 32 elements of C vectors of outputs, eight elements at a
// time.

template <class V, int C>
struct Bytes {
  const Int8* q;

  [[gnu::always_inline]] inline Bytes(const unsigned char* sub, index_t lane)
      : q(reinterpret_cast<const Int8*>(sub) + lane) {}
  template <int kEight, class Use>
  [[gnu::always_inline]] inline void eight(index_t e, Use& use) {
    for (int k = 0; k < 8; ++k) {
      use.at(e + k);
      for (int c = 0; c < C; ++c)
        use.take(c, load_wide<V>(q + (8 * kEight + k) * kGroup + c * V::W));
    }
  }
};

// Four-bit elements that are multiplied are masked where they stand, which makes q·16^k of element
// k of eight; x has 16^-k. The last of eight is moved down, for the others' sign.
template <class V, int C, WeightForm kForm>
struct Nibbles {
  using Word = typename V::Word;
  const std::uint32_t* low;

  [[gnu::always_inline]] inline Nibbles(const unsigned char* sub, index_t lane)
      : low(reinterpret_cast<const std::uint32_t*>(sub + Form<kForm>::kScales) + lane) {}
  template <int kEight, class Use>
  [[gnu::always_inline]] inline void eight(index_t e, Use& use) {
    Word word[C];
    for (int c = 0; c < C; ++c) word[c] = V::load_word(low + kEight * kGroup + c * V::W);
    one<0>(word, e, use);
    one<1>(word, e, use);
    one<2>(word, e, use);
    one<3>(word, e, use);
    one<4>(word, e, use);
    one<5>(word, e, use);
    one<6>(word, e, use);
    one<7>(word, e, use);
  }
  template <int k, class Use>
  [[gnu::always_inline]] inline void one(const Word (&word)[C], index_t e, Use& use) {
    use.at(e + k);
    if constexpr (k == 7) {
      for (int c = 0; c < C; ++c) use.take(c, V::whole(V::template moved<-28>(word[c])));
    } else if constexpr (Use::kTakesInPlace) {
      const Word mask = V::load_word(anew(kNibbles.mask[k]));
      for (int c = 0; c < C; ++c) use.take(c, V::whole(V::both(word[c], mask)));
    } else {
      for (int c = 0; c < C; ++c)
        use.take(c, V::whole(V::both(V::template moved<-4 * k>(word[c]), 0xFU)));
    }
  }
};

// Elements of five or six bits are brought into bytes: two words of four elements each.
template <class V, int C, WeightForm kForm>
struct Wider {
  using F = Form<kForm>;
  using Word = typename V::Word;
  const std::uint32_t* high;

  [[gnu::always_inline]] inline Wider(const unsigned char* sub, index_t lane)
      : high(reinterpret_cast<const std::uint32_t*>(sub + F::kScales) + lane) {}
  // The bits above the low four of elements 0, 2, 4, 6 of an eight (an odd place: 1, 3, 5, 7), each
  // four bits above the beginning of its byte.
  template <int kPlace>
  [[gnu::always_inline]] static inline Word high_bits(const std::uint32_t* from) {
    if constexpr (F::kHigh == 1)
      return V::both(V::template moved<4 - kPlace>(V::load_word(from)), 0x10101010U);
    else
      return V::both(
          V::template moved<4 - 2 * (kPlace % 4)>(V::load_word(from + kPlace / 4 * kGroup)),
          0x30303030U);
  }
  template <int kEight, class Use>
  [[gnu::always_inline]] inline void eight(index_t e, Use& use) {
    Word bytes[2][C];
    for (int c = 0; c < C; ++c) {
      const std::uint32_t* const from = high + c * V::W;
      const Word word = V::load_word(from + (F::kHigh + kEight) * kGroup);
      bytes[0][c] = V::either(V::both(word, 0x0F0F0F0FU), high_bits<2 * kEight>(from));
      bytes[1][c] = V::either(V::both(V::template moved<-4>(word), 0x0F0F0F0FU),
                              high_bits<2 * kEight + 1>(from));
    }
    two<0>(bytes, e, use);
    two<1>(bytes, e, use);
    two<2>(bytes, e, use);
    two<3>(bytes, e, use);
  }
  template <int kByte, class Use>
  [[gnu::always_inline]] inline void two(const Word (&bytes)[2][C], index_t e, Use& use) {
    for (int n = 0; n < 2; ++n) {
      use.at(e + index_t{2} * kByte + n);
      for (int c = 0; c < C; ++c) {
        const Word moved = V::template moved<-8 * kByte>(bytes[n][c]);
        use.take(c, V::whole(kByte == 3 ? moved : V::both(moved, 0xFFU)));
      }
    }
  }
};

template <class V, int C, WeightForm kForm>
struct SubBlock : Wider<V, C, kForm> {
  using Wider<V, C, kForm>::Wider;
};
template <class V, int C>
struct SubBlock<V, C, WeightForm::q8_0> : Bytes<V, C> {
  using Bytes<V, C>::Bytes;
};
template <class V, int C>
struct SubBlock<V, C, WeightForm::q4_0> : Nibbles<V, C, WeightForm::q4_0> {
  using Nibbles<V, C, WeightForm::q4_0>::Nibbles;
};
template <class V, int C>
struct SubBlock<V, C, WeightForm::q4_1> : Nibbles<V, C, WeightForm::q4_1> {
  using Nibbles<V, C, WeightForm::q4_1>::Nibbles;
};
template <class V, int C>
struct SubBlock<V, C, WeightForm::q4_k> : Nibbles<V, C, WeightForm::q4_k> {
  using Nibbles<V, C, WeightForm::q4_k>::Nibbles;
};

// How far ahead of what is computed weights are asked for: a sub-block takes longer to compute than
// to read, and while it fills the processor's window nothing after it is read. 8 to 15 % of a row's
// time (Zen 3, one thread, weights in memory); 1 to 4 KB are alike.
constexpr index_t kWeightsAhead = 2048;

template <class V, int C, WeightForm kForm, class Use>
[[gnu::always_inline]] inline void walk_blocks(const unsigned char* block, index_t lane,
                                               index_t depth, Use& use) {
  using F = Form<kForm>;
  using L = Line<V, C, kForm>;
  for (index_t e = 0; e < depth; block += F::kBytes) {
    const unsigned char* sub = block + F::kHead;
    for (index_t n = 0; n < F::kSubBlocks; ++n, e += 32, sub += F::kSubBytes) {
      constexpr index_t kNext = F::kSubBlocks == 1 ? F::kBytes : F::kSubBytes;
      for (index_t line = 0; line < kNext; line += 64)
        __builtin_prefetch(sub + kWeightsAhead + line);
      SubBlock<V, C, kForm> part(sub, lane);
      use.begin();
      part.template eight<0>(e, use);
      part.template eight<1>(e + 8, use);
      if constexpr (L::kRun == 16) {
        use.end_run(e, L(block, sub, lane, 0));
        use.begin();
      }
      part.template eight<2>(e + 16, use);
      part.template eight<3>(e + 24, use);
      if constexpr (L::kRun == 16)
        use.end_run(e + 16, L(block, sub, lane, 1));
      else
        use.end_run(e, L(block, sub, lane, 0));
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
  repeat<C>([&](int c) __attribute__((always_inline)) {
    out[c] = V::quiet(V::add(sums[c], V::load(bias + c * V::W)));
  });
  if (count >= C * V::W)
    return repeat<C>(
        [&](int c) __attribute__((always_inline)) { V::store_unaligned(y + c * V::W, out[c]); });
  alignas(64) float lanes[C * V::W];
  repeat<C>([&](int c) __attribute__((always_inline)) { V::store(lanes + c * V::W, out[c]); });
  for (index_t n = 0; n < count; ++n) y[n] = lanes[n];
}

template <class V>
void linear_row(const glasshead::LinearRowArgs& args) noexcept {
  constexpr int C = kRowVectors<V>;
  for (index_t lane = 0; lane < args.count; lane += C * V::W) {
    MultiplyRow<V, C> use;
    use.x = args.x;
    use.x_sums = args.x_sums;
    use.xe = V::set1(0);
    use.begin();
    use.end();
    walk<V, C>(args.form, args.weights, lane, 0, args.in, use);
    put_outputs<V, C>(use.sum, args.bias + lane, args.count - lane, args.y + lane);
  }
}

template <class V>
void linear_unpack(const glasshead::UnpackArgs& args) noexcept {
  constexpr int C = kRowVectors<V>;
  for (index_t lane = 0; lane < kGroup; lane += C * V::W) {
    KeepTile<V, C> use{args.tile, args.scale, args.offset, lane, nullptr};
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
[[gnu::always_inline]] inline void strip_of_elements(const glasshead::LinearTileArgs& args,
                                                     index_t r0, index_t lane) {
  Strip<GroupPanel<V>, R, C, Walk::along> strip(args.x + r0 * args.x_stride, args.x_stride, 1,
                                                args.tile + lane);
  const index_t at = r0 * kGroup + lane;  // in sums, which are there where they are needed
  strip.each([&](V& s, int r, int c) __attribute__((always_inline)) {
    s = args.is_first ? V::set1(0) : V::load(args.sums + at + r * kGroup + c * V::W);
  });
  strip.run(args.depth);
  if (args.is_last)
    return repeat<R>([&](int r) __attribute__((always_inline)) {
      put_outputs<V, C>(strip.acc[r], args.bias + lane, args.count - lane,
                        args.y + (r0 + r) * args.y_stride + lane);
    });
  strip.each([&](const V& s, int r, int c) __attribute__((always_inline)) {
    V::store(args.sums + at + r * kGroup + c * V::W, s);
  });
}

// What runs are added to comes and goes in memory: registers hold the sums of the run.
template <class V, int R, int C, index_t kRun, bool kHasOffset>
[[gnu::always_inline]] inline void strip_of_runs(const glasshead::LinearTileArgs& args, index_t r0,
                                                 index_t lane) {
  const float *x = args.x + r0 * args.x_stride, *tile = args.tile + lane;
  const float *scale = args.scale + lane, *offset = kHasOffset ? args.offset + lane : nullptr;
  const float* x_sums = kHasOffset ? args.x_sums + r0 * args.x_sums_stride : nullptr;
  const index_t x_stride = args.x_stride, x_sums_stride = args.x_sums_stride;
  float* const sums = args.sums + r0 * kGroup + lane;
  const auto sum_at = [&](int r, int c)
                          __attribute__((always_inline)) { return sums + r * kGroup + c * V::W; };
  if (args.is_first)
    for (int r = 0; r < R; ++r)
      for (int c = 0; c < C; ++c) V::store(sum_at(r, c), V::set1(0));
  for (index_t left = args.depth; left > 0; left -= kRun) {
    Strip<GroupPanel<V>, R, C, Walk::along> strip(x, x_stride, 1, tile);
    strip.each([](V& s, int, int) __attribute__((always_inline)) { s = V::set1(0); });
    strip.run(kRun);
    V line[C];
    load_all(scale, line);
    strip.each([&](V& s, int r, int c) __attribute__((always_inline)) {
      s = V::fma(line[c], s, V::load(sum_at(r, c)));
    });
    if constexpr (kHasOffset) {
      load_all(offset, line);
      repeat<R>([&](int r) __attribute__((always_inline)) {
        const V x_sum = V::set1(x_sums[r * x_sums_stride]);
        repeat<C>([&](int c) __attribute__((always_inline)) {
          strip.acc[r][c] = V::fma(line[c], x_sum, strip.acc[r][c]);
        });
      });
    }
    strip.each([&](const V& s, int r, int c)
                   __attribute__((always_inline)) { V::store(sum_at(r, c), s); });
    // Else GCC holds what was stored on its stack: 83 % of the strip of elements, not 91 (Zen 3).
    __asm__ volatile("" ::: "memory");
    x += kRun;
    tile += kRun * kGroup;
    scale += kGroup;
    if constexpr (kHasOffset) {
      offset += kGroup;
      ++x_sums;
    }
  }
  if (!args.is_last) return;
  for (int r = 0; r < R; ++r) {
    V out[C];
    load_all(sum_at(r, 0), out);
    put_outputs<V, C>(out, args.bias + lane, args.count - lane,
                      args.y + (r0 + r) * args.y_stride + lane);
  }
}

template <class V, int R, int C>
void tile_strip(const glasshead::LinearTileArgs& args, index_t r0, index_t lane) noexcept {
  if (args.run == 0)
    strip_of_elements<V, R, C>(args, r0, lane);
  else if (!args.has_offset)
    strip_of_runs<V, R, C, 32, false>(args, r0, lane);
  else if (args.run == 32)
    strip_of_runs<V, R, C, 32, true>(args, r0, lane);
  else
    strip_of_runs<V, R, C, 16, true>(args, r0, lane);
}

// Rows [begin, end) in strips of `height` rows, at most R; of two rows and of one wider ones, for
// chains that do not wait for each other.
template <class V, class L, int R>
[[gnu::always_inline]] inline void strips_of(const glasshead::LinearTileArgs& args, index_t height,
                                             index_t begin, index_t end) {
  if constexpr (R > 0) {
    if (height != R) return strips_of<V, L, R - 1>(args, height, begin, end);
    constexpr int kVectors = static_cast<int>(kGroup) / V::W;
    constexpr int kWide = 2 * L::kVectors < kVectors ? 2 * L::kVectors : kVectors;
    constexpr int C = R <= 2 && R < L::kRows ? kWide : L::kVectors;
    for (index_t lane = 0; lane < args.count; lane += C * V::W)
      for (index_t r = begin; r < end; r += R) tile_strip<V, R, C>(args, r, lane);
  }
}

// Even shares: a strip of few rows has too few chains, and 16 rows are better 8 + 8 than 12 + 4.
template <class V, class L>
void linear_tile(const glasshead::LinearTileArgs& args) noexcept {
  const index_t strips = (args.rows + L::kRows - 1) / L::kRows;
  const index_t height = (args.rows + strips - 1) / strips;
  const index_t end = (args.rows - strips * (height - 1)) * height;  // of those as tall as that
  strips_of<V, L, L::kRows>(args, height, 0, end);
  if (end < args.rows) strips_of<V, L, L::kRows>(args, height - 1, end, args.rows);
}

template <class V, class L>
constexpr glasshead::LinearKernels linear_kernels() {
  return {linear_row<V>, linear_unpack<V>, linear_tile<V, L>};
}

}  // namespace
