// NEON: every aarch64 processor.
#include <arm_neon.h>
#include <cstddef>
#include <cstdint>

#include "kernels/kernel_set.h"
#include "kernels/layer.inl.h"
#include "kernels/linear.inl.h"
#include "kernels/panel.inl.h"

namespace {

// Larger and smaller by compare and select: the instructions that are called so return NaN where
// either operand is NaN, or a number where either is one; neither is a > b ? a : b.
struct F32 {
  using T = float;
  static constexpr int W = 4;
  float32x4_t x;

  static F32 set1(T a) { return {vdupq_n_f32(a)}; }
  static F32 load(const T* from) { return {vld1q_f32(from)}; }
  static void store(T* to, F32 a) { vst1q_f32(to, a.x); }
  static F32 load_unaligned(const T* from) { return {vld1q_f32(from)}; }
  static void store_unaligned(T* to, F32 a) { vst1q_f32(to, a.x); }
  static F32 in_register(F32 a) {
    __asm__("" : "+w"(a.x));
    return a;
  }
  static F32 add(F32 a, F32 b) { return {vaddq_f32(a.x, b.x)}; }
  static F32 sub(F32 a, F32 b) { return {vsubq_f32(a.x, b.x)}; }
  static F32 mul(F32 a, F32 b) { return {vmulq_f32(a.x, b.x)}; }
  static F32 div(F32 a, F32 b) { return {vdivq_f32(a.x, b.x)}; }
  static F32 fma(F32 a, F32 b, F32 c) { return {vfmaq_f32(c.x, a.x, b.x)}; }
  static F32 accumulate(F32 a, F32 b, F32 s) { return fma(a, b, s); }
  static F32 max(F32 a, F32 b) { return {vbslq_f32(vcgtq_f32(a.x, b.x), a.x, b.x)}; }
  static F32 min(F32 a, F32 b) { return {vbslq_f32(vcltq_f32(a.x, b.x), a.x, b.x)}; }
  static F32 hide(F32 a, std::uint32_t bits) { return keep(a, set1(-__builtin_inff()), bits); }
  static F32 keep(F32 a, F32 b, std::uint32_t bits) {
    constexpr uint32x4_t kLane{1, 2, 4, 8};
    return {vbslq_f32(vtstq_u32(vdupq_n_u32(bits), kLane), a.x, b.x)};
  }
  static F32 zero_below(F32 x, F32 limit, F32 a) { return zero(vcltq_f32(x.x, limit.x), a); }
  static F32 zero_where_zero(F32 s, F32 a) { return zero(vceqq_f32(s.x, vdupq_n_f32(0)), a); }
  static F32 pow2(F32 shifted) {
    return {vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_f32(shifted.x), 23))};
  }
  static F32 magnitude(F32 a) { return {vabsq_f32(a.x)}; }
  static F32 with_sign(F32 a, F32 b) {
    return {vbslq_f32(vdupq_n_u32(std::uint32_t{1} << 31), b.x, a.x)};
  }
  static F32 quiet(F32 a) {
    return {vbslq_f32(vceqq_f32(a.x, a.x), a.x, vdupq_n_f32(__builtin_nanf("")))};
  }
  static F32 scaled(F32 a, double s) {
    const float64x2_t low = vmulq_n_f64(vcvt_f64_f32(vget_low_f32(a.x)), s);
    const float64x2_t high = vmulq_n_f64(vcvt_high_f64_f32(a.x), s);
    return {vcvt_high_f32_f64(vcvt_f32_f64(low), high)};
  }
  static F32 widen(const Bf16* from) {
    return {vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(&from->bits), 16))};
  }
  static F32 widen(const F16* from) {
    return {vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(&from->bits)))};
  }
  static F32 widen(const Int8* from) {
    std::uint32_t four;
    __builtin_memcpy(&four, from, sizeof four);
    const int8x8_t bytes = vreinterpret_s8_u32(vdup_n_u32(four));
    return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(bytes))))};
  }
  static void transpose(F32 (&m)[4]) {
    const float64x2_t a = pairs(vtrn1q_f32(m[0].x, m[1].x)), b = pairs(vtrn2q_f32(m[0].x, m[1].x));
    const float64x2_t c = pairs(vtrn1q_f32(m[2].x, m[3].x)), d = pairs(vtrn2q_f32(m[2].x, m[3].x));
    m[0].x = vreinterpretq_f32_f64(vtrn1q_f64(a, c));
    m[1].x = vreinterpretq_f32_f64(vtrn1q_f64(b, d));
    m[2].x = vreinterpretq_f32_f64(vtrn2q_f64(a, c));
    m[3].x = vreinterpretq_f32_f64(vtrn2q_f64(b, d));
  }

  struct Word {
    uint32x4_t x;
  };
  static Word load_word(const std::uint32_t* from) { return {vld1q_u32(from)}; }
  static Word both(Word a, std::uint32_t mask) { return {vandq_u32(a.x, vdupq_n_u32(mask))}; }
  static Word both(Word a, Word b) { return {vandq_u32(a.x, b.x)}; }
  static Word either(Word a, Word b) { return {vorrq_u32(a.x, b.x)}; }
  template <int N>
  static Word moved(Word a) {
    return {vshlq_u32(a.x, vdupq_n_s32(N))};
  }
  static F32 whole(Word a) { return {vcvtq_f32_u32(a.x)}; }

 private:
  static F32 zero(uint32x4_t where, F32 a) {
    return {vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(a.x), where))};
  }
  static float64x2_t pairs(float32x4_t a) { return vreinterpretq_f64_f32(a); }
};

