#include "doctor/fit.h"

#include <cmath>

#include "base/math.h"
#include "wire/decimal.h"

namespace glasshead::doctor {
namespace {

// Distances in tolerances, a finite number each: what is far counts as far as any.
std::vector<double> residuals(const Judge& judge, const std::vector<RowIndex>& rows,
                              const Program& program) {
  std::vector<double> all;
  Runner runner(program);
  for (const RowIndex& row : rows)
    judge.each(runner.row(row), row, false, [&](const Compared& c) {
      const double miss = c.found - c.expected;
      all.push_back(std::isfinite(miss) ? miss : 0);
      return true;
    });
  return all;
}

double sum_of_squares(const std::vector<double>& r) {
  double sum = 0;
  for (const double x : r) sum += x * x;
  return sum;
}

}  // namespace

std::optional<double> fit_number(const Judge& judge, const std::vector<RowIndex>& rows,
                                 const std::function<Program(double)>& make, double known,
                                 bool is_any) {
  const double unit = known == 0 ? 16 : known;
  double best = 0, least = std::numeric_limits<double>::infinity();
  for (int sign = 1; sign >= (is_any ? -1 : 1); sign -= 2)
    for (int half = -12; half <= 12; ++half) {
      const double start = sign * unit * math::pow(2, 0.5 * half);
      const double sum = sum_of_squares(residuals(judge, rows, make(start)));
      if (sum < least) {
        least = sum;
        best = start;
      }
    }
  if (!std::isfinite(least)) return std::nullopt;
  for (int step = 0; step < 40; ++step) {  // Gauss and Newton, halved while it does not help
    const std::vector<double> here = residuals(judge, rows, make(best));
    const double h = best * 1e-6;
    const std::vector<double> beside = residuals(judge, rows, make(best + h));
    double numerator = 0, denominator = 0;
    for (std::size_t n = 0; n < here.size(); ++n) {
      const double slope = (here[n] - beside[n]) / h;  // of the program's number
      numerator += here[n] * slope;
      denominator += slope * slope;
    }
    if (!(denominator > 0)) break;
    double move = numerator / denominator;
    bool is_better = false;
    for (int half = 0; half < 20 && !is_better; ++half, move /= 2) {
      if (!is_any && best + move <= 0) continue;
      const double sum = sum_of_squares(residuals(judge, rows, make(best + move)));
      if (!(sum < least)) continue;
      least = sum;
      best += move;
      is_better = true;
    }
    if (!is_better || std::fabs(move) < 1e-13 * std::fabs(best)) break;
  }
  return best;
}

std::string number_name(double x) { return wire::significant(x, 6); }

}  // namespace glasshead::doctor
