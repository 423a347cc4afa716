// Rows of results beside the same rows of plain three-pass attention in the compute type: which are
// nearer to the exact ones. In one row plain attention's roundings may cancel by luck, so that a
// row alone decides nothing; over thousands luck evens out.
//
//   Tally tally;
//   tally.add(error, plain_error, u * size);   // each the rms over a row; size of sum |w v|
//   EXPECT_LT(tally.ratio(), 1);
#pragma once

#include <cmath>

#include "glasshead/tensor.h"

namespace glasshead::test {

struct Tally {
  index_t rows = 0, below = 0;
  index_t above_twice = 0;  // error > 2 plain + 4 u size
  long double logs = 0;

  void add(long double error, long double plain, long double unit) {
    ++rows;
    if (error <= plain) ++below;
    if (error > 2 * plain + 4 * unit) ++above_twice;
    // A quarter of a unit beside both: where next to nothing is rounded, neither is better.
    logs += std::log((error + unit / 4) / (plain + unit / 4));
  }
  void add(const Tally& other) {
    rows += other.rows;
    below += other.below;
    above_twice += other.above_twice;
    logs += other.logs;
  }
  // The geometric mean of error / plain: no row outweighs others, however large its errors.
  double ratio() const {
    return static_cast<double>(std::exp(logs / static_cast<long double>(rows)));
  }
};

}  // namespace glasshead::test
