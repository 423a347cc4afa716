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
  std::size_t number = 0;  // of the row's numbers, counted in the order of `shown`
};

// A number further than this from the right one is wrong.
inline constexpr double kWrong = 1;

// |found - expected| in tolerances: 0 for equal non-finite numbers, inf where only one is finite.
double distance(double found, double expected, double tolerance);

class Judge {
 public:
  Judge(const Claims& claims, std::optional<int> decimals, DType arithmetic)
      : claims_(claims), decimals_(decimals), arithmetic_(arithmetic) {}

  // visit(Compared) for each claimed number of the row (of out those that were computed); stops
  // where it returns false. `may_drop`: a claimed weight of 0 is passed over. Of an open row none.
  template <class Visit>
  void each(const RowNumbers& numbers, const RowIndex& at, bool may_drop,
            const Visit& visit) const {
    if (numbers.is_open) return;
    const auto [b, h, i] = at;
    std::size_t number = 0;
    const auto look = [&](Compared c) {
      c.number = number++;
      return visit(c);
    };
    if (claims_.out.data != nullptr)
      for (index_t d = 0; d < static_cast<index_t>(numbers.out.size()); ++d) {
        const std::size_t s = slot(d);
        if (!look(compared("out", d, claims_.out.load(b, h, i, d), claims_.out.dtype,
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
        if (may_drop && found == 0) {
          ++number;
          continue;
        }
        if (!look(compared("weights", j, found, claims_.weights.dtype, numbers.weights[s],
                           numbers.weight_error[s], numbers.weights[s])))
          return;
      }
    }
    if (claims_.scores.data != nullptr) {
      if (slot(claims_.scores.shape[3]) != numbers.scores.size()) return;
      for (index_t j = 0; j < claims_.scores.shape[3]; ++j) {
        const std::size_t s = slot(j);
        if (numbers.visible[s] == 0) continue;
        if (!look(compared("scores", j, claims_.scores.load(b, h, i, j), claims_.scores.dtype,
                           numbers.scores[s], numbers.score_error[s], numbers.scores[s])))
          return;
      }
    }
    if (claims_.lse.data != nullptr &&
        !look(compared("lse", 0, claims_.lse.load(b, h, i), claims_.lse.dtype, numbers.lse,
                       numbers.lse_error, numbers.lse)))
      return;
    for (index_t e = 0; claims_.dq.data != nullptr && e < claims_.dq.shape[3]; ++e) {
      if (numbers.dq.empty()) {  // not known of this program: never its explanation
        visit(Compared{"dq", 0, 1, 0, 0, 1});
        return;
      }
      if (!look(compared("dq", e, claims_.dq.load(b, h, i, e), claims_.dq.dtype,
                         numbers.dq[slot(e)], numbers.dq_error[slot(e)], numbers.dq[slot(e)])))
        return;
    }
  }

  bool has_key_claims() const { return claims_.dk.data != nullptr || claims_.dv.data != nullptr; }
  // visit(Compared, key) for each claimed number of dk and dv of a head; stops where it is false.
  template <class Visit>
  void each_key(const KeyNumbers& numbers, index_t b, index_t g, const Visit& visit) const {
    const auto look = [&](const char* name, const ConstTensor<4>& claim,
                          const std::vector<double>& expected, const std::vector<double>& error) {
      if (claim.data == nullptr) return true;
      for (index_t j = 0; j < claim.shape[2]; ++j)
        for (index_t e = 0; e < claim.shape[3]; ++e) {
          const std::size_t s = slot(j * claim.shape[3] + e);
          if (!visit(compared(name, e, claim.load(b, g, j, e), claim.dtype, expected[s], error[s],
                              expected[s]),
                     j))
            return false;
        }
      return true;
    };
    if (look("dk", claims_.dk, numbers.dk, numbers.dk_error))
      look("dv", claims_.dv, numbers.dv, numbers.dv_error);
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
  bool is_weight = false;
};
// Every number that the claims speak of, in the order of Judge::each without may_drop.
std::vector<Shown> shown(const Judge& judge, const RowNumbers& numbers, const RowIndex& at);
// In how many numbers two programs are certain to differ: by more than four of both tolerances.
index_t count_differing(const std::vector<Shown>& a, const std::vector<Shown>& b);

}  // namespace glasshead::doctor
