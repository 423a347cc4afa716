// An answer beside the right numbers.
#pragma once

#include "audit/inputs.h"

namespace glasshead::audits {

// Fills verdict, text, mistakes and ulps of `row` from the answer to one call. `looks_for_pairs`:
// two mistakes at once are looked for, too.
void judge_answer(const AuditCall& call, const AuditAnswer& answer, bool looks_for_pairs,
                  AuditRow& row);

// Whether it has as many bytes as its shape and type say.
bool is_whole(const FileTensor& x);

// Products and sums of a call. Of inputs beyond kJudgedWork some rows are judged; those beyond
// kDiagnosedWork are judged, not looked into. (glasshead/audit.h says so.)
double work_of(const AuditCall& call);
inline constexpr double kJudgedWork = 1e8;
inline constexpr double kDiagnosedWork = 2e6;

// Mistakes that a right answer to this call could not have shown.
std::vector<std::string> unseen_mistakes(const AuditCall& call);

// The verdict of two right answers that should share bits: those of the parts that the input's
// relation compares.
void judge_bits(const AuditCall& call, const Input& input, const FileTensor& first,
                const FileTensor& second, AuditRow& row);

}  // namespace glasshead::audits
