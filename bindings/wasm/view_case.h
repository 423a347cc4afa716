// What a view says of a case beside its numbers.
#pragma once

#include "wasm/session.h"
#include "wire/json_writer.h"

namespace glasshead::wasm {

// The members "inputs", "from", "ours", "labels", "drills": what no edit changes.
void write_case(wire::JsonWriter& json, const EditedCase& edited);

// Who may attend to whom in the first attention: {"kind":...,"rows":[["","causal"],...]}, a reason
// for every hidden pair; null without one.
void write_mask(wire::JsonWriter& json, const Trace& trace);
void write_scale(wire::JsonWriter& json, const Trace& trace, int decimals);
void write_steps(wire::JsonWriter& json, const Trace& trace);

// An edit that a page can make: of numbers, keys, mask, scale and empty rows.
bool can_be_made(const wire::Edit& edit);
// As the edit of a request (request.h), a row of numbers as one entry for each; `after` is `before`
// so edited.
void write_edit(wire::JsonWriter& json, const wire::Case& before, const wire::Case& after,
                const wire::Edit& edit);

}  // namespace glasshead::wasm
