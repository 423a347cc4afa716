// AVX-512 (F, DQ, BW, VL): x86-64 servers since 2017, Zen 4 and later.
#include <cstddef>
#include <cstdint>

#include "kernels/isa/avx512.inl.h"
#include "kernels/kernel_set.h"
#include "kernels/layer.inl.h"
#include "kernels/linear.inl.h"
#include "kernels/panel.inl.h"

namespace {

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
