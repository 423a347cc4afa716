#include "python/native/calls.h"

#include <string>
#include <utility>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "glasshead/attention_weights.h"
#include "python/native/options.h"

namespace glasshead::python {
namespace {

const Context& context_of(const Context* context) {
  return context == nullptr ? default_context() : *context;
}

// q and k, which every call has; their problems and those of the options.
struct Call {
  Call(nb::handle q_, nb::handle k_, const Options* options_)
      : problems(problems_of(options_)), options(values_of(options_)) {
    q = read_array(q_, "q", problems);
    k = read_array(k_, "k", problems);
  }

  // PyTorch lets heads share keys and values only where that is said.
  void refuse_unsaid_sharing() {
    if (!q.is_there() || !k.is_there()) return;
    const index_t heads = q.tensor<4>().shape[1], kv_heads = k.tensor<4>().shape[1];
    if (heads == kv_heads || kv_heads == 0 || heads % kv_heads != 0) return;
    problems.push_back({"q", "axis heads has " + std::to_string(heads) + ", k has " +
                                 std::to_string(kv_heads) +
                                 "; with enable_gqa=True each of k's is shared by " +
                                 std::to_string(heads / kv_heads) + " neighbours of q's"});
  }

  // Throws if there are problems, with the library's own about the rest of the call.
  void refuse(const char* function, const Array* v = nullptr) {
    if (problems.empty()) return;
    if (q.is_there() && k.is_there() && (v == nullptr || v->is_there()))
      for (Problem& found : check(q.tensor<4>(), k.tensor<4>(),
                                  v == nullptr ? k.tensor<4>() : v->tensor<4>(), options))
        problems.push_back(std::move(found));
    refuse_if_any(function, std::move(problems));
  }

  std::vector<Problem> problems;
  const AttentionOptions& options;
  Array q, k;
};

// The rows' state: each may be None.
struct Rows {
  Rows(nb::handle max_, nb::handle sum_, nb::handle lse_, std::vector<Problem>& problems)
      : max(read_optional(max_, "rows.max", problems, 3)),
        sum(read_optional(sum_, "rows.sum", problems, 3)),
        lse(read_optional(lse_, "rows.lse", problems, 3)) {}

  RowState state() const { return {max.writable<3>(), sum.writable<3>(), lse.writable<3>()}; }

