// AVX2 with FMA: x86-64 processors since 2013.
#include <cstddef>
#include <cstdint>
#include <immintrin.h>

#include "kernels/kernel_set.h"
#include "kernels/layer.inl.h"
#include "kernels/linear.inl.h"
#include "kernels/panel.inl.h"

namespace {

struct F32 {
  using T = float;
  static constexpr int W = 8;
  __m256 x;

  static F32 set1(T a) { return {_mm256_set1_ps(a)}; }
  static F32 load(const T* from) { return {_mm256_load_ps(from)}; }
  static void store(T* to, F32 a) { _mm256_store_ps(to, a.x); }
  static F32 load_unaligned(const T* from) { return {_mm256_loadu_ps(from)}; }
  static void store_unaligned(T* to, F32 a) { _mm256_storeu_ps(to, a.x); }
  static F32 in_register(F32 a) {
    __asm__("" : "+x"(a.x));
    return a;
  }
  static F32 add(F32 a, F32 b) { return {_mm256_add_ps(a.x, b.x)}; }
  static F32 sub(F32 a, F32 b) { return {_mm256_sub_ps(a.x, b.x)}; }
  static F32 mul(F32 a, F32 b) { return {_mm256_mul_ps(a.x, b.x)}; }
  static F32 div(F32 a, F32 b) { return {_mm256_div_ps(a.x, b.x)}; }
  static F32 fma(F32 a, F32 b, F32 c) { return {_mm256_fmadd_ps(a.x, b.x, c.x)}; }
  static F32 accumulate(F32 a, F32 b, F32 s) {
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(s.x) : "x"(a.x), "x"(b.x));
    return s;
  }
  static F32 max(F32 a, F32 b) { return {_mm256_max_ps(a.x, b.x)}; }
  static F32 min(F32 a, F32 b) { return {_mm256_min_ps(a.x, b.x)}; }
  static F32 hide(F32 a, std::uint32_t bits) { return keep(a, set1(-__builtin_inff()), bits); }
  static F32 keep(F32 a, F32 b, std::uint32_t bits) {
    return {_mm256_blendv_ps(b.x, a.x, _mm256_castsi256_ps(mask(bits)))};
  }
  static F32 zero_below(F32 x, F32 limit, F32 a) {
    return {_mm256_andnot_ps(_mm256_cmp_ps(x.x, limit.x, _CMP_LT_OQ), a.x)};
  }
  static F32 zero_where_zero(F32 s, F32 a) {
    return {_mm256_andnot_ps(_mm256_cmp_ps(s.x, _mm256_setzero_ps(), _CMP_EQ_OQ), a.x)};
  }
  static F32 pow2(F32 shifted) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(shifted.x), 23))};
  }
  static F32 magnitude(F32 a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0F), a.x)}; }
  static F32 with_sign(F32 a, F32 b) {
    return {_mm256_or_ps(magnitude(a).x, _mm256_and_ps(_mm256_set1_ps(-0.0F), b.x))};
  }
  static F32 quiet(F32 a) {
    return {_mm256_blendv_ps(a.x, _mm256_set1_ps(__builtin_nanf("")),
                             _mm256_cmp_ps(a.x, a.x, _CMP_UNORD_Q))};
  }
  static F32 scaled(F32 a, double s) {
    const __m256d scale = _mm256_set1_pd(s);
    const __m256d low = _mm256_mul_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(a.x)), scale);
    const __m256d high = _mm256_mul_pd(_mm256_cvtps_pd(_mm256_extractf128_ps(a.x, 1)), scale);
    return {_mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low))};
  }
  static F32 widen(const Bf16* from) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(as_bits(from)));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(wide, 16))};
  }
  static F32 widen(const F16* from) { return {_mm256_cvtph_ps(_mm_loadu_si128(as_bits(from)))}; }
  static F32 widen(const Int8* from) {
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(as_bits(from))))};
  }
  static void transpose(F32 (&m)[8]) {
    __m256 pairs[8], fours[8];
    for (int i = 0; i < 8; i += 2) {  // columns of two rows interleaved
      pairs[i] = _mm256_unpacklo_ps(m[i].x, m[i + 1].x);
      pairs[i + 1] = _mm256_unpackhi_ps(m[i].x, m[i + 1].x);
    }
    for (int i = 0; i < 8; i += 4) {  // of four rows
      fours[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
      fours[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xEE);
      fours[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
      fours[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xEE);
    }
    for (int i = 0; i < 4; ++i) {  // of eight
      m[i].x = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20);
      m[i + 4].x = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31);
    }
  }

  struct Word {
    __m256i x;
  };
  static Word load_word(const std::uint32_t* from) {
    return {_mm256_load_si256(reinterpret_cast<const __m256i*>(from))};
  }
  static Word both(Word a, std::uint32_t mask) {
    return {_mm256_and_si256(a.x, _mm256_set1_epi32(static_cast<int>(mask)))};
  }
  static Word both(Word a, Word b) { return {_mm256_and_si256(a.x, b.x)}; }
  static Word either(Word a, Word b) { return {_mm256_or_si256(a.x, b.x)}; }
  template <int N>
  static Word moved(Word a) {
    return {N >= 0 ? _mm256_slli_epi32(a.x, N & 31) : _mm256_srli_epi32(a.x, -N & 31)};
  }
  static F32 whole(Word a) { return {_mm256_cvtepi32_ps(a.x)}; }

 private:
  static const __m128i* as_bits(const void* from) { return static_cast<const __m128i*>(from); }
  static __m256i mask(std::uint32_t bits) {  // all ones in the lanes whose bit is set
    const __m256i lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits)), lane),
                              lane);
  }
};

