// The right program beside the claims, number by number: which are wrong, where, and what is right
// about them all the same.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "doctor/judge.h"
#include "doctor/subject.h"

namespace glasshead::doctor {

struct Examined {
  std::vector<RowIndex> wrong_rows;  // worst first
  index_t numbers = 0, wrong = 0;
  index_t nans = 0;        // of the claimed numbers
  bool are_finite = true;  // claimed and right numbers
  Entry first_wrong, worst;
  double worst_ulps = 0;
  std::vector<RowReport> small_rows;
  std::vector<std::string> pattern, proven, next;
};

Examined examine(const Subject& subject, const Judge& judge, const std::vector<RowIndex>& rows,
                 const DiagnoseOptions& options);

// The largest error of plain three-pass attention in the program's arithmetic over these rows, in
// the unit of Examined::worst_ulps: scores, weights and sums in f32 (f64 for f64), out rounded
// once.
double plain_ulps(const Subject& subject, const std::vector<RowIndex>& rows);

// Units in the last place of `type` at this size.
double in_ulps(double error, double size, DType type);

}  // namespace glasshead::doctor
