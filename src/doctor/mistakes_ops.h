// Operations that only wrong programs have. Each is what the code people write would do, in f64,
// sums in the order of the right steps.
#pragma once

#include "glasshead/trace.h"

namespace glasshead::doctor {

extern const Op kScoresTransposed;    // K·Qᵀ            reads q k
extern const Op kScoresUntransposed;  // Q·K, which multiplies only when kv_len = d_k; reads q k
extern const Op kCopy;                // what it reads, unchanged
extern const Op kMatrixMax;           // per row: the largest of the whole matrix; reads masked
extern const Op kMatrixSum;           // per row: the sum of the whole matrix; reads exp
extern const Op kColumnMax;           // [..., kv_len]; reads masked
extern const Op kColumnExp;           // exp(Z - column_max); reads masked column_max
extern const Op kColumnSum;           // [..., kv_len]; reads exp
extern const Op kColumnWeights;       // exp / column_sum; reads exp column_sum
extern const Op kHideWeights;         // weights of hidden pairs become 0; reads weights
extern const Op kMaskMultiply;        // scores times 1 or 0; reads scores
extern const Op kMaskAsNumber;        // scores plus 1 or 0; reads scores
extern const Op kMaskFinite;          // hidden scores become the number "value"; reads scores
extern const Op kTranspose;           // last two axes; reads a square matrix

}  // namespace glasshead::doctor
