// Which tensor is which: a guess from names and shapes, for a page to offer.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "glasshead/diagnose.h"
#include "wasm/given_tensors.h"

namespace glasshead::wasm {

// "q", "k", "v", "mask", "bias", "out", "weights", "scores", "lse", "dq", "dk", "dv", "d_out".
std::span<const std::string_view> roles();
bool is_claim(std::string_view role);  // theirs, from "out" on but for d_out

// The role that a name speaks of: "softmax_lse.npy" -> "lse". Empty: none.
std::string role_of_name(std::string_view name);

// A role for each tensor, empty where nothing tells; no role twice. `known`: the shapes of a case,
// where there is one.
std::vector<std::string> guess_roles(const std::vector<SourceTensor>& tensors,
                                     const std::optional<AttentionCase>& known);

// For each tensor what its shape says against the role that was guessed, or why none was: "has the
// sizes of out, 6×2, in another order". Empty: nothing.
std::vector<std::string> shape_hints(const std::vector<SourceTensor>& tensors,
                                     const std::vector<std::string>& role_of,
                                     const std::optional<AttentionCase>& known);

}  // namespace glasshead::wasm