struct F64 {
  using T = double;
  static constexpr int W = 2;
  float64x2_t x;

  static F64 set1(T a) { return {vdupq_n_f64(a)}; }
  static F64 load(const T* from) { return {vld1q_f64(from)}; }
  static void store(T* to, F64 a) { vst1q_f64(to, a.x); }
  static F64 load_unaligned(const T* from) { return {vld1q_f64(from)}; }
  static void store_unaligned(T* to, F64 a) { vst1q_f64(to, a.x); }
  static F64 in_register(F64 a) {
    __asm__("" : "+w"(a.x));
    return a;
  }
  static F64 add(F64 a, F64 b) { return {vaddq_f64(a.x, b.x)}; }
  static F64 sub(F64 a, F64 b) { return {vsubq_f64(a.x, b.x)}; }
  static F64 mul(F64 a, F64 b) { return {vmulq_f64(a.x, b.x)}; }
  static F64 div(F64 a, F64 b) { return {vdivq_f64(a.x, b.x)}; }
  static F64 fma(F64 a, F64 b, F64 c) { return {vfmaq_f64(c.x, a.x, b.x)}; }
  static F64 accumulate(F64 a, F64 b, F64 s) { return fma(a, b, s); }
  static F64 max(F64 a, F64 b) { return {vbslq_f64(vcgtq_f64(a.x, b.x), a.x, b.x)}; }
  static F64 min(F64 a, F64 b) { return {vbslq_f64(vcltq_f64(a.x, b.x), a.x, b.x)}; }
  static F64 hide(F64 a, std::uint32_t bits) { return keep(a, set1(-__builtin_inf()), bits); }
  static F64 keep(F64 a, F64 b, std::uint32_t bits) {
    constexpr uint64x2_t kLane{1, 2};
    return {vbslq_f64(vtstq_u64(vdupq_n_u64(bits), kLane), a.x, b.x)};
  }
  static F64 zero_below(F64 x, F64 limit, F64 a) { return zero(vcltq_f64(x.x, limit.x), a); }
  static F64 zero_where_zero(F64 s, F64 a) { return zero(vceqq_f64(s.x, vdupq_n_f64(0)), a); }
  static F64 pow2(F64 shifted) {
    return {vreinterpretq_f64_u64(vshlq_n_u64(vreinterpretq_u64_f64(shifted.x), 52))};
  }
  static F64 magnitude(F64 a) { return {vabsq_f64(a.x)}; }
  static F64 with_sign(F64 a, F64 b) {
    return {vbslq_f64(vdupq_n_u64(std::uint64_t{1} << 63), b.x, a.x)};
  }
  static F64 quiet(F64 a) {
    return {vbslq_f64(vceqq_f64(a.x, a.x), a.x, vdupq_n_f64(__builtin_nan("")))};
  }
  static F64 scaled(F64 a, double s) { return {vmulq_n_f64(a.x, s)}; }
  static void transpose(F64 (&m)[2]) {
    const float64x2_t first = vtrn1q_f64(m[0].x, m[1].x);
    m[1].x = vtrn2q_f64(m[0].x, m[1].x);
    m[0].x = first;
  }

 private:
  static F64 zero(uint64x2_t where, F64 a) {
    return {vreinterpretq_f64_u64(vbicq_u64(vreinterpretq_u64_f64(a.x), where))};
  }
};

// Thirty-two registers: up to 24 accumulators, the vectors of queries and a key's vector.
template <class Vector>
struct Panel {
  using V = Vector;
  static constexpr int kVectors = 4;
  template <int C>
  static constexpr int kStrip = C == 1   ? 16
                                : C <= 3 ? 8
                                         : 4;
};

// Twenty-four accumulators, four vectors of weights and a row's element.
struct Tile {
  static constexpr int kVectors = 4, kRows = 6;
};

constexpr const char* kFeatures[] = {"neon", nullptr};

}  // namespace

namespace glasshead {

extern const KernelSet kernel_set_neon;
const KernelSet kernel_set_neon{"neon",
                                "scalar",
                                kFeatures,
                                panel_kernels<Panel<F32>>(),
                                panel_kernels<Panel<F64>>(),
                                linear_kernels<F32, Tile>(),
                                layer_kernels<F32>()};

}  // namespace glasshead
