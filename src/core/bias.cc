#include "glasshead/bias.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/math.h"

namespace glasshead {
namespace {

Bias of(Bias::Term term) {
  Bias bias;
  bias.terms().push_back(std::move(term));
  return bias;
}

// The slopes of a power of two: 2^(-8 n / heads) for n = 1, 2, ..., heads.
double slope(index_t n, index_t heads) {
  return math::pow(2.0, -8.0 * static_cast<double>(n) / static_cast<double>(heads));
}

}  // namespace

Bias Bias::alibi(std::vector<double> slopes, AlibiForm form) {
  return of(Alibi{std::move(slopes), form});
}

Bias Bias::t5(T5 table) { return of(std::move(table)); }

Bias Bias::dense(Broadcast values) { return of(Dense{std::move(values)}); }

Bias operator+(Bias a, const Bias& b) {
  a.terms_.insert(a.terms_.end(), b.terms_.begin(), b.terms_.end());
  return a;
}

std::vector<double> Bias::alibi_slopes(index_t heads) {
  std::vector<double> slopes;
  if (heads <= 0) return slopes;
  index_t power = 1;
  while (power <= heads / 2) power *= 2;
  for (index_t n = 1; n <= power; ++n) slopes.push_back(slope(n, power));
  for (index_t n = 1; static_cast<index_t>(slopes.size()) < heads; n += 2)
    slopes.push_back(slope(n, 2 * power));
  return slopes;
}

// As the T5 code of the paper's authors: the first half of the buckets holds one distance each, the
// rest grow in proportion up to max_distance.
index_t Bias::t5_bucket(index_t relative_position, const T5& t5) {
  index_t buckets = t5.buckets;
  index_t first = 0;
  index_t distance = 0;  // how far back, or either way if bidirectional
  if (t5.is_bidirectional) {
    buckets /= 2;
    if (relative_position > 0) first = buckets;
    distance = relative_position < 0 ? -relative_position : relative_position;
  } else {
    distance = relative_position < 0 ? -relative_position : 0;
  }
  const index_t exact = buckets / 2;
  if (distance < exact) return first + distance;
  const double span = math::log(static_cast<double>(t5.max_distance) / static_cast<double>(exact));
  const double steps = math::log(static_cast<double>(distance) / static_cast<double>(exact)) /
                       span * static_cast<double>(buckets - exact);
  // A distance on the edge of two buckets (16, 32 and 64 of 128) belongs to the further one: the
  // quotient of two logarithms may miss the whole number by a few units in the last place.
  constexpr double kEdge = 1e-9;
  const double whole = std::floor(steps + kEdge);
  const index_t last = buckets - 1;
  if (whole >= static_cast<double>(last - exact)) return first + last;
  return first + exact + static_cast<index_t>(whole);
}

}  // namespace glasshead
