// AVX-512 with VDPBF16PS (Cooper Lake, Sapphire Rapids, Zen 4 and later): both products of attend
// in bf16. It rounds what every other set keeps, so it runs only where it is asked for by name.
//
// One instruction adds two products to each of sixteen f32 sums, one after the other, each by a
// multiply-add rounded once to nearest even, first that of the upper halves; subnormal operands are
// read as 0 and subnormal sums written as 0, whatever the floating-point environment says (Intel
// 64 and IA-32 Architectures Software Developer's Manual, volume 2, VDPBF16PS). Of two neighbours
// the earlier stands in the upper half here, so that a sum takes its products in order and where
// pairs begin changes no bit.
#include <cstddef>
#include <cstdint>

#include "kernels/isa/avx512.inl.h"
#include "kernels/kernel_set.h"
#include "kernels/panel.inl.h"

namespace {

using glasshead::kBlock;

// Sixteen pairs of bf16 as factors, sixteen floats as sums.
struct Pairs {
  using T = float;  // of a pair: its bits
  static constexpr int W = 16;
  __m512 x;

  static Pairs set1(T a) { return {_mm512_set1_ps(a)}; }
  static Pairs load(const T* from) { return {_mm512_load_ps(from)}; }
  static void store(T* to, Pairs a) { _mm512_store_ps(to, a.x); }
  static Pairs accumulate(Pairs a, Pairs b, Pairs s) {
#ifdef GLASSHEAD_EMULATED  // tests/kernels/emulated
    return {_mm512_dpbf16_ps(s.x, as_bf16(a.x), as_bf16(b.x))};
#else
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(s.x) : "v"(a.x), "v"(b.x));
    return s;
#endif
  }

  // Lane by lane: `earlier` rounded to bf16 in the upper half, `later` in the lower.
  static Pairs of(F32 earlier, F32 later) {
    const __m512i both = as_words(_mm512_cvtne2ps_pbh(earlier.x, later.x));
    const __m512i zipped =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return {_mm512_castsi512_ps(_mm512_permutexvar_epi16(zipped, both))};
  }
  // Elements 2n and 2n + 1 of the 32 in `low` and `high` in lane n.
  static Pairs along(F32 low, F32 high) {
    const __m512i both = as_words(_mm512_cvtne2ps_pbh(high.x, low.x));
    return {_mm512_castsi512_ps(_mm512_rol_epi32(both, 16))};
  }

 private:
  static __m512i as_words(__m512bh a) { return __builtin_bit_cast(__m512i, a); }
  static __m512bh as_bf16(__m512 a) { return __builtin_bit_cast(__m512bh, a); }
};

using Floats = Panel<F32>;  // queries, scores and sums, as in avx512
struct Factors {
  using V = Pairs;
  static constexpr int kVectors = Floats::kVectors;
};

constexpr index_t W = F32::W, kLanes = Floats::kVectors * W;

// The first `count` of W floats that lie `step` apart, 0 after them.
F32 some(const float* from, index_t step, index_t count) {
  if (step == 1 && count >= W) return F32::load_unaligned(from);
  alignas(64) float part[W] = {};
  for (index_t n = 0; n < W && n < count; ++n) part[n] = from[n * step];
  return F32::load(part);
}

// --- the scaled queries: [(d_k + 1) / 2, lanes] pairs in the room of [d_k, lanes] floats ---

void pack_pairs(const glasshead::PackArgs<float>& args) noexcept {
  pack<Floats>(args);
  for (index_t d = 0; d < args.size; d += 2) {
    for (index_t at = 0; at < args.vectors * W; at += W) {
      const float* const from = args.panel + d * kLanes + at;
      const F32 later = d + 1 < args.size ? F32::load(from + kLanes) : F32::set1(0);
      Pairs::store(args.panel + d / 2 * kLanes + at, Pairs::of(F32::load(from), later));
    }
  }
}

// --- scores ---

constexpr index_t kPairs = 64;  // of a key's elements at a time

// Pairs of elements [0, count) of R keys: to[r * kPairs + n].
template <int R>
void pair_along(const float* k, index_t row_stride, index_t count, float* to) {
  for (int r = 0; r < R; ++r, k += row_stride, to += kPairs)
    for (index_t d = 0; d < count; d += 2 * W)
      Pairs::store(to + d / 2,
                   Pairs::along(some(k + d, 1, count - d), some(k + d + W, 1, count - d - W)));
}

