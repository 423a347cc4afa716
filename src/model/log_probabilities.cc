#include "model/log_probabilities.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"

namespace glasshead::model {

std::vector<double> log_probabilities(const View<const float, 1>& logits) {
  double most = -INFINITY, sum = 0;
  for (index_t id = 0; id < logits.shape[0]; ++id)
    most = std::max(most, static_cast<double>(logits(id)));
  for (index_t id = 0; id < logits.shape[0]; ++id) sum += math::exp(logits(id) - most);
  std::vector<double> logs(static_cast<std::size_t>(logits.shape[0]));
  for (index_t id = 0; id < logits.shape[0]; ++id)
    logs[static_cast<std::size_t>(id)] = logits(id) - most - math::log(sum);
  return logs;
}

}  // namespace glasshead::model
