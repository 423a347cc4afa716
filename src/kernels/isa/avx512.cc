// AVX-512 (F, DQ, BW, VL): x86-64 servers since 2017, Zen 4 and later.
#include <cstddef>
#include <cstdint>
// g++-12 takes the operand that an unmasked intrinsic leaves undefined on purpose for a mistake.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop

#include "kernels/kernel_set.h"
#include "kernels/layer.inl.h"
#include "kernels/linear.inl.h"
#include "kernels/panel.inl.h"

namespace {

struct F32 {
  using T = float;
  static constexpr int W = 16;
  __m512 x;

  static F32 set1(T a) { return {_mm512_set1_ps(a)}; }
  static F32 load(const T* from) { return {_mm512_load_ps(from)}; }
  static void store(T* to, F32 a) { _mm512_store_ps(to, a.x); }
  static F32 load_unaligned(const T* from) { return {_mm512_loadu_ps(from)}; }
  static void store_unaligned(T* to, F32 a) { _mm512_storeu_ps(to, a.x); }
  static F32 in_register(F32 a) {
    __asm__("" : "+v"(a.x));
    return a;
  }
  static F32 add(F32 a, F32 b) { return {_mm512_add_ps(a.x, b.x)}; }
  static F32 sub(F32 a, F32 b) { return {_mm512_sub_ps(a.x, b.x)}; }
  static F32 mul(F32 a, F32 b) { return {_mm512_mul_ps(a.x, b.x)}; }
  static F32 div(F32 a, F32 b) { return {_mm512_div_ps(a.x, b.x)}; }
  static F32 fma(F32 a, F32 b, F32 c) { return {_mm512_fmadd_ps(a.x, b.x, c.x)}; }
  static F32 accumulate(F32 a, F32 b, F32 s) {
#ifdef GLASSHEAD_EMULATED  // tests/kernels/emulated
    return fma(a, b, s);
#else
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(s.x) : "v"(a.x), "v"(b.x));
    return s;
#endif
  }
  static F32 max(F32 a, F32 b) { return {_mm512_max_ps(a.x, b.x)}; }
  static F32 min(F32 a, F32 b) { return {_mm512_min_ps(a.x, b.x)}; }
  static F32 hide(F32 a, std::uint32_t bits) { return keep(a, set1(-__builtin_inff()), bits); }
  static F32 keep(F32 a, F32 b, std::uint32_t bits) {
    return {_mm512_mask_mov_ps(b.x, static_cast<__mmask16>(bits), a.x)};
  }
  static F32 zero_below(F32 x, F32 limit, F32 a) {
    return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x.x, limit.x, _CMP_NLT_UQ), a.x)};
  }
  static F32 zero_where_zero(F32 s, F32 a) {
    return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(s.x, _mm512_setzero_ps(), _CMP_NEQ_UQ), a.x)};
  }
  static F32 pow2(F32 shifted) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(shifted.x), 23))};
  }
  static F32 magnitude(F32 a) { return {_mm512_andnot_ps(_mm512_set1_ps(-0.0F), a.x)}; }
  static F32 with_sign(F32 a, F32 b) {
    return {_mm512_or_ps(magnitude(a).x, _mm512_and_ps(_mm512_set1_ps(-0.0F), b.x))};
  }
  static F32 quiet(F32 a) {
    return {_mm512_mask_mov_ps(a.x, _mm512_cmp_ps_mask(a.x, a.x, _CMP_UNORD_Q),
                               _mm512_set1_ps(__builtin_nanf("")))};
  }
  static F32 scaled(F32 a, double s) {
    const __m512d scale = _mm512_set1_pd(s);
    const __m512d low = _mm512_mul_pd(_mm512_cvtps_pd(_mm512_castps512_ps256(a.x)), scale);
    const __m512d high = _mm512_mul_pd(_mm512_cvtps_pd(_mm512_extractf32x8_ps(a.x, 1)), scale);
    const __m512 halves = _mm512_castps256_ps512(_mm512_cvtpd_ps(low));
    return {_mm512_insertf32x8(halves, _mm512_cvtpd_ps(high), 1)};
  }
  static F32 widen(const Bf16* from) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(as_bits<__m256i>(from)));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
  }
  static F32 widen(const F16* from) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(as_bits<__m256i>(from)))};
  }
  static F32 widen(const Int8* from) {
    return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(as_bits<__m128i>(from))))};
  }
  static void transpose(F32 (&m)[16]) {
    __m512 a[16], b[16];
    for (int i = 0; i < 16; i += 2) {  // columns of two rows interleaved
      a[i] = _mm512_unpacklo_ps(m[i].x, m[i + 1].x);
      a[i + 1] = _mm512_unpackhi_ps(m[i].x, m[i + 1].x);
    }
    for (int i = 0; i < 16; i += 4) {  // of four rows: b[i + n] has columns n, 4 + n, 8 + n, 12 + n
      b[i] = _mm512_shuffle_ps(a[i], a[i + 2], 0x44);
      b[i + 1] = _mm512_shuffle_ps(a[i], a[i + 2], 0xEE);
      b[i + 2] = _mm512_shuffle_ps(a[i + 1], a[i + 3], 0x44);
      b[i + 3] = _mm512_shuffle_ps(a[i + 1], a[i + 3], 0xEE);
    }
    for (int i = 0; i < 16; i += 8) {  // of eight, quarters of columns n, 8 + n; then 4 + n, 12 + n
      for (int n = 0; n < 4; ++n) {
        a[i + n] = _mm512_shuffle_f32x4(b[i + n], b[i + 4 + n], 0x88);
        a[i + 4 + n] = _mm512_shuffle_f32x4(b[i + n], b[i + 4 + n], 0xDD);
      }
    }
    for (int n = 0; n < 8; ++n) {  // of all sixteen: columns n and 8 + n
      m[n].x = _mm512_shuffle_f32x4(a[n], a[8 + n], 0x88);
      m[8 + n].x = _mm512_shuffle_f32x4(a[n], a[8 + n], 0xDD);
    }
  }

  struct Word {
    __m512i x;
  };
  static Word load_word(const std::uint32_t* from) { return {_mm512_load_si512(from)}; }
  static Word both(Word a, std::uint32_t mask) {
    return {_mm512_and_si512(a.x, _mm512_set1_epi32(static_cast<int>(mask)))};
  }
  static Word both(Word a, Word b) { return {_mm512_and_si512(a.x, b.x)}; }
  static Word either(Word a, Word b) { return {_mm512_or_si512(a.x, b.x)}; }
  template <int N>
  static Word moved(Word a) {
    return {N >= 0 ? _mm512_slli_epi32(a.x, N & 31) : _mm512_srli_epi32(a.x, -N & 31)};
  }
  static F32 whole(Word a) { return {_mm512_cvtepi32_ps(a.x)}; }

 private:
  template <class I>
  static const I* as_bits(const void* from) {
    return static_cast<const I*>(from);
  }
};

