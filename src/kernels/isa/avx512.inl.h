// What the AVX-512 sets share: sixteen floats in a register, and the shape of a panel.
#pragma once

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
  // Rows 4 apart meet in a register as they are loaded, which spares a quarter of the shuffles.
  static void load_columns(const T* const* rows, std::ptrdiff_t at, F32 (&m)[16]) {
    for (int n = 0; n < 16; n += 8) {
      const auto two = [&](int r) {  // columns n to n + 7 of rows r and r + 4
        const __m256 low = _mm256_loadu_ps(rows[r] + at + n);
        return _mm512_insertf32x8(_mm512_castps256_ps512(low),
                                  _mm256_loadu_ps(rows[r + 4] + at + n), 1);
      };
      F32 a[4], b[4];  // in quarters, of rows 0 to 7 and 8 to 15: columns n, 4 + n, n, 4 + n
      turn_quarters(two(0), two(1), two(2), two(3), a);
      turn_quarters(two(8), two(9), two(10), two(11), b);
      for (int i = 0; i < 4; ++i) {
        m[n + i].x = _mm512_shuffle_f32x4(a[i].x, b[i].x, 0x88);
        m[n + 4 + i].x = _mm512_shuffle_f32x4(a[i].x, b[i].x, 0xDD);
      }
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
  // Four numbers of four vectors transposed, in each quarter.
  static void turn_quarters(__m512 b0, __m512 b1, __m512 b2, __m512 b3, F32 (&m)[4]) {
    const __m512 low0 = _mm512_unpacklo_ps(b0, b1), high0 = _mm512_unpackhi_ps(b0, b1);
    const __m512 low2 = _mm512_unpacklo_ps(b2, b3), high2 = _mm512_unpackhi_ps(b2, b3);
    m[0].x = _mm512_shuffle_ps(low0, low2, 0x44);
    m[1].x = _mm512_shuffle_ps(low0, low2, 0xEE);
    m[2].x = _mm512_shuffle_ps(high0, high2, 0x44);
    m[3].x = _mm512_shuffle_ps(high0, high2, 0xEE);
  }
  template <class I>
  static const I* as_bits(const void* from) {
    return static_cast<const I*>(from);
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

}  // namespace
