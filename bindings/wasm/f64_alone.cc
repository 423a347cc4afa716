// The module computes in f64 alone: this takes the place of core/fused_f32.cc.
#include "base/fail.h"
#include "core/fused.h"

namespace glasshead {

EmptyRows run_fused_f32(const FusedCall&, const Context&) {
  fail(ErrorKind::option, "attend", "q", "f32; this module computes in f64");
}

}  // namespace glasshead
