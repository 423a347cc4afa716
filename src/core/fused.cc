#include "core/fused.h"

namespace glasshead {

EmptyRows run_fused(const FusedCall& call, const Context& context) {
  for (int axis = 0; axis < 3; ++axis) {
    if (call.q.shape[static_cast<std::size_t>(axis)] == 0) return {};
  }
  if (call.q.dtype == DType::f64) return run_fused_f64(call, context);
  return run_fused_f32(call, context);
}

}  // namespace glasshead
