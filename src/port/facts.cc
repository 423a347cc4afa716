#include "port/facts.h"

#include <algorithm>
#include <cmath>

#include "wire/decimal.h"

namespace glasshead::port {
namespace {

double largest(const FileTensor& x) {
  double most = 0;
  for (index_t n = 0; n < x.size(); ++n) most = std::max(most, std::fabs(x.load(n)));
  return most;
}

// Theirs = factor · ours in every number.
std::string factor(const FileTensor& ours, const FileTensor& theirs, double off) {
  double ab = 0, aa = 0;
  for (index_t n = 0; n < ours.size(); ++n) {
    ab += ours.load(n) * theirs.load(n);
    aa += ours.load(n) * ours.load(n);
  }
  const double f = ab / aa;
  if (!std::isfinite(f) || f == 0) return "";
  for (index_t n = 0; n < ours.size(); ++n)
    if (!(std::fabs(theirs.load(n) - f * ours.load(n)) <= off * std::fabs(f))) return "";
  return "every number is " + wire::significant(f, 5) + " times the right one";
}

// "1, 2 and 3"; "1 to 9"
std::string list(const std::vector<index_t>& all) {
  const bool is_run =
      all.size() > 2 && all.back() - all.front() + 1 == static_cast<index_t>(all.size());
  if (is_run) return std::to_string(all.front()) + " to " + std::to_string(all.back());
  std::string text;
  for (std::size_t n = 0; n < all.size(); ++n)
    text += (n == 0 ? "" : n + 1 == all.size() ? " and " : ", ") + std::to_string(all[n]);
  return text;
}

// Which entries of one axis hold wrong numbers, where some don't.
std::string along(const Dumped& at, std::size_t axis, const FileTensor& ours,
                  const FileTensor& theirs, double off) {
  const index_t count = ours.shape[axis];
  index_t inner = 1;
  for (std::size_t a = axis + 1; a < ours.shape.size(); ++a) inner *= ours.shape[a];
  std::vector<bool> is_wrong(static_cast<std::size_t>(count), false);
  for (index_t n = 0; n < ours.size(); ++n)
    if (!(std::fabs(ours.load(n) - theirs.load(n)) <= off))
      is_wrong[static_cast<std::size_t>(n / inner % count)] = true;
  std::vector<index_t> wrong;
  for (index_t n = 0; n < count; ++n)
    if (is_wrong[static_cast<std::size_t>(n)]) wrong.push_back(n);
  if (wrong.empty() || static_cast<index_t>(wrong.size()) == count || wrong.size() > 12) return "";
  return "wrong: only " + at.shape.axes[axis] + " " + list(wrong) + " of " + std::to_string(count);
}

}  // namespace

std::vector<std::string> facts(const Dumped& at, const FileTensor& ours, const FileTensor& theirs,
                               double tolerance) {
  std::vector<std::string> found;
  const double off = tolerance * largest(ours);
  index_t broken = 0;
  for (index_t n = 0; n < theirs.size(); ++n)
    if (!std::isfinite(theirs.load(n)) && std::isfinite(ours.load(n))) ++broken;
  if (broken > 0)
    found.push_back(std::to_string(broken) + " of " + std::to_string(theirs.size()) +
                    " numbers are NaN or infinite");
  const std::string times = factor(ours, theirs, off);
  if (!times.empty()) found.push_back(times);
  for (std::size_t axis = 0; axis < ours.shape.size(); ++axis) {
    const std::string where = along(at, axis, ours, theirs, off);
    if (!where.empty()) found.push_back(where);
  }
  return found;
}

}  // namespace glasshead::port