// Of keys whose elements lie `step` apart: to[n * W + r].
template <int R>
void pair_across(const float* k, index_t row_stride, index_t step, index_t count, float* to) {
  for (index_t d = 0; d < count; d += 2, k += 2 * step, to += W) {
    const F32 later = d + 1 < count ? some(k + step, row_stride, R) : F32::set1(0);
    Pairs::store(to, Pairs::of(some(k, row_stride, R), later));
  }
}

template <int R, int C, Walk kWalk>
[[gnu::always_inline]] inline void add_products(const float* keys, const float* queries,
                                                index_t pairs, F32 (&sums)[R][C]) {
  constexpr index_t kRow = kWalk == Walk::along ? kPairs : 1, kStep = kWalk == Walk::along ? 1 : W;
  Strip<Factors, R, C, kWalk> strip(keys, kRow, kStep, queries);
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c) strip.acc[r][c] = {sums[r][c].x};
  strip.run(pairs);
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c) sums[r][c] = {strip.acc[r][c].x};
}

template <int C>
void score_keys(const glasshead::ScoreArgs<float>& args, index_t begin, index_t end) {
  F32 max[C];
  load_all(args.max, max);
  const auto& k = args.k;
  for_strips<Floats::kStrip<C>>(
      end,
      [&]<int R>(index_t j) {
        alignas(64) float pairs[kPairs * W];
        F32 sums[R][C];
        for (int r = 0; r < R; ++r)
          for (int c = 0; c < C; ++c) sums[r][c] = F32::set1(0);
        for (index_t d = 0; d < args.d_k; d += 2 * kPairs) {
          const index_t left = args.d_k - d, count = left < 2 * kPairs ? left : 2 * kPairs;
          const float* const from = k.data + j * k.row_stride + d * k.step;
          const float* const queries = args.q + d / 2 * kLanes;
          if (k.step == 1) {
            pair_along<R>(from, k.row_stride, count, pairs);
            add_products<R, C, Walk::along>(pairs, queries, (count + 1) / 2, sums);
          } else {
            pair_across<R>(from, k.row_stride, k.step, count, pairs);
            add_products<R, C, Walk::across>(pairs, queries, (count + 1) / 2, sums);
          }
        }
        end_scores<Floats>(args, j, sums, max);
      },
      begin);
  for (int c = 0; c < C; ++c) F32::store(args.max + c * W, max[c]);
}

void score_pairs(const glasshead::ScoreArgs<float>& args) noexcept {
  with_vectors<Floats::kVectors>(args.vectors, [&]<int C>() {
    for_reach<C>(args.reach, args.keys,
                 [&]<int U>(index_t begin, index_t end) { score_keys<U>(args, begin, end); });
  });
}

// --- weighted sum ---

// Pairs of weights of neighbouring keys: to[n * kLanes + lane]; 0 where a vector reaches no key.
template <int C>
void pair_weights(const glasshead::AccumulateArgs<float>& args, float* to) {
  for (int c = 0; c < C; ++c) {
    const index_t reach = args.reach != nullptr ? args.reach[c] : args.keys;
    const float* p = args.p + c * W;
    for (index_t n = 0; n < args.keys; n += 2, p += 2 * kLanes) {
      const F32 earlier = n < reach ? F32::load(p) : F32::set1(0);
      const F32 later = n + 1 < reach ? F32::load(p + kLanes) : F32::set1(0);
      Pairs::store(to + n / 2 * kLanes + c * W, Pairs::of(earlier, later));
    }
  }
}

// Pairs of the values of neighbouring keys, elements [d, d + W): to[n * W + e].
void pair_values(const glasshead::AccumulateArgs<float>& args, index_t d, float* to) {
  const float* v = args.v.data + d * args.v.step;
  for (index_t n = 0; n < args.keys; n += 2, v += 2 * args.v.row_stride, to += W) {
    const index_t left = args.d_v - d;
    const F32 later =
        n + 1 < args.keys ? some(v + args.v.row_stride, args.v.step, left) : F32::set1(0);
    Pairs::store(to, Pairs::of(some(v, args.v.step, left), later));
  }
}

// Each key of a pair by itself, with 0 in the other's place, so that lanes which do not see it can
// keep their sums.
template <int R, int C>
void add_seen(const glasshead::AccumulateArgs<float>& args, const float* values,
              const float* weights, Pairs (&sums)[R][C]) {
  for (index_t n = 0; n < args.keys; ++n) {
    const __m512i half = _mm512_set1_epi32(n % 2 == 0 ? static_cast<int>(0xFFFF0000) : 0xFFFF);
    for (int r = 0; r < R; ++r) {
      const __m512i v = _mm512_castps_si512(_mm512_set1_ps(values[n / 2 * W + r]));
      const Pairs value{_mm512_castsi512_ps(_mm512_and_si512(v, half))};
      for (int c = 0; c < C; ++c) {
        const Pairs weight = Pairs::load(weights + n / 2 * kLanes + c * W);
        const F32 sum{Pairs::accumulate(value, weight, sums[r][c]).x};
        sums[r][c] = {F32::keep(sum, {sums[r][c].x}, args.allowed[n] >> (c * W)).x};
      }
    }
  }
}

