// Somebody's numbers, as files or as text: --out theirs.npy, --weights "1 0 0; .5 .5 0".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/attention_args.h"
#include "doctor/fit_claims.h"

namespace glasshead::cli {

struct ClaimArgs {
  Text out, weights, scores, lse, dq, dk, dv, d_out;
};
void add_claim_flags(CLI::App& command, ClaimArgs& args);

// The claims and the memory that they refer to.
struct LoadedClaims {
  std::optional<FileTensor> out, weights, scores, lse, dq, dk, dv, d_out;
  std::optional<int> decimals;  // of numbers given as text: as many as the longest has

  doctor::GivenClaims given() const;  // refers to these
};

// Reads everything that is given and appends what is wrong.
void load_claims(const ClaimArgs& args, LoadedClaims& to, std::vector<Problem>& problems);

}  // namespace glasshead::cli
