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
};

// The claims as the doctor takes them, and which of them have other axes in their files. They refer
// to the memory of what was loaded.
struct FittedClaims {
  Claims claims;
  std::vector<std::string> read;  // for Diagnosis::read
};

// Gives each claim the shape that q, k and v ask for. Numbers of [batch, length, heads, size], or
// with all heads side by side [batch, length, heads*size], as many programs keep them, are taken as
// such where the shape tells; what fits in no way is a problem.
FittedClaims fit_claims(const LoadedClaims& loaded, const AttentionCase& attention,
                        std::vector<Problem>& problems);

// Reads everything that is given and appends what is wrong.
void load_claims(const ClaimArgs& args, LoadedClaims& to, std::vector<Problem>& problems);

}  // namespace glasshead::cli
