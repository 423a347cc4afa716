// How wrong numbers of out lie to the right ones as a whole, where no mistake explains them.
#pragma once

#include <string>
#include <vector>

#include "doctor/judge.h"
#include "doctor/subject.h"

namespace glasshead::doctor {

// Sentences: out is the right one times a number; out is off by one vector in every row of a head.
// `rows` are those that were compared; some of them are looked at.
std::vector<std::string> relations(const Subject& subject, const Judge& judge,
                                   const std::vector<RowIndex>& rows);

}  // namespace glasshead::doctor
