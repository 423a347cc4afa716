// What a Context holds, for the layers that compute.
//
//   const Context::Impl& impl = context.impl();
//   impl.pool.run(items, [&](index_t item, int worker) { impl.kernels.f32.scores({...}); });
#pragma once

#include <string>

#include "base/pool.h"
#include "glasshead/context.h"
#include "kernels/kernel_set.h"

namespace glasshead {

struct Context::Impl {
  KernelSet kernels;  // no entry is null
  std::string why_isa;
  Pool pool;
};

}  // namespace glasshead
