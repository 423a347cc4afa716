// The part of a view that shows a case as computed on paper. The page's own module is without it
// (by_hand_elsewhere.cc).
#pragma once

#include "wasm/session.h"
#include "wire/json_writer.h"

namespace glasshead::wasm {

// `document`, of the exact numbers, becomes that of the rounded ones, its cells marked with the
// exact; writes "by_hand", its lines.
void show_by_hand(wire::JsonWriter& json, wire::Document& document, const EditedCase& edited,
                  const wire::DocumentOptions& options, int decimals, Problems& problems);

}  // namespace glasshead::wasm
