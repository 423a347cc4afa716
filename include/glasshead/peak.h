// The processor's limit, for measuring: attention is two matrix products, so no kernel can be
// faster than its multiply-adds.
//
//   const auto start = now();
//   const index_t done = run_multiply_adds(context, DType::f32, 1'000'000);
//   const double flops = 2.0 * done / (now() - start);         // of this thread
#pragma once

#include "glasshead/context.h"

namespace glasshead {

// Fused multiply-adds of the context's kernel set from registers to registers, in chains that do
// not wait for each other, `rounds` of each chain, in the calling thread. Returns how many numbers
// were multiplied and added. type: f32 or f64; anything else is an OptionError.
index_t run_multiply_adds(const Context& context, DType type, index_t rounds);

}  // namespace glasshead
