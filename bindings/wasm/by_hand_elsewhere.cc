// The page's own module computes exactly and leaves paper's arithmetic to the module with
// everything: this takes the place of view_by_hand.cc.
#include "wasm/view_by_hand.h"

namespace glasshead::wasm {

void show_by_hand(wire::JsonWriter&, wire::Document&, const EditedCase&,
                  const wire::DocumentOptions&, int, Problems& problems) {
  problems.push_back({"by_hand", "this module computes exactly; the one with everything rounds"});
}

}  // namespace glasshead::wasm
