#include "core/fused_path.h"

namespace glasshead {

EmptyRows run_fused_f32(const FusedCall& call, const Context& context) {
  return run_fused_as<float>(call, context);
}

}  // namespace glasshead
