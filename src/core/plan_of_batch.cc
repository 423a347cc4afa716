#include "core/plan_of_batch.h"

#include <algorithm>

namespace glasshead {

PlanOfBatch::PlanOfBatch(const AttentionOptions& options, const std::vector<index_t>& starts,
                         const PairShape& shape) {
  if (starts.empty()) {
    plans_.push_back(std::make_unique<TilePlan>(options, shape));
    return;
  }
  std::vector<index_t> places = starts;
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  for (const index_t place : places) {
    options_.push_back(std::make_unique<AttentionOptions>(options));
    options_.back()->query_start = place;
    plans_.push_back(std::make_unique<TilePlan>(*options_.back(), shape));
  }
  for (const index_t start : starts)
    of_batch_.push_back(static_cast<std::size_t>(
        std::lower_bound(places.begin(), places.end(), start) - places.begin()));
}

}  // namespace glasshead