  Array max, sum, lse;
};

void attend_arrays(nb::handle q, nb::handle k, nb::handle v, nb::handle out, const Options* options,
                   nb::handle max, nb::handle sum, nb::handle lse, const Context* context,
                   bool enable_gqa) {
  Call call(q, k, options);
  const Array values = read_array(v, "v", call.problems);
  const Array result = read_array(out, "out", call.problems);
  const Rows rows(max, sum, lse, call.problems);
  if (!enable_gqa) call.refuse_unsaid_sharing();
  call.refuse("attend", &values);
  const nb::gil_scoped_release others_may_run;
  attend(call.q.tensor<4>(), call.k.tensor<4>(), values.tensor<4>(), result.writable<4>(),
         call.options, rows.state(), context_of(context));
}

RowRange range_of(std::pair<index_t, index_t> heads, std::pair<index_t, index_t> rows) {
  return {heads.first, heads.second, rows.first, rows.second};
}

void weights_arrays(nb::handle q, nb::handle k, const Options* options, nb::handle max,
                    nb::handle sum, std::pair<index_t, index_t> heads,
                    std::pair<index_t, index_t> rows, nb::handle weights, const Context* context) {
  Call call(q, k, options);
  const Rows state(max, sum, nb::none(), call.problems);
  const Array result = read_array(weights, "weights", call.problems);
  call.refuse("attention_weights");
  const nb::gil_scoped_release others_may_run;
  attention_weights(call.q.tensor<4>(), call.k.tensor<4>(), state.state(), call.options,
                    range_of(heads, rows), result.writable<4>(), context_of(context));
}

void top_arrays(nb::handle q, nb::handle k, const Options* options, nb::handle max, nb::handle sum,
                std::pair<index_t, index_t> heads, std::pair<index_t, index_t> rows,
                nb::handle keys, nb::handle weights, const Context* context) {
  Call call(q, k, options);
  const Rows state(max, sum, nb::none(), call.problems);
  const Array found = read_array(keys, "keys", call.problems);
  const Array result = read_array(weights, "weights", call.problems);
  call.refuse("top_weights");
  const nb::gil_scoped_release others_may_run;
  top_weights(call.q.tensor<4>(), call.k.tensor<4>(), state.state(), call.options,
              range_of(heads, rows), found.writable<4>(), result.writable<4>(),
              context_of(context));
}

void maps_arrays(nb::handle q, nb::handle k, const Options* options, nb::handle max, nb::handle sum,
                 index_t cell_rows, index_t cell_keys, nb::handle mean, nb::handle largest,
                 const Context* context) {
  Call call(q, k, options);
  const Rows state(max, sum, nb::none(), call.problems);
  const Array means = read_array(mean, "mean", call.problems);
  const Array most = read_array(largest, "max", call.problems);
  call.refuse("weight_maps");
  const nb::gil_scoped_release others_may_run;
  weight_maps(call.q.tensor<4>(), call.k.tensor<4>(), state.state(), call.options,
              {cell_rows, cell_keys, means.writable<4>(), most.writable<4>()}, context_of(context));
}

// d_bias: one array or None for each term of the bias; d_sinks: an array or None.
void backward_arrays(nb::handle d_out, nb::handle q, nb::handle k, nb::handle v, nb::handle out,
                     nb::handle max, nb::handle sum, nb::handle dq, nb::handle dk, nb::handle dv,
                     const std::vector<nb::object>& d_bias, nb::handle d_sinks,
                     const Options* options, const Context* context) {
  Call call(q, k, options);
  const Array d_result = read_array(d_out, "d_out", call.problems);
  const Array values = read_array(v, "v", call.problems);
  const Array result = read_array(out, "out", call.problems);
  const Rows rows(max, sum, nb::none(), call.problems);
  const Array d_queries = read_array(dq, "dq", call.problems);
  const Array d_keys = read_array(dk, "dk", call.problems);
  const Array d_values = read_array(dv, "dv", call.problems);
  const Array d_scores = read_optional(d_sinks, "d_sinks", call.problems, 1);
  Gradients gradients{
      d_queries.writable<4>(), d_keys.writable<4>(), d_values.writable<4>(), {}, {}};
  gradients.d_sinks = d_scores.writable<1>();
  std::vector<Array> d_terms;
  for (const nb::object& term : d_bias) {
    d_terms.push_back(read_optional(term, "d_bias", call.problems));
    gradients.d_bias.push_back(d_terms.back().writable<4>());
  }
  call.refuse("attend_backward", &values);
  const nb::gil_scoped_release others_may_run;
  attend_backward(d_result.tensor<4>(), call.q.tensor<4>(), call.k.tensor<4>(), values.tensor<4>(),
                  result.tensor<4>(), rows.state(), gradients, call.options, context_of(context));
}

PlanFacts plan_of_arrays(nb::handle q, nb::handle k, nb::handle v, const Options* options,
                         const Context* context, bool enable_gqa) {
  Call call(q, k, options);
  const Array values = read_array(v, "v", call.problems);
  if (!enable_gqa) call.refuse_unsaid_sharing();
  call.refuse("plan_attend", &values);
  AttendPlan plan;
  {
    const nb::gil_scoped_release others_may_run;
    plan = plan_attend(call.q.tensor<4>(), call.k.tensor<4>(), values.tensor<4>(), call.options,
                       context_of(context));
  }
  return told(plan);
}

std::vector<std::pair<std::string, std::string>> check_arrays(nb::handle q, nb::handle k,
                                                              nb::handle v, const Options* options,
                                                              bool enable_gqa) {
  Call call(q, k, options);
  const Array values = read_array(v, "v", call.problems);
  if (!enable_gqa) call.refuse_unsaid_sharing();
  if (call.q.is_there() && call.k.is_there() && values.is_there())
    for (Problem& found :
         check(call.q.tensor<4>(), call.k.tensor<4>(), values.tensor<4>(), call.options))
      call.problems.push_back(std::move(found));
  std::vector<std::pair<std::string, std::string>> problems;
  for (const Problem& problem : call.problems) problems.emplace_back(problem.where, problem.what);
  return problems;
}

}  // namespace

PlanFacts told(const AttendPlan& plan) {
  PlanFacts facts;
  facts["isa"] = plan.isa;
  facts["why_isa"] = plan.why_isa;
  facts["compute"] = name(plan.compute);
  facts["form"] = plan.form == AttendForm::panel ? "panel" : "rows";
  facts["why_form"] = plan.why_form;
  facts["rows_per_panel"] = plan.rows_per_panel;
  facts["panels_per_item"] = plan.panels_per_item;
  facts["row_blocks"] = plan.row_blocks;
  facts["nodes"] = plan.nodes;
  facts["keys_per_node"] = plan.keys_per_node;
  facts["items"] = plan.items;
  facts["threads"] = plan.threads;
  facts["tiles_none"] = plan.tiles.none;
  facts["tiles_all"] = plan.tiles.all;
  facts["tiles_some"] = plan.tiles.some;
  facts["scratch_bytes"] = plan.scratch_bytes;
  return facts;
}

void add_calls(nb::module_& module) {
  module.def("attend", &attend_arrays, nb::arg("q"), nb::arg("k"), nb::arg("v"), nb::arg("out"),
             nb::arg("options").none(), nb::arg("max").none(), nb::arg("sum").none(),
             nb::arg("lse").none(), nb::arg("context").none(), nb::arg("enable_gqa"));
  module.def("attention_weights", &weights_arrays, nb::arg("q"), nb::arg("k"),
             nb::arg("options").none(), nb::arg("max").none(), nb::arg("sum").none(),
             nb::arg("heads"), nb::arg("rows"), nb::arg("weights"), nb::arg("context").none());
  module.def("top_weights", &top_arrays, nb::arg("q"), nb::arg("k"), nb::arg("options").none(),
             nb::arg("max").none(), nb::arg("sum").none(), nb::arg("heads"), nb::arg("rows"),
             nb::arg("keys"), nb::arg("weights"), nb::arg("context").none());
  module.def("weight_maps", &maps_arrays, nb::arg("q"), nb::arg("k"), nb::arg("options").none(),
             nb::arg("max").none(), nb::arg("sum").none(), nb::arg("cell_rows"),
             nb::arg("cell_keys"), nb::arg("mean"), nb::arg("largest"), nb::arg("context").none());
  module.def("attend_backward", &backward_arrays, nb::arg("d_out"), nb::arg("q"), nb::arg("k"),
             nb::arg("v"), nb::arg("out"), nb::arg("max"), nb::arg("sum"), nb::arg("dq"),
             nb::arg("dk"), nb::arg("dv"), nb::arg("d_bias"), nb::arg("d_sinks").none(),
             nb::arg("options").none(), nb::arg("context").none());
  module.def("plan_attend", &plan_of_arrays, nb::arg("q"), nb::arg("k"), nb::arg("v"),
             nb::arg("options").none(), nb::arg("context").none(), nb::arg("enable_gqa"));
  module.def("check", &check_arrays, nb::arg("q"), nb::arg("k"), nb::arg("v"),
             nb::arg("options").none(), nb::arg("enable_gqa"));
}

}  // namespace glasshead::python
