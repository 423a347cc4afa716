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

// Products and sums of a call; inputs beyond kDiagnosedWork are judged, not looked into.
double work_of(const AuditCall& call);
inline constexpr double kDiagnosedWork = 2e6;

// Mistakes that a right answer to this call could not have shown.
std::vector<std::string> unseen_mistakes(const AuditCall& call);

// The verdict of two right answers that should share the bits of a part.
void judge_bits(const AuditCall& call, const Shared& part, const FileTensor& first,
                const FileTensor& second, AuditRow& row);

}  // namespace glasshead::audits