struct F64 {
  using T = double;
  static constexpr int W = 8;
  __m512d x;

  static F64 set1(T a) { return {_mm512_set1_pd(a)}; }
  static F64 load(const T* from) { return {_mm512_load_pd(from)}; }
  static void store(T* to, F64 a) { _mm512_store_pd(to, a.x); }
  static F64 load_unaligned(const T* from) { return {_mm512_loadu_pd(from)}; }
  static void store_unaligned(T* to, F64 a) { _mm512_storeu_pd(to, a.x); }
  static F64 in_register(F64 a) {
    __asm__("" : "+v"(a.x));
    return a;
  }
  static F64 add(F64 a, F64 b) { return {_mm512_add_pd(a.x, b.x)}; }
  static F64 sub(F64 a, F64 b) { return {_mm512_sub_pd(a.x, b.x)}; }
  static F64 mul(F64 a, F64 b) { return {_mm512_mul_pd(a.x, b.x)}; }
  static F64 div(F64 a, F64 b) { return {_mm512_div_pd(a.x, b.x)}; }
  static F64 fma(F64 a, F64 b, F64 c) { return {_mm512_fmadd_pd(a.x, b.x, c.x)}; }
  static F64 accumulate(F64 a, F64 b, F64 s) {
#ifdef GLASSHEAD_EMULATED  // tests/kernels/emulated
    return fma(a, b, s);
#else
    __asm__("vfmadd231pd %2, %1, %0" : "+v"(s.x) : "v"(a.x), "v"(b.x));
    return s;
#endif
  }
  static F64 max(F64 a, F64 b) { return {_mm512_max_pd(a.x, b.x)}; }
  static F64 min(F64 a, F64 b) { return {_mm512_min_pd(a.x, b.x)}; }
  static F64 hide(F64 a, std::uint32_t bits) { return keep(a, set1(-__builtin_inf()), bits); }
  static F64 keep(F64 a, F64 b, std::uint32_t bits) {
    return {_mm512_mask_mov_pd(b.x, static_cast<__mmask8>(bits), a.x)};
  }
  static F64 zero_below(F64 x, F64 limit, F64 a) {
    return {_mm512_maskz_mov_pd(_mm512_cmp_pd_mask(x.x, limit.x, _CMP_NLT_UQ), a.x)};
  }
  static F64 zero_where_zero(F64 s, F64 a) {
    return {_mm512_maskz_mov_pd(_mm512_cmp_pd_mask(s.x, _mm512_setzero_pd(), _CMP_NEQ_UQ), a.x)};
  }
  static F64 pow2(F64 shifted) {
    return {_mm512_castsi512_pd(_mm512_slli_epi64(_mm512_castpd_si512(shifted.x), 52))};
  }
  static F64 magnitude(F64 a) { return {_mm512_andnot_pd(_mm512_set1_pd(-0.0), a.x)}; }
  static F64 with_sign(F64 a, F64 b) {
    return {_mm512_or_pd(magnitude(a).x, _mm512_and_pd(_mm512_set1_pd(-0.0), b.x))};
  }
  static F64 quiet(F64 a) {
    return {_mm512_mask_mov_pd(a.x, _mm512_cmp_pd_mask(a.x, a.x, _CMP_UNORD_Q),
                               _mm512_set1_pd(__builtin_nan("")))};
  }
  static F64 scaled(F64 a, double s) { return mul(a, set1(s)); }
  static void transpose(F64 (&m)[8]) {
    __m512d a[8], b[8];
    for (int i = 0; i < 8; i += 2) {  // of two rows: a[i + n] has columns n, 2 + n, 4 + n, 6 + n
      a[i] = _mm512_unpacklo_pd(m[i].x, m[i + 1].x);
      a[i + 1] = _mm512_unpackhi_pd(m[i].x, m[i + 1].x);
    }
    for (int i = 0; i < 8; i += 4) {  // of four: columns n, 4 + n; then 2 + n, 6 + n
      for (int n = 0; n < 2; ++n) {
        b[i + n] = _mm512_shuffle_f64x2(a[i + n], a[i + 2 + n], 0x88);
        b[i + 2 + n] = _mm512_shuffle_f64x2(a[i + n], a[i + 2 + n], 0xDD);
      }
    }
    for (int n = 0; n < 4; ++n) {  // of all eight: columns n and 4 + n
      m[n].x = _mm512_shuffle_f64x2(b[n], b[4 + n], 0x88);
      m[4 + n].x = _mm512_shuffle_f64x2(b[n], b[4 + n], 0xDD);
    }
  }
};

// Thirty-two registers: sixteen accumulators, two vectors of queries; a key is broadcast by the
// multiply-add that uses it.
template <class Vector>
struct Panel {
  using V = Vector;
  static constexpr int kVectors = 2;
  template <int C>
  static constexpr int kStrip = C == 1 ? 16 : 8;
};

// Twenty-four accumulators and two vectors of weights; a row's element is broadcast by the
// multiply-add that uses it.
struct Tile {
  static constexpr int kVectors = 2, kRows = 12;
};

constexpr const char* kFeatures[] = {"avx512f", "avx512dq", "avx512bw", "avx512vl", nullptr};

}  // namespace

namespace glasshead {

extern const KernelSet kernel_set_avx512;
const KernelSet kernel_set_avx512{"avx512",
                                  "avx2",
                                  kFeatures,
                                  panel_kernels<Panel<F32>>(),
                                  panel_kernels<Panel<F64>>(),
                                  linear_kernels<F32, Tile>(),
                                  layer_kernels<F32>()};

}  // namespace glasshead
