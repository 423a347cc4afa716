// Somebody's numbers, as files or as text: --out theirs.npy, --weights "1 0 0; .5 .5 0".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/attention_args.h"
#include "glasshead/diagnose.h"

namespace glasshead::cli {

struct ClaimArgs {
  Text out, weights, scores, lse, dq, dk, dv, d_out;
};
void add_claim_flags(CLI::App& command, ClaimArgs& args);

// The claims and the memory that they refer to.
struct LoadedClaims {
  std::optional<FileTensor> out, weights, scores, lse, dq, dk, dv, d_out;
  std::optional<int> decimals;  // of numbers given as text: as many as the longest has
  Claims claims() const;
};

// Reads everything that is given and appends what is wrong.
void load_claims(const ClaimArgs& args, LoadedClaims& to, std::vector<Problem>& problems);

// "1 0 0; .5 .5 0" as f64 [2, 3]: numbers between spaces or commas, rows between ; or line ends.
// One row is [n]. `decimals`: the most digits after a point, untouched where there is none.
std::optional<FileTensor> parse_matrix(const std::string& flag, const std::string& text,
                                       std::optional<int>& decimals,
                                       std::vector<Problem>& problems);
// "[[1, 0], [.5, .5]]" as f64 [2, 2], as JSON, NumPy and torch write it: the brackets say the
// shape, of four axes at most.
std::optional<FileTensor> parse_nested(const std::string& flag, const std::string& text,
                                       std::optional<int>& decimals,
                                       std::vector<Problem>& problems);

}  // namespace glasshead::cli
