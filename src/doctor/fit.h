// Solves for the one number of a program that brings it nearest to the claims.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "doctor/judge.h"

namespace glasshead::doctor {

// The number x for which make(x) comes nearest on these rows, by least squares from several starts
// around `known` (its sign, and powers of two up to 64 times it, and the other sign where
// `is_any`). nullopt: no start leads anywhere.
std::optional<double> fit_number(const Judge& judge, const std::vector<RowIndex>& rows,
                                 const std::function<Program(double)>& make, double known,
                                 bool is_any);

std::string number_name(double x);  // six significant digits

}  // namespace glasshead::doctor
