// T5's buckets over the relative positions that a call can have, as runs of one bucket: a strip of
// biases is filled run by run, with no logarithm per pair.
//
//   RelativeRuns runs(t5, first, last);             // every j - p of the call
//   runs.fill(h, begin, end, strip);                // strip[n] = table[bucket(begin + n), h]
#pragma once

#include <vector>

#include "glasshead/bias.h"

namespace glasshead {

class RelativeRuns {
 public:
  // Buckets of the relative positions in [first, last].
  RelativeRuns(const Bias::T5& t5, index_t first, index_t last);

  // strip[n] for the relative positions [begin, end), which lie in [first, last], rounded to T.
  template <class T>
  void fill(index_t h, index_t begin, index_t end, T* strip) const;

 private:
  struct Run {
    index_t begin, bucket;  // up to the next run's begin
  };
  std::vector<Run> runs_;
  std::vector<double> table_;  // [buckets, heads]
  index_t heads_ = 0;
};

}  // namespace glasshead
