// As many fused multiply-adds as the processor can do: what `glasshead bench` calls its peak.
#pragma once

#include "kernels/kernel_set.h"

namespace {

// Chains that do not wait for each other: two instructions a cycle of four or five cycles each need
// ten, and twelve with their two factors fit sixteen registers.
constexpr int kChains = 12;

// a = a * 0.5 + 1 in every chain, which stays between 1 and 2. Returns the multiply-adds, lane by
// lane, and the sum of the chains' first lanes in *sum, so that none can be left out.
template <class V>
glasshead::index_t multiply_adds(glasshead::index_t rounds, typename V::T* sum) noexcept {
  using T = typename V::T;
  const V half = V::in_register(V::set1(T(0.5))), one = V::in_register(V::set1(T(1)));
  V chains[kChains];
  for (V& chain : chains) chain = one;
  for (glasshead::index_t n = 0; n < rounds; ++n) {
    for (V& chain : chains) chain = V::fma(chain, half, one);
  }
  alignas(64) T lanes[V::W];
  T total = 0;
  for (const V& chain : chains) {
    V::store(lanes, chain);
    total += lanes[0];
  }
  *sum = total;
  return rounds * kChains * V::W;
}

}  // namespace
