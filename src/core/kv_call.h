// A call over a KvInput as one over tensors: the lengths of its sequences in the mask, and where
// each sequence's queries stand. The front door of every function that reads one.
//
//   const KvCall call = check_kv_call("attend", q, kv.state(), options, &results);
//   run_fused({call.q, call.kv.source, call.kv_len, call.options, out, rows, call.starts},
//   context);
#pragma once

#include <vector>

#include "core/kv_input.h"
#include "core/mask_plan.h"
#include "glasshead/attention.h"

namespace glasshead {

struct KvCall {
  const ConstTensor<4>& q;
  const KvInput::State& kv;
  index_t kv_len = 0;             // of the longest sequence
  AttentionOptions options{};     // the caller's, with the sequences' lengths in the mask
  std::vector<index_t> starts{};  // [batch] position of query row 0

  PairShape shape() const { return {q.shape[0], q.shape[1], q.shape[2], kv_len}; }
};

// Where attend writes.
struct AttendResults {
  const MutableTensor<4>& out;
  const RowState& rows;
};

// Refuses, in the name of `function`, everything that attend over the KvInput refuses; results
// null: there are none.
KvCall check_kv_call(const char* function, const ConstTensor<4>& q, const KvInput::State& kv,
                     const AttentionOptions& options, const AttendResults* results);

}  // namespace glasshead
