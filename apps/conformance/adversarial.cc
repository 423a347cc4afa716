#include "conformance/adversarial.h"

#include <cmath>

#include "glasshead/trace.h"

namespace glasshead::conformance {
namespace {

using nlohmann::json;

void set_positions(const json& params, AttentionOptions& options) {
  const std::string causal = params.value("causal", "none");
  if (causal != "none") options.mask = options.mask & Mask::causal();
  options.query_start = causal == "top_left" ? Align::start : Align::end;
  const auto side = [&params](const char* key) -> std::optional<index_t> {
    const index_t width = params.value(key, index_t{-1});
    if (width == -1)
      return std::nullopt;  // open; any other negative width is for `check` to refuse
    return width;
  };
  if (params.contains("window_left") || params.contains("window_right")) {
    options.mask = options.mask & Mask::window(side("window_left"), side("window_right"));
  }
}

AttentionOptions options_of(const json& params) {
  AttentionOptions options;
  if (params.contains("scale")) options.scale = number_of(params.at("scale"));
  if (params.contains("softcap")) options.softcap = number_of(params.at("softcap"));
  set_positions(params, options);
  if (params.contains("kv_lengths")) {
    options.mask = options.mask & Mask::key_lengths(params.at("kv_lengths"));
  }
  if (params.contains("alibi_slopes")) {
    const auto form = params.value("alibi_form", "distance") == std::string("key_index")
                          ? Bias::AlibiForm::key_index
                          : Bias::AlibiForm::distance;
    options.bias = Bias::alibi(params.at("alibi_slopes"), form);
  }
  options.empty_row = EmptyRow::zero;
  return options;
}

Result run_attend(const AdversarialCase& c, const Way& way, bool wants_weights) {
  const bool is_wide = way.arithmetic == Arithmetic::f64;
  const FileTensor q = is_wide ? converted(c.q, DType::f64) : c.q;
  const FileTensor k = is_wide ? converted(c.k, DType::f64) : c.k;
  const FileTensor v = is_wide ? converted(c.v, DType::f64) : c.v;
  Result result;
  result.y_type = q.dtype;
  result.state_type = is_wide ? DType::f64 : DType::f32;
  const auto& shape = q.shape;  // the rank was checked by view<4>
  const auto q_view = q.view<4>("q");
  FileTensor y = zeros(q.dtype, {shape[0], shape[1], shape[2], v.shape.back()});
  FileTensor lse = zeros(result.state_type, {shape[0], shape[1], shape[2]});
  FileTensor row_max = lse;
  RowState rows;
  rows.lse = writable<3>(lse);
  rows.max = writable<3>(row_max);
  way.engine->attend(q_view, k.view<4>("k"), v.view<4>("v"), writable<4>(y), c.options, rows);
  result.y = widened(y);
  result.lse = widened(lse);
  result.row_max = widened(row_max);
  if (wants_weights) {
    FileTensor w = zeros(result.state_type, {shape[0], shape[1], shape[2], k.shape[2]});
    attention_weights(q_view, k.view<4>("k"), c.options, {0, shape[1], 0, shape[2]},
                      writable<4>(w));
    result.w = widened(w);
  }
  return result;
}

Array array_of_tap(const Trace& trace, const char* tap) {
  const TraceTensor& tensor = trace.at(tap);
  return {tensor.shape, tensor.values};
}

Result run_trace(const AdversarialCase& c, bool wants_weights) {
  const Trace trace =
      attend_traced(c.q.view<4>("q"), c.k.view<4>("k"), c.v.view<4>("v"), c.options);
  Result result;
  result.y_type = result.state_type = DType::f64;
  result.y = array_of_tap(trace, "out");
  result.lse = array_of_tap(trace, "lse");
  result.row_max = array_of_tap(trace, "row_max");
  if (wants_weights) result.w = array_of_tap(trace, "weights");
  return result;
}

}  // namespace

AdversarialCase load_case(const Golden& golden, const json& entry) {
  AdversarialCase c;
  c.name = entry.at("name");
  c.options = options_of(entry.at("params"));
  for (const json& input : entry.at("inputs")) {
    const std::string which = input.at("name");
    if (which == "Q") c.q = golden.load(input);
    if (which == "K") c.k = golden.load(input);
    if (which == "V") c.v = golden.load(input);
    if (which != "mask") continue;
    c.mask = std::make_shared<const FileTensor>(golden.load(input));
    const Broadcast broadcast(c.mask->view<4>("mask"), c.mask);
    if (entry.at("mask_kind") == "additive") {
      c.options.bias = c.options.bias + Bias::dense(broadcast);
    } else {
      c.options.mask = c.options.mask & Mask::allowed(broadcast);
    }
  }
  return c;
}

std::vector<Way> ways(const Selection& selection) {
  std::vector<Way> result;
  for (const Engine& engine : selection.engines) {
    result.push_back({&engine, Arithmetic::stored});
    result.push_back({&engine, Arithmetic::f64});
    if (!engine.is_fused()) result.push_back({&engine, Arithmetic::trace});
  }
  return result;
}

Result run(const AdversarialCase& c, const Way& way, bool wants_weights) {
  return way.arithmetic == Arithmetic::trace ? run_trace(c, wants_weights)
                                             : run_attend(c, way, wants_weights);
}

std::string name(const Way& way, DType stored) {
  if (way.arithmetic == Arithmetic::trace) return "steps";
  return way.engine->name + " " +
         (way.arithmetic == Arithmetic::f64 ? "f64" : glasshead::name(stored));
}

double unit_roundoff(DType type) {
  switch (type) {
    case DType::f64:
      return std::ldexp(1.0, -53);
    case DType::f16:
      return std::ldexp(1.0, -11);
    case DType::bf16:
      return std::ldexp(1.0, -8);
    default:
      return std::ldexp(1.0, -24);
  }
}

double tiny(DType type) { return ulp(0, type); }

const json& entry_named(const Golden& golden, const std::string& name) {
  for (const json& entry : golden.index().at("cases")) {
    if (entry.at("name") == name) return entry;
  }
  throw FormatError("glasshead-conformance", {{golden.folder(), "has no case " + name}});
}

FolderReport run_adversarial(const Golden& golden, const Selection& selection) {
  FolderReport report{golden.folder(), golden.format(), {}};
  const auto visit = [&](const std::string& name, auto&& run_it) {
    if (!selection.wants(name)) return;
    report.cases.push_back(selection.is_list ? named(name) : run_it());
  };
  for (const json& entry : golden.index().at("cases")) {
    visit(entry.at("name"), [&] { return run_case(golden, entry, selection); });
  }
  for (const json& pair : golden.index().at("pairs")) {
    visit(pair_name(pair), [&] { return run_pair(golden, pair, selection); });
  }
  for (const json& giant : golden.index().at("generated")) {
    visit(giant.at("name"), [&] { return run_giant(giant, selection); });
  }
  return report;
}

}  // namespace glasshead::conformance
