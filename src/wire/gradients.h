// Gradients of attention in a trace, so that saturation can be seen: where softmax is nearly 0 or 1
// its Jacobian is nearly 0, and nothing can be learned.
#pragma once

#include <string>
#include <vector>

#include "wire/document_build.h"
#include "wire/json_writer.h"

namespace glasshead::wire {

// Of one attention, with L = sum of all entries of out (d_out all ones).
struct AttentionGradients {
  std::string prefix;          // "", "block.0."
  TraceTensor dq, dk, dv;      // shapes of q, k, v
  TraceTensor jacobian_norms;  // [heads, q_len, 1] or [q_len, 1]: Frobenius norm of diag(w) - w·wᵀ
};

std::vector<AttentionGradients> gradients_of(const Trace& trace);
Document gradients_document(const Case& c, const Trace& trace,
                            const std::vector<AttentionGradients>& gradients,
                            const DocumentOptions& options);
void write_gradients_json(const Case& c, const std::vector<AttentionGradients>& gradients,
                          const JsonWriter::Sink& sink);

}  // namespace glasshead::wire
