#include "wasm/view_by_hand.h"

#include "wire/by_hand.h"
#include "wire/document_compare.h"

namespace glasshead::wasm {

void show_by_hand(wire::JsonWriter& json, wire::Document& document, const EditedCase& edited,
                  const wire::DocumentOptions& options, int decimals, Problems&) {
  const wire::Case& c = edited.given();
  const wire::ByHand hand = wire::run_by_hand(c, {decimals, false});
  wire::DocumentOptions rounded = options;
  rounded.print.decimals = decimals;
  rounded.print.rounding = wire::RowRounding::nearest;
  const wire::Document exact = wire::build_document(c, hand.exact, options);
  document = wire::build_document(c, hand.rounded, rounded);
  wire::mark_moved(document, exact);
  json.key("by_hand").values(wire::by_hand_lines(c, hand, options));
}

}  // namespace glasshead::wasm
