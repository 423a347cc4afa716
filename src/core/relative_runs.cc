#include "core/relative_runs.h"

#include <algorithm>
#include <cstddef>

namespace glasshead {

RelativeRuns::RelativeRuns(const Bias::T5& t5, index_t first, index_t last)
    : table_(t5.table), heads_(t5.heads) {
  // The positions of one bucket stand together: gallop to the end of each, so that a far
  // max_distance costs its logarithm, not its size.
  for (index_t at = first; at <= last;) {
    const index_t bucket = Bias::t5_bucket(at, t5);
    runs_.push_back({at, bucket});
    index_t inside = at;  // the furthest known to be in the bucket
    index_t step = 1;
    while (step <= last - inside && Bias::t5_bucket(inside + step, t5) == bucket) {
      inside += step;
      step *= 2;
    }
    for (; step > 0; step /= 2) {
      if (step <= last - inside && Bias::t5_bucket(inside + step, t5) == bucket) inside += step;
    }
    at = inside + 1;
  }
}

template <class T>
void RelativeRuns::fill(index_t h, index_t begin, index_t end, T* strip) const {
  auto run = std::upper_bound(runs_.begin(), runs_.end(), begin,
                              [](index_t at, const Run& next) { return at < next.begin; });
  for (index_t at = begin; at < end; ++run) {  // the run before `run` holds `at`
    const index_t stop = run == runs_.end() ? end : std::min(end, run->begin);
    const auto entry = static_cast<std::size_t>((run - 1)->bucket * heads_ + h);
    std::fill(strip + (at - begin), strip + (stop - begin), static_cast<T>(table_[entry]));
    at = stop;
    if (run == runs_.end()) return;
  }
}

template void RelativeRuns::fill(index_t, index_t, index_t, float*) const;
template void RelativeRuns::fill(index_t, index_t, index_t, double*) const;

}  // namespace glasshead