struct F64 {
  using T = double;
  static constexpr int W = 4;
  __m256d x;

  static F64 set1(T a) { return {_mm256_set1_pd(a)}; }
  static F64 load(const T* from) { return {_mm256_load_pd(from)}; }
  static void store(T* to, F64 a) { _mm256_store_pd(to, a.x); }
  static F64 load_unaligned(const T* from) { return {_mm256_loadu_pd(from)}; }
  static void store_unaligned(T* to, F64 a) { _mm256_storeu_pd(to, a.x); }
  static F64 in_register(F64 a) {
    __asm__("" : "+x"(a.x));
    return a;
  }
  static F64 add(F64 a, F64 b) { return {_mm256_add_pd(a.x, b.x)}; }
  static F64 sub(F64 a, F64 b) { return {_mm256_sub_pd(a.x, b.x)}; }
  static F64 mul(F64 a, F64 b) { return {_mm256_mul_pd(a.x, b.x)}; }
  static F64 div(F64 a, F64 b) { return {_mm256_div_pd(a.x, b.x)}; }
  static F64 fma(F64 a, F64 b, F64 c) { return {_mm256_fmadd_pd(a.x, b.x, c.x)}; }
  static F64 accumulate(F64 a, F64 b, F64 s) {
    __asm__("vfmadd231pd %2, %1, %0" : "+x"(s.x) : "x"(a.x), "x"(b.x));
    return s;
  }
  static F64 max(F64 a, F64 b) { return {_mm256_max_pd(a.x, b.x)}; }
  static F64 min(F64 a, F64 b) { return {_mm256_min_pd(a.x, b.x)}; }
  static F64 hide(F64 a, std::uint32_t bits) { return keep(a, set1(-__builtin_inf()), bits); }
  static F64 keep(F64 a, F64 b, std::uint32_t bits) {
    return {_mm256_blendv_pd(b.x, a.x, _mm256_castsi256_pd(mask(bits)))};
  }
  static F64 zero_below(F64 x, F64 limit, F64 a) {
    return {_mm256_andnot_pd(_mm256_cmp_pd(x.x, limit.x, _CMP_LT_OQ), a.x)};
  }
  static F64 zero_where_zero(F64 s, F64 a) {
    return {_mm256_andnot_pd(_mm256_cmp_pd(s.x, _mm256_setzero_pd(), _CMP_EQ_OQ), a.x)};
  }
  static F64 pow2(F64 shifted) {
    return {_mm256_castsi256_pd(_mm256_slli_epi64(_mm256_castpd_si256(shifted.x), 52))};
  }
  static F64 magnitude(F64 a) { return {_mm256_andnot_pd(_mm256_set1_pd(-0.0), a.x)}; }
  static F64 with_sign(F64 a, F64 b) {
    return {_mm256_or_pd(magnitude(a).x, _mm256_and_pd(_mm256_set1_pd(-0.0), b.x))};
  }
  static F64 quiet(F64 a) {
    return {_mm256_blendv_pd(a.x, _mm256_set1_pd(__builtin_nan("")),
                             _mm256_cmp_pd(a.x, a.x, _CMP_UNORD_Q))};
  }
  static F64 scaled(F64 a, double s) { return mul(a, set1(s)); }
  static void transpose(F64 (&m)[4]) {
    const __m256d low0 = _mm256_unpacklo_pd(m[0].x, m[1].x);
    const __m256d high0 = _mm256_unpackhi_pd(m[0].x, m[1].x);
    const __m256d low2 = _mm256_unpacklo_pd(m[2].x, m[3].x);
    const __m256d high2 = _mm256_unpackhi_pd(m[2].x, m[3].x);
    m[0].x = _mm256_permute2f128_pd(low0, low2, 0x20);
    m[1].x = _mm256_permute2f128_pd(high0, high2, 0x20);
    m[2].x = _mm256_permute2f128_pd(low0, low2, 0x31);
    m[3].x = _mm256_permute2f128_pd(high0, high2, 0x31);
  }

 private:
  static __m256i mask(std::uint32_t bits) {
    const __m256i lane = _mm256_setr_epi64x(1, 2, 4, 8);
    return _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(bits), lane), lane);
  }
};

// Sixteen registers: 4 x 3 accumulators, three vectors of queries and one broadcast key.
template <class Vector>
struct Panel {
  using V = Vector;
  static constexpr int kVectors = 3;
  template <int C>
  static constexpr int kStrip = C == 1 ? 8 : 4;
};

// Six rows by two vectors of outputs leave two registers for weights and one for a broadcast.
struct Tile {
  static constexpr int kVectors = 2, kRows = 6;
};

constexpr const char* kFeatures[] = {"avx2", "fma", "f16c", nullptr};

}  // namespace

namespace glasshead {

extern const KernelSet kernel_set_avx2;
const KernelSet kernel_set_avx2{"avx2",
                                "scalar",
                                kFeatures,
                                panel_kernels<Panel<F32>>(),
                                panel_kernels<Panel<F64>>(),
                                linear_kernels<F32, Tile>(),
                                layer_kernels<F32>()};

}  // namespace glasshead
