// What a page asks while somebody edits a case. All take "case", "name" and "edit" (call.h), but
// for step.
//
//   view      everything that is shown: glasshead.view/1, with "before" (an edit) what moved since,
//             with "by_hand" (decimals) the numbers as on paper beside the exact ones, with
//             "mistake" (an id) that mistake's run beside the right one; "decimals"
//   why       the derivation of a row's weights: "query", "head"
//   origin    the cells that one cell came from and those it feeds: "tap", "head", "row", "column"
//   mistakes  those that can be made on this case
//   grade     a drill's answer: "drill" (its number), "ticked" (ids of the weights said to move)
//   step      a typed number and how far to move it, both as text: "text", "by"
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "wasm/request.h"

namespace glasshead::wasm {

using PageCall = std::optional<std::string> (*)(Request& request);

// Null for a name of none.
PageCall find_page_call(std::string_view name);

}  // namespace glasshead::wasm
