#include "glasshead/peak.h"

#include "base/fail.h"
#include "core/context_impl.h"

namespace glasshead {

index_t run_multiply_adds(const Context& context, DType type, index_t rounds) {
  // The call goes through a pointer, so the compiler cannot tell that nobody reads the sum.
  const KernelSet& kernels = context.impl().kernels;
  if (type == DType::f32) {
    float sum = 0;
    return kernels.f32.multiply_adds(rounds, &sum);
  }
  if (type == DType::f64) {
    double sum = 0;
    return kernels.f64.multiply_adds(rounds, &sum);
  }
  fail(ErrorKind::option, "run_multiply_adds", "type",
       std::string("found ") + name(type) + "; f32 or f64 is needed");
}

}  // namespace glasshead
