// The search for friendly numbers: what a candidate must satisfy, and the candidates.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "doctor/worksheet.h"

namespace glasshead::doctor {

// x lies within `share` of a unit of the last place from where rounding changes its direction.
bool is_near_rounding_edge(double x, int decimals, double share);
// The printed forms of a and b differ by at most one unit of the last place.
bool agree_to_one_unit(double a, double b, int decimals);
// By how many units of the last place two results differ at most; infinite where only one is a
// number or the shapes differ.
double units_apart(const TraceTensor& a, const TraceTensor& b, int decimals);

// The steps of the exercise as on paper: exp of the scores themselves, no maximum subtracted.
StepList paper_steps(const wire::Case& c);

// An exercise being put together: random draws by seed and attempt.
struct Draft {
  wire::Case exercise;
  std::string result;  // tap
  index_t d_k = 1;
  // They depend on shapes alone, so they are made once for all draws.
  StepList steps, paper;  // case_steps and paper_steps of the exercise
};
// The part that decides the scores, for attempt n; values and W_O are zero. Nothing where a head
// was searched for by itself and not found. `tries` counts runs of one head and is not gone beyond.
std::optional<Draft> draw_scores(const WorksheetOptions& options, std::uint64_t attempt,
                                 std::uint64_t& tries);
// Of one head alone; more only makes failing slower.
inline constexpr std::uint64_t kMostTries = 60'000;
// Fills in the values (and W_O), for attempt m of this candidate. `multiple`: with fractions, the
// number that every denominator of a weight divides.
void draw_values(Draft& candidate, const WorksheetOptions& options, std::uint64_t attempt,
                 std::uint64_t value_attempt, index_t multiple);

bool has_friendly_weights(const Draft& candidate, const WorksheetOptions& options);
// Not asked of each head: one that gives two tokens the same weights is friendly beside another.
bool has_varied_weights(const Draft& candidate, const WorksheetOptions& options);
bool has_friendly_result(const Draft& candidate, const WorksheetOptions& options);
// The smallest number that the sums of 2^s of all rows divide.
index_t common_denominator(const Trace& trace);
// Every mistake that the inputs can show with what it gives; false if one moves the result too
// little.
bool shows_every_mistake(const Draft& candidate, const WorksheetOptions& options,
                         std::vector<WrongAnswer>& wrong);

}  // namespace glasshead::doctor
