// What a command line gives a case beside its text: a mask from a file, the choice about rows with
// no allowed key.
#pragma once

#include <optional>
#include <vector>

#include "wire/case.h"

namespace glasshead::wire {

// The case with the mask of every block's `attention` replaced by these booleans (nonzero: may
// attend), broadcast to [batch, heads, q_len, kv_len]; a `cross_attention` keeps its own, as with
// Edit::mask. nullopt, and problems, if they do not fit, or the case has no softmax.
std::optional<Case> with_mask(const Case& original, const Broadcast& allowed,
                              std::vector<Problem>& problems);

// A problem for every row with no allowed key, unless the case chooses EmptyRow::zero: softmax of
// nothing is undefined.
std::vector<Problem> empty_row_problems(const Case& c);

}  // namespace glasshead::wire
