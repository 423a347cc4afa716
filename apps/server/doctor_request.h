// The doctor asked by JSON: a case, and somebody's numbers for its first attention.
//
//   {"name": "three-tokens-causal", "case": "<the case's text>",
//    "claims": {"weights": "1 0 0; .5 .5 0; .25 .25 .5", "out": [[1, 0], [0.33, 0.67], [0.75,
//    0.75]]}, "decimals": 2, "dtype": "f32", "pairs": false, "format": "json"}
//
// claims: out, weights, scores, lse, each a list of lists of numbers, as exact as a file's, or text
// as the command takes it, whose digits say how far it was rounded. Everything but "case" and one
// claim may be left out. The answer is what `glasshead doctor CASE ... --json` prints ("format":
// "text": without --json), byte for byte.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "glasshead/error.h"

namespace glasshead::server {

// "" with problems. Throws Error for claims that don't fit the case.
std::string answer_doctor(const nlohmann::json& request, std::vector<Problem>& problems);

}  // namespace glasshead::server
