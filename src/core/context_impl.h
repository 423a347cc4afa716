// What a Context holds, for the layers that compute.
//
//   const Context::Impl& impl = context.impl();
//   impl.pool.run(items, [&](index_t item, int worker) { impl.kernels.f32.scores({...}); });
#pragma once

#include <string>
#include <type_traits>

#include "base/pool.h"
#include "glasshead/context.h"
#include "kernels/kernel_set.h"

namespace glasshead {

struct Context::Impl {
  KernelSet kernels;  // no entry is null
  std::string why_isa;
  Pool pool;
};

// The set's kernels for the compute type T, float or double.
template <class T>
const Kernels<T>& kernels_of(const Context::Impl& context) {
  if constexpr (std::is_same_v<T, float>)
    return context.kernels.f32;
  else
    return context.kernels.f64;
}

}  // namespace glasshead
