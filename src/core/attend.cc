#include "core/fused.h"
#include "core/validate.h"

namespace glasshead {
namespace {

using Shape3 = std::array<index_t, 3>;

void check_state(const char* where, const MutableTensor<3>& tensor, const Shape3& shape,
                 Findings& findings) {
  if (tensor.data == nullptr) return;
  check_writable<3>(where, tensor, shape, {"batch", "heads", "q_len"}, findings);
}

}  // namespace

void check_attend(const CallInputs& inputs, const MutableTensor<4>& out, const RowState& rows,
                  const AttentionOptions& options, Findings& findings) {
  check_call(inputs, options, findings);
  const Shape3 state{inputs.q->shape[0], inputs.q->shape[1], inputs.q->shape[2]};
  check_writable<4>("out", out, {state[0], state[1], state[2], inputs.v->shape[3]}, kOutAxes,
                    findings);
  check_state("rows.max", rows.max, state, findings);
  check_state("rows.sum", rows.sum, state, findings);
  check_state("rows.lse", rows.lse, state, findings);
  check_apart({{"q", inputs.q->data}, {"k", inputs.k->data}, {"v", inputs.v->data}},
              {{"out", out.data},
               {"rows.max", rows.max.data},
               {"rows.sum", rows.sum.data},
               {"rows.lse", rows.lse.data}},
              findings);
}

void attend(const ConstTensor<4>& q, const ConstTensor<4>& k, const ConstTensor<4>& v,
            const MutableTensor<4>& out, const AttentionOptions& options, const RowState& rows,
            const Context& context) {
  attend_watched(q, k, v, out, options, rows, nullptr, context);
}

void attend_watched(const ConstTensor<4>& q, const ConstTensor<4>& k, const ConstTensor<4>& v,
                    const MutableTensor<4>& out, const AttentionOptions& options,
                    const RowState& rows, const TileWatch& watch, const Context& context) {
  Findings findings;
  check_attend({&q, &k, &v}, out, rows, options, findings);
  refuse("attend", findings);

  const KvSource kv = kv_of(k, v);
  const EmptyRows empty =
      run_fused({q, kv, k.shape[2], options, out, rows, {}, watch ? &watch : nullptr}, context);
  if (options.empty_row == EmptyRow::error)
    report_empty_rows(empty, "only scores of -inf", findings);
  refuse("attend", findings);
}

}  // namespace glasshead
