// The kernel sets that this machine can run, as tests see them.
#pragma once

#include <vector>

#include "kernels/kernel_set.h"
#include "kernels/select.h"

namespace glasshead {

#ifdef GLASSHEAD_EMULATED_AVX512
// avx512.cc and avx512_bf16.cc, compiled against an emulation of their intrinsics
// (emulated/immintrin.h).
extern const KernelSet kernel_set_avx512_emulated, kernel_set_avx512_bf16_emulated;
#endif

namespace test {

// With null entries filled; the emulated one last.
inline std::vector<KernelSet> runnable_sets() {
  std::vector<KernelSet> sets;
  for (const KernelSet* set : kernel_set_list()) {
    if (missing_features(*set).empty()) sets.push_back(filled(*set));
  }
#ifdef GLASSHEAD_EMULATED_AVX512
  sets.push_back(kernel_set_avx512_emulated);
  sets.back().name = "avx512, emulated";
#endif
  return sets;
}

// Those that round attend's factors to bf16, the emulated one last.
inline std::vector<KernelSet> rounding_sets() {
  std::vector<KernelSet> sets;
  for (const KernelSet* set : rounding_set_list()) {
    if (missing_features(*set).empty()) sets.push_back(filled(*set));
  }
#ifdef GLASSHEAD_EMULATED_AVX512
  KernelSet set = kernel_set_avx512_emulated;
  const Kernels<float>& own = kernel_set_avx512_bf16_emulated.f32;
  set.name = "avx512_bf16, emulated";
  set.rounds = true;
  set.f32.pack = own.pack;
  set.f32.scores = own.scores;
  set.f32.accumulate = own.accumulate;
  set.f32.are_finite = own.are_finite;
  set.f32.multiply_adds = own.multiply_adds;
  sets.push_back(set);
#endif
  return sets;
}

template <class T>
const Kernels<T>& kernels_of(const KernelSet& set) {
  if constexpr (sizeof(T) == sizeof(float))
    return set.f32;
  else
    return set.f64;
}

// f(T{}, kernels) for float and double of every set.
template <class F>
void for_kernels(const F& f) {
  for (const KernelSet& set : runnable_sets()) {
    f(float{}, set, set.f32);
    f(double{}, set, set.f64);
  }
}

}  // namespace test
}  // namespace glasshead
