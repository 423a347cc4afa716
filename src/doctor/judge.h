// Somebody's numbers beside those of a program, in tolerances.
//
//   Judge judge(claims, decimals, arithmetic);
//   double worst = judge.misfit(runner.row(at), at);   // at most 1: the program gives this row
#pragma once

#include <optional>

#include "doctor/program_rows.h"

namespace glasshead::doctor {

// One claimed number. `expected` and `tolerance` are the program's.
struct Compared {
  const char* claim = "";
  index_t last = 0;                                         // along the last axis; 0 for lse
  double found = 0, expected = 0, tolerance = 0, size = 0;  // size: what expected is a sum of
};

// A number further than this from the right one is wrong.
inline constexpr double kWrong = 1;

// |found - expected| in tolerances: 0 for equal non-finite numbers, inf where only one is finite.
double distance(double found, double expected, double tolerance);

class Judge {
 public:
  Judge(const Claims& claims, std::optional<int> decimals, DType arithmetic)
      : claims_(claims), decimals_(decimals), arithmetic_(arithmetic) {}

  // visit(Compared) for each claimed number of the row; stops where it returns false. `may_drop`:
  // a claimed weight of 0 is passed over.
  template <class Visit>
  void each(const RowNumbers& numbers, const RowIndex& at, bool may_drop,
            const Visit& visit) const {
    const auto [b, h, i] = at;
    if (claims_.out.data != nullptr)
      for (index_t d = 0; d < claims_.out.shape[3]; ++d) {
        const std::size_t s = slot(d);
        if (!visit(compared("out", d, claims_.out.load(b, h, i, d), claims_.out.dtype,
                            numbers.out[s], numbers.out_error[s], numbers.out_size[s])))
          return;
      }
    if (claims_.weights.data != nullptr) {
      if (slot(claims_.weights.shape[3]) != numbers.weights.size()) {
        visit(Compared{"weights", 0, 1, 0, 0, 1});  // of another shape
        return;
      }
      for (index_t j = 0; j < claims_.weights.shape[3]; ++j) {
        const std::size_t s = slot(j);
        const double found = claims_.weights.load(b, h, i, j);
        if (may_drop && found == 0) continue;
        if (!visit(compared("weights", j, found, claims_.weights.dtype, numbers.weights[s],
                            numbers.weight_error[s], numbers.weights[s])))
          return;
      }
    }
    if (claims_.scores.data != nullptr) {
      if (slot(claims_.scores.shape[3]) != numbers.scores.size()) return;
      for (index_t j = 0; j < claims_.scores.shape[3]; ++j) {
        const std::size_t s = slot(j);
        if (numbers.visible[s] == 0) continue;
        if (!visit(compared("scores", j, claims_.scores.load(b, h, i, j), claims_.scores.dtype,
                            numbers.scores[s], numbers.score_error[s], numbers.scores[s])))
          return;
      }
    }
    if (claims_.lse.data != nullptr)
      visit(compared("lse", 0, claims_.lse.load(b, h, i), claims_.lse.dtype, numbers.lse,
                     numbers.lse_error, numbers.lse));
  }

  // The largest distance; stops above `enough`.
  double misfit(const RowNumbers& numbers, const RowIndex& at, bool may_drop, double enough) const;

  const Claims& claims() const { return claims_; }
  std::optional<int> decimals() const { return decimals_; }

 private:
  Compared compared(const char* claim, index_t last, double found, DType dtype, double expected,
                    double error, double size) const;

  const Claims& claims_;
  std::optional<int> decimals_;
  DType arithmetic_;
};

// A claimed number of a row as the visitor saw it.
struct Shown {
  double expected = 0, tolerance = 0;
};
// Every number that the claims speak of, in the order of Judge::each without may_drop.
std::vector<Shown> shown(const Judge& judge, const RowNumbers& numbers, const RowIndex& at);
// In how many numbers two programs are certain to differ: by more than four of both tolerances.
index_t count_differing(const std::vector<Shown>& a, const std::vector<Shown>& b);

}  // namespace glasshead::doctor
