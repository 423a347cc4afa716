#include "core/fused.h"
#include "core/kv_call.h"
#include "core/validate.h"

namespace glasshead {

void attend(const ConstTensor<4>& q, const KvInput& kv, const MutableTensor<4>& out,
            const AttentionOptions& options, const RowState& rows, const Context& context) {
  attend_watched(q, kv, out, options, rows, nullptr, context);
}

void attend_watched(const ConstTensor<4>& q, const KvInput& kv, const MutableTensor<4>& out,
                    const AttentionOptions& options, const RowState& rows, const TileWatch& watch,
                    const Context& context) {
  const AttendResults results{out, rows};
  const KvCall call = check_kv_call("attend", q, kv.state(), options, &results);
  const EmptyRows empty = run_fused({q, call.kv.source, call.kv_len, call.options, out, rows,
                                     call.starts, watch ? &watch : nullptr},
                                    context);
  Findings findings;
  if (options.empty_row == EmptyRow::error)
    report_empty_rows(empty, "only scores of -inf", findings);
  refuse("attend", findings);
}

}  // namespace glasshead
