// What a diagnosis is about: the inputs as doubles, the right program, and the rows to look at.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "doctor/judge.h"
#include "doctor/turns.h"

namespace glasshead::doctor {

struct Subject {
  Numbers q, k, v;
  std::optional<Numbers> unprojected, d_out;
  std::array<Numbers, 3> swapped;
  Turns turns;
  Program right;

  // `d_out`: data null without gradients.
  Subject(const AttentionCase& attention, DType arithmetic, const ConstTensor<4>& d_out = {});
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;
};

// The narrowest of q and the claims.
DType narrowest(const AttentionCase& attention, const Claims& claims);

// Query rows to compare: all of them where `most_work` products and sums allow, else a sample that
// holds the first and last rows and those around multiples of 64, and others by chance. In order.
std::vector<RowIndex> rows_to_check(const Program& program, double most_work);

// Up to `count` of a list, spread over it, its ends included.
std::vector<RowIndex> spread(const std::vector<RowIndex>& rows, std::size_t count);

// What is wrong with its rotary positions, if it has any.
void check_rotary(const AttentionCase& attention, std::vector<Problem>& problems);

// Everything that is wrong with the call or the claims.
std::vector<Problem> check_diagnosis(const AttentionCase& attention, const Claims& claims,
                                     const DiagnoseOptions& options);

}  // namespace glasshead::doctor
