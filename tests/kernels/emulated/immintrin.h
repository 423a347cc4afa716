// The AVX-512 intrinsics of src/kernels/isa without AVX-512: SIMDe's portable ones, with the few
// that its version 0.7.4 lacks, and multiply-adds that are rounded once (SIMDe's are rounded
// twice).
#pragma once

#define SIMDE_NO_NATIVE
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

using __mmask8 = simde__mmask8;
using __mmask16 = simde__mmask16;

#define GLASSHEAD_EMULATED
// What keeps a value in a register has no meaning here.
#define __asm__(...)

// A quarter of the register moves whole, whatever its elements are.
#define _mm512_shuffle_f32x4(a, b, which)                                         \
  simde_mm512_castsi512_ps(simde_mm512_shuffle_i32x4(simde_mm512_castps_si512(a), \
                                                     simde_mm512_castps_si512(b), (which)))
#define _mm512_shuffle_f64x2(a, b, which)                                         \
  simde_mm512_castsi512_pd(simde_mm512_shuffle_i32x4(simde_mm512_castpd_si512(a), \
                                                     simde_mm512_castpd_si512(b), (which)))

#undef _mm512_fmadd_ps
#undef _mm512_fmadd_pd
static inline simde__m512 _mm512_fmadd_ps(simde__m512 a, simde__m512 b, simde__m512 c) {
  simde__m512_private x = simde__m512_to_private(a), y = simde__m512_to_private(b),
                      z = simde__m512_to_private(c);
  for (int n = 0; n < 16; ++n) z.f32[n] = __builtin_fmaf(x.f32[n], y.f32[n], z.f32[n]);
  return simde__m512_from_private(z);
}
static inline simde__m512d _mm512_fmadd_pd(simde__m512d a, simde__m512d b, simde__m512d c) {
  simde__m512d_private x = simde__m512d_to_private(a), y = simde__m512d_to_private(b),
                       z = simde__m512d_to_private(c);
  for (int n = 0; n < 8; ++n) z.f64[n] = __builtin_fma(x.f64[n], y.f64[n], z.f64[n]);
  return simde__m512d_from_private(z);
}

// Between sixteen floats and twice eight doubles.
static inline simde__m512d _mm512_cvtps_pd(simde__m256 a) {
  simde__m256_private x = simde__m256_to_private(a);
  simde__m512d_private wide;
  for (int n = 0; n < 8; ++n) wide.f64[n] = static_cast<double>(x.f32[n]);
  return simde__m512d_from_private(wide);
}
static inline simde__m256 _mm512_cvtpd_ps(simde__m512d a) {
  simde__m512d_private x = simde__m512d_to_private(a);
  simde__m256_private narrow;
  for (int n = 0; n < 8; ++n) narrow.f32[n] = static_cast<float>(x.f64[n]);
  return simde__m256_from_private(narrow);
}
static inline simde__m256 _mm512_extractf32x8_ps(simde__m512 a, int half) {
  simde__m512_private x = simde__m512_to_private(a);
  simde__m256_private part;
  for (int n = 0; n < 8; ++n) part.f32[n] = x.f32[8 * half + n];
  return simde__m256_from_private(part);
}
#undef _mm512_insertf32x8
static inline simde__m512 _mm512_insertf32x8(simde__m512 a, simde__m256 b, int half) {
  simde__m512_private x = simde__m512_to_private(a);
  simde__m256_private part = simde__m256_to_private(b);
  for (int n = 0; n < 8; ++n) x.f32[8 * half + n] = part.f32[n];
  return simde__m512_from_private(x);
}

// Sixteen narrow elements to floats.
static inline simde__m512i _mm512_cvtepu16_epi32(simde__m256i a) {
  simde__m256i_private x = simde__m256i_to_private(a);
  simde__m512i_private wide;
  for (int n = 0; n < 16; ++n) wide.u32[n] = x.u16[n];
  return simde__m512i_from_private(wide);
}
static inline simde__m512i _mm512_cvtepi8_epi32(simde__m128i a) {
  simde__m128i_private x = simde__m128i_to_private(a);
  simde__m512i_private wide;
  for (int n = 0; n < 16; ++n) wide.i32[n] = x.i8[n];
  return simde__m512i_from_private(wide);
}
static inline simde__m512 _mm512_cvtepi32_ps(simde__m512i a) {
  simde__m512i_private x = simde__m512i_to_private(a);
  simde__m512_private wide;
  for (int n = 0; n < 16; ++n) wide.f32[n] = static_cast<float>(x.i32[n]);
  return simde__m512_from_private(wide);
}
static inline simde__m512 _mm512_cvtph_ps(simde__m256i a) {
  simde__m256i_private x = simde__m256i_to_private(a);
  simde__m512_private wide;
  for (int n = 0; n < 16; ++n) {
    const int exponent = x.u16[n] >> 10 & 31, fraction = x.u16[n] & 1023;
    float size = exponent == 0
                     ? __builtin_ldexpf(static_cast<float>(fraction), -24)
                     : __builtin_ldexpf(static_cast<float>(1024 + fraction), exponent - 25);
    if (exponent == 31) size = fraction == 0 ? __builtin_inff() : __builtin_nanf("");
    wide.f32[n] = x.u16[n] >> 15 != 0 ? -size : size;
  }
  return simde__m512_from_private(wide);
}

// What AVX512_BF16 does, as its manual says (src/kernels/isa/avx512_bf16.cc).
#undef _mm512_cvtne2ps_pbh
#undef _mm512_dpbf16_ps
#undef __m512bh
using Bf16Pairs = simde__m512i;
#define __m512bh Bf16Pairs
static inline float no_subnormal(float x) {
  return __builtin_fabsf(x) < 0x1p-126F ? __builtin_copysignf(0, x) : x;
}
static inline float from_bf16(unsigned half) {
  return no_subnormal(__builtin_bit_cast(float, half << 16));
}
static inline unsigned short to_bf16(float x) {
  const auto bits = __builtin_bit_cast(unsigned, no_subnormal(x));
  const unsigned rounded = x == x ? bits + 0x7FFF + (bits >> 16 & 1) : bits | 0x400000;
  return static_cast<unsigned short>(rounded >> 16);
}
static inline __m512bh _mm512_cvtne2ps_pbh(simde__m512 upper, simde__m512 lower) {
  simde__m512_private high = simde__m512_to_private(upper), low = simde__m512_to_private(lower);
  simde__m512i_private halves;
  for (int n = 0; n < 16; ++n) {
    halves.u16[n] = to_bf16(low.f32[n]);
    halves.u16[16 + n] = to_bf16(high.f32[n]);
  }
  return simde__m512i_from_private(halves);
}
static inline simde__m512 _mm512_dpbf16_ps(simde__m512 sums, __m512bh a, __m512bh b) {
  simde__m512i_private x = simde__m512i_to_private(a), y = simde__m512i_to_private(b);
  simde__m512_private s = simde__m512_to_private(sums);
  for (int n = 0; n < 16; ++n)
    for (int half = 1; half >= 0; --half) {
      const float p = from_bf16(x.u16[2 * n + half]), q = from_bf16(y.u16[2 * n + half]);
      s.f32[n] = no_subnormal(__builtin_fmaf(p, q, no_subnormal(s.f32[n])));
    }
  return simde__m512_from_private(s);
}
