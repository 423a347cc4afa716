#include "model/description.h"

namespace glasshead::model {

const char* name(NormKind kind) { return kind == NormKind::layer ? "LayerNorm" : "RMSNorm"; }

const char* name(Placement placement) {
  switch (placement) {
    case Placement::pre:
      return "pre";
    case Placement::post:
      return "post";
    case Placement::sandwich:
      return "sandwich";
  }
  return "";
}

}  // namespace glasshead::model
