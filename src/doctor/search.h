// Which programs of the catalogue give the claimed numbers.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "doctor/catalogue.h"
#include "doctor/judge.h"
#include "doctor/subject.h"

namespace glasshead::doctor {

struct Made {
  const Fault* fault = nullptr;
  Choice choice;
};

struct Suspect {
  std::vector<Made> made;  // one, or two
  Program program;
  double worst = 0;     // in tolerances, over the rows it was compared on
  index_t telling = 0;  // wrong numbers that it explains
  double evidence = 0;  // bits: how unlikely it is that a wrong guess gives those numbers
  bool is_rounding() const {
    return std::any_of(made.begin(), made.end(),
                       [](const Made& m) { return m.fault->is_rounding; });
  }
};

inline constexpr double kFits = 1;   // tolerances: gives the numbers
inline constexpr double kClose = 4;  // tolerances: is not ruled out

// Every single mistake that can be made in this program, parameters by their lists.
std::vector<Suspect> singles(const Program& right);

// A matrix of more pairs than this is not gone through for one row: at 64 products each that is
// about a quarter of a second, for every mistake that needs it.
inline constexpr index_t kMostWidePairs = index_t{1} << 22;
bool is_too_wide(const Program& program);

class Search {
 public:
  // `rows` were compared; `wrong` are those where the right program does not fit, worst first.
  Search(const Subject& subject, const Judge& judge, const std::vector<RowIndex>& rows,
         const std::vector<RowIndex>& wrong);

  // Those that fit or come close on all rows, best first. Empty unless one fits.
  std::vector<Suspect> single_causes();
  std::vector<Suspect> pair_causes();
  std::vector<Suspect> rounding_causes();

  // How many mistakes set at most about as many numbers apart from the right ones as this suspect:
  // what changes little has few rivals that could fit by chance, for others change far more.
  index_t rivals(const Suspect& suspect) const;

  index_t tried() const { return tried_; }
  const std::vector<std::string>& not_tried() const { return not_tried_; }  // too wide, by id
  const std::vector<std::string>& without_gradients() const { return without_gradients_; }

 private:
  double misfit_of_screen(const Program& program);
  double key_misfit(Runner& runner, const Program& program);
  index_t key_telling(Runner& right, Runner& wrong);
  bool survives(Suspect& suspect);
  std::vector<Suspect> settle(std::vector<Suspect> suspects);
  void add_fitted(std::vector<Suspect>& suspects, const char* id);

  const Subject& subject_;
  const Judge& judge_;
  const std::vector<RowIndex>& rows_;
  std::vector<RowIndex> screen_;  // a few, wrong ones first
  std::vector<Suspect> singles_;
  index_t tried_ = 0;
  std::vector<std::string> not_tried_, without_gradients_;
};

// The single mistakes whose numbers on `rows` are the right ones. Empty for gradients alone.
std::vector<Made> invisible(const Subject& subject, const Judge& judge,
                            const std::vector<RowIndex>& rows);

}  // namespace glasshead::doctor