template <int C>
void accumulate_keys(const glasshead::AccumulateArgs<float>& args) {
  alignas(64) float weights[kBlock / 2 * kLanes], values[kBlock / 2 * W];
  pair_weights<C>(args, weights);
  index_t reach[C];  // in pairs
  for (int c = 0; c < C; ++c)
    reach[c] = ((args.reach != nullptr ? args.reach[c] : args.keys) + 1) / 2;
  F32 alpha[C];
  for (int c = 0; c < C; ++c)
    alpha[c] = args.alpha != nullptr ? F32::load(args.alpha + c * W) : F32::set1(1);
  for (index_t d = 0; d < args.d_v; d += W) {
    pair_values(args, d, values);
    const index_t left = args.d_v - d;
    for_strips<Floats::kStrip<C>>(left < W ? left : W, [&]<int R>(index_t e) {
      Strip<Factors, R, C, Walk::across> strip(values + e, 1, W, weights);
      float* const to = args.a + (d + e) * kLanes;
      for (int r = 0; r < R; ++r)
        for (int c = 0; c < C; ++c) {
          const float* const at = to + r * kLanes + c * W;
          strip.acc[r][c] = {(args.is_first ? F32::set1(0) : F32::mul(F32::load(at), alpha[c])).x};
        }
      if (args.allowed != nullptr)
        add_seen(args, values + e, weights, strip.acc);
      else
        for_reach<C>(reach, reach[0],
                     [&]<int U>(index_t begin, index_t end)
                         __attribute__((always_inline)) { strip.template run<U>(end - begin); });
      for (int r = 0; r < R; ++r)
        for (int c = 0; c < C; ++c) Pairs::store(to + r * kLanes + c * W, strip.acc[r][c]);
    });
  }
}

void accumulate_pairs(const glasshead::AccumulateArgs<float>& args) noexcept {
  with_vectors<Floats::kVectors>(args.vectors, [&]<int C>() { accumulate_keys<C>(args); });
}

// --- what goes with them ---

// As bf16, where the largest floats round to infinity.
bool are_finite_in_bf16(const glasshead::StridedRows<float>& rows, index_t count,
                        index_t size) noexcept {
  constexpr float kInfinite = 0x1.FFp+127F;
  bool is_finite = true;
  for (index_t n = 0; n < count; ++n) {
    const float* const row = rows.data + n * rows.row_stride;
    for (index_t d = 0; d < size; ++d)
      is_finite = is_finite && __builtin_fabsf(row[d * rows.step]) < kInfinite;
  }
  return is_finite;
}

// Two products a lane: s + 1 * 1 + 1 * 1.
index_t multiply_add_pairs(index_t rounds, float* sum) noexcept {
  const Pairs ones = Pairs::of(F32::set1(1), F32::set1(1));
  Pairs chains[kChains];
  for (Pairs& chain : chains) chain = {F32::set1(0).x};
  for (index_t n = 0; n < rounds; ++n)
    for (Pairs& chain : chains) chain = Pairs::accumulate(ones, ones, chain);
  alignas(64) float lanes[W];
  *sum = 0;
  for (const Pairs& chain : chains) {
    Pairs::store(lanes, chain);
    *sum += lanes[0];
  }
  return rounds * kChains * 2 * W;
}

// Panels alone, of any number of rows: a row's bits do not depend on how many there are.
constexpr glasshead::Kernels<float> kernels() {
  glasshead::Kernels<float> kernels;
  kernels.width = W;
  kernels.lanes = kLanes;
  kernels.pack = pack_pairs;
  kernels.scores = score_pairs;
  kernels.accumulate = accumulate_pairs;
  kernels.are_finite = are_finite_in_bf16;
  kernels.rows_below = 0;
  kernels.multiply_adds = multiply_add_pairs;
  return kernels;
}

constexpr const char* kFeatures[] = {"avx512f",  "avx512dq",    "avx512bw",
                                     "avx512vl", "avx512_bf16", nullptr};

}  // namespace

namespace glasshead {

extern const KernelSet kernel_set_avx512_bf16;
const KernelSet kernel_set_avx512_bf16{"avx512_bf16", "avx512", kFeatures, kernels(), {}, {}, {},
                                       true};

}  // namespace glasshead
