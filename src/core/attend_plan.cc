#include "glasshead/attend_plan.h"

#include <algorithm>

#include "core/context_impl.h"
#include "core/fused.h"
#include "core/kv_call.h"
#include "core/panel_work.h"

namespace glasshead {
namespace {

using Size = index_t;  // bytes

template <class T>
Size bytes(index_t elements) {
  return elements * static_cast<index_t>(sizeof(T));
}

std::string why_form(index_t rows, index_t rows_below, Form form) {
  if (rows_below == 0) return "this kernel set has no other form, so that rows keep their bits";
  const std::string count =
      std::to_string(rows) + (rows == 1 ? " query row" : " query rows") + " per key/value head";
  if (form == Form::rows)
    return count + ", fewer than the " + std::to_string(rows_below) + " that fill a vector";
  return count + ", enough to fill a vector of " + std::to_string(rows_below);
}

// Every panel of every row block against every block of keys.
AttendPlan::Tiles count_tiles(const PlanOfBatch& plans, const FusedCut& cut, const PairShape& shape,
                              index_t group, index_t lanes) {
  AttendPlan::Tiles tiles;
  std::uint32_t allowed[kBlock];
  const index_t blocks = (shape.kv_len + kBlock - 1) / kBlock;
  for (const FusedItem& item : cut.items) {
    if (item.node != 0) continue;  // the same rows, other keys
    const TilePlan& plan = plans[item.b];
    for (index_t begin = item.row_begin; begin < item.row_end; begin += lanes) {
      const PanelRows rows =
          panel_rows(item.b, item.g, group, begin, std::min(item.row_end, begin + lanes));
      const KeyRange keys = plan.key_range(rows);
      index_t visited = 0;
      for (index_t j = keys.begin; j < keys.end; j += kBlock - j % kBlock) {
        const KeyRange block{j, std::min(keys.end, j - j % kBlock + kBlock)};
        const TileKind kind = plan.tile(rows, block, allowed);
        if (kind == TileKind::none) continue;
        ++(kind == TileKind::all ? tiles.all : tiles.some);
        ++visited;
      }
      tiles.none += blocks - visited;
    }
  }
  return tiles;
}

struct Call {
  const ConstTensor<4>& q;
  const KvSource& kv;
  PairShape shape;
  const AttentionOptions& options;
  const PlanOfBatch& plans;
};

// What Fused (fused.cc) and its workers allocate.
template <class T>
Size scratch(const Call& call, const FusedCut& cut, Form form, index_t lanes, int workers) {
  const index_t d_k = call.kv.d_k, d_v = call.kv.d_v;
  const Size state = bytes<T>((d_v + 2) * lanes);
  const Size panel = bytes<T>(d_k * lanes) + (levels_of(cut, call.shape.kv_len) + 2) * state;
  const bool is_widened = call.q.dtype != dtype_of<T>();
  const Size worker = bytes<T>(kBlock * lanes * (call.plans[0].has_bias() ? 2 : 1) + 2 * lanes) +
                      2 * bytes<std::uint32_t>(kBlock) +
                      KvBlock<T>(call.kv, form == Form::rows).room_bytes() +
                      (is_widened ? bytes<T>(lanes * (d_k + d_v)) : 0) + cut.panels * panel;
  const index_t heads = call.shape.batch * call.kv.kv_heads;
  Size shared = heads * ((call.shape.kv_len + kBlock - 1) / kBlock) +
                bytes<FusedItem>(static_cast<index_t>(cut.items.size()));
  if (cut.nodes > 1) shared += cut.row_blocks * cut.nodes * (cut.panels * state + 1);
  if (call.options.empty_row == EmptyRow::error)
    shared += call.shape.batch * call.shape.heads * call.shape.q_len;
  return workers * worker + shared;
}

template <class T>
void fill_plan(const Call& call, const Kernels<T>& kernels, const Context& context,
               AttendPlan& result) {
  const index_t group = call.shape.heads / call.kv.kv_heads;
  const index_t rows = call.shape.q_len * group;
  const Form form = form_of(rows, kernels);
  const index_t lanes = rows_of(kernels, form);
  const FusedCut cut =
      cut_fused(call.shape, call.kv.kv_heads, lanes, context.threads(), call.plans);
  result.form = form == Form::panel ? AttendForm::panel : AttendForm::rows;
  result.why_form = why_form(rows, kernels.rows_below, form);
  result.rows_per_panel = lanes;
  result.panels_per_item = cut.panels;
  result.row_blocks = cut.row_blocks;
  result.nodes = cut.nodes;
  result.keys_per_node = cut.node_chunks * kChunk;
  result.items = static_cast<index_t>(cut.items.size());
  result.threads = static_cast<int>(std::min<index_t>(context.threads(), result.items));
  result.tiles = count_tiles(call.plans, cut, call.shape, group, lanes);
  result.scratch_bytes = scratch<T>(call, cut, form, lanes, result.threads);
}

AttendPlan plan_of(const Call& call, const Context& context) {
  AttendPlan result;
  result.isa = context.isa();
  result.why_isa = context.why_isa();
  result.compute = compute_type(call.q.dtype);
  if (call.shape.batch == 0 || call.shape.heads == 0 || call.shape.q_len == 0)
    return result;  // nothing to do
  if (result.compute == DType::f64)
    fill_plan(call, context.impl().kernels.f64, context, result);
  else
    fill_plan(call, context.impl().kernels.f32, context, result);
  return result;
}

}  // namespace

AttendPlan plan_attend(const ConstTensor<4>& q, const ConstTensor<4>& k, const ConstTensor<4>& v,
                       const AttentionOptions& options, const Context& context) {
  require_call("plan_attend", {&q, &k, &v}, options);
  const PairShape shape{q.shape[0], q.shape[1], q.shape[2], k.shape[2]};
  const KvSource kv = kv_of(k, v);
  const PlanOfBatch plans(options, {}, shape);
  return plan_of({q, kv, shape, options, plans}, context);
}

AttendPlan plan_attend(const ConstTensor<4>& q, const KvInput& kv, const AttentionOptions& options,
                       const Context& context) {
  const KvCall call = check_kv_call("plan_attend", q, kv.state(), options, nullptr);
  const PlanOfBatch plans(call.options, call.starts, call.shape());
  return plan_of({q, call.kv.source, call.shape(), call.options, plans}, context);
}

}  // namespace glasshead
