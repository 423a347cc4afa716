#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/math.h"
#include "glasshead/model.h"
#include "model/log_probabilities.h"

namespace glasshead {
namespace {

using model::log_probabilities;

// The largest first, of equal ones the lower id.
std::vector<index_t> best_ids(const std::vector<double>& logs, index_t count) {
  std::vector<index_t> ids(logs.size());
  for (std::size_t n = 0; n < ids.size(); ++n) ids[n] = static_cast<index_t>(n);
  const auto middle = ids.begin() + std::min(count, static_cast<index_t>(ids.size()));
  std::partial_sort(ids.begin(), middle, ids.end(), [&](index_t a, index_t b) {
    const double x = logs[static_cast<std::size_t>(a)], y = logs[static_cast<std::size_t>(b)];
    return x > y || (x == y && a < b);
  });
  ids.erase(middle, ids.end());
  return ids;
}

}  // namespace

std::vector<TokenProbability> most_probable(const View<const float, 1>& logits, index_t count) {
  if (count < 1 || logits.shape[0] < 1)
    fail(ErrorKind::option, "most_probable", "count",
         fmt::format("{} of {} logits; at least one of each", count, logits.shape[0]));
  const std::vector<double> logs = log_probabilities(logits);
  std::vector<TokenProbability> found;
  for (const index_t id : best_ids(logs, count))
    found.push_back({id, logits(id), math::exp(logs[static_cast<std::size_t>(id)])});
  return found;
}

double kl_divergence(const View<const float, 1>& before, const View<const float, 1>& after) {
  if (before.shape != after.shape)
    fail(ErrorKind::shape, "kl_divergence", "after",
         fmt::format("{} logits where before has {}", after.shape[0], before.shape[0]));
  const std::vector<double> p = log_probabilities(before), q = log_probabilities(after);
  double sum = 0;
  for (std::size_t n = 0; n < p.size(); ++n)
    if (p[n] > -INFINITY) sum += math::exp(p[n]) * (p[n] - q[n]);
  return sum;
}

}  // namespace glasshead
