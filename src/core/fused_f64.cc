#include "core/fused_path.h"

namespace glasshead {

EmptyRows run_fused_f64(const FusedCall& call, const Context& context) {
  return run_fused_as<double>(call, context);
}

}  // namespace glasshead
