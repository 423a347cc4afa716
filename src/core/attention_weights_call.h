// What the functions of glasshead/attention_weights.h check before they compute.
#pragma once

#include <vector>

#include "core/attention_weights_sweep.h"
#include "core/validate.h"
#include "glasshead/attention_weights.h"

namespace glasshead {

inline bool is_empty(const RowRange& range) {
  return range.head_begin == range.head_end || range.row_begin == range.row_end;
}

// A result [batch, heads of the range, rows of the range, size].
struct WeightResult {
  const char* name;
  const MutableTensor<4>& tensor;
  index_t size;
};

// check_call, the range, the rows' state and the results.
void check_weight_call(const WeightCall& call, const std::vector<WeightResult>& results,
                       Findings& findings);

// attention_weights of some keys alone: weights [batch, heads of the range, rows of the range,
// keys]. call.rows is given; everything has been checked.
void attention_weights_of_keys(const WeightCall& call, const MutableTensor<4>& weights,
                               const Context& context);

// max and sum, both or neither, in a type that holds the compute type.
void check_given_rows(const RowState& rows, const ConstTensor<4>& q, Findings& findings);

// Of all workers, in the order of the rows.
EmptyRows all_of(const std::vector<EmptyRows>& of_workers);

}  // namespace glasshead
