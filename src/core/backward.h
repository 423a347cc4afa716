// Gradients: what both paths check and write, and the fused path's call.
//
//   check_backward({&d_out, &q, &k, &v}, gradients, options, findings);
//   run_backward({d_out, q, kv_of(k, v), k.shape[2], out, rows, gradients, options}, context);
#pragma once

#include <span>

#include "core/kv_source.h"
#include "core/validate.h"
#include "glasshead/attention.h"

namespace glasshead {

struct BackwardInputs {
  const ConstTensor<4>* d_out;
  const ConstTensor<4>* q;
  const ConstTensor<4>* k;
  const ConstTensor<4>* v;
};
// check_call, d_out and every gradient; and that results have memory of their own.
void check_backward(const BackwardInputs& inputs, const Gradients& gradients,
                    const AttentionOptions& options, Findings& findings);

struct BackwardCall {
  const ConstTensor<4>& d_out;
  const ConstTensor<4>& q;
  const KvSource kv;
  index_t kv_len;
  const ConstTensor<4>& out;
  const RowState& rows;  // max and sum, of the compute type or wider
  const Gradients& gradients;
  const AttentionOptions& options;
};
// Checked before.
void run_backward(const BackwardCall& call, const Context& context);

// Writes d_sinks, if it is wanted.
void store_sinks(std::span<const double> sums, const MutableTensor<1>& d_sinks);

}  // namespace glasshead
