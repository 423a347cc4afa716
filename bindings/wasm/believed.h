// The options that somebody believes their attention to have, typed into a page: texts, each empty
// where nothing was typed.
//
//   "options":{"causal":"end","window":"128,0","scale":"0.25","heads":"8"}
//
// causal (start, end or a position), query_start, window (left,right), key_lengths, prefix,
// scale, softcap, alibi ("auto" or a slope per head), rope (halves, adjacent), rope_base,
// rope_size, heads (of tensors whose last axis holds all heads side by side).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "glasshead/diagnose.h"
#include "wasm/request.h"

namespace glasshead::wasm {

struct Believed {
  AttentionOptions options;
  std::optional<Rotary> rotary;
  std::optional<index_t> heads;    // nullopt: as the shapes say
  std::vector<std::string> flags;  // the command's, for the same
  std::optional<std::string> alibi;
};

// Asks the request for "options". Slopes of "auto" need the number of heads: set_alibi.
Believed read_believed(Request& request);
void set_alibi(Believed& believed, index_t heads, Problems& problems);

// A whole number from least to most, typed; nullopt where nothing was typed or with a problem.
std::optional<index_t> typed_integer(Request& request, const char* key, index_t least,
                                     index_t most);

}  // namespace glasshead::wasm
