// Somebody's numbers as their program keeps them, in the shapes that a diagnosis takes.
//
//   FittedClaims fitted = fit_claims({.out = &theirs}, attention, problems);
//   diagnose(attention, fitted.claims);          // and its `read` is fitted.read
#pragma once

#include <string>
#include <vector>

#include "glasshead/diagnose.h"
#include "glasshead/tensor_file.h"

namespace glasshead::doctor {

// Members as of Claims; null: not given.
struct GivenClaims {
  const FileTensor *out = nullptr, *weights = nullptr, *scores = nullptr, *lse = nullptr;
  const FileTensor *dq = nullptr, *dk = nullptr, *dv = nullptr, *d_out = nullptr;
};

// They refer to the memory of what was given.
struct FittedClaims {
  Claims claims;
  std::vector<std::string> read;  // for Diagnosis::read: which have other axes as given, and how
};

// Gives each claim the shape that q, k and v ask for, leading axes of size 1 left out or added.
// Numbers of [batch, length, heads, size], or with all heads side by side [batch, length,
// heads*size], as many programs keep them, are taken as such where the shape tells; what fits in
// no way is a problem at its name, "d_out".
FittedClaims fit_claims(const GivenClaims& given, const AttentionCase& attention,
                        std::vector<Problem>& problems);

}  // namespace glasshead::doctor
