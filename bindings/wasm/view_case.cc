#include "wasm/view_case.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wire/case_reader.h"
#include "wire/decimal.h"
#include "wire/document_build.h"
#include "wire/document_json.h"

namespace glasshead::wasm {

using wire::Case;
using wire::JsonWriter;

namespace {

// "causal+padding"; "": the pair may attend.
std::string reason_names(const Reasons& reasons) {
  std::string words;
  for (const std::string& name : reasons.names()) words += (words.empty() ? "" : "+") + name;
  return words;
}

}  // namespace

void write_mask(JsonWriter& json, const Trace& trace) {
  const std::vector<wire::AttentionPart> parts = wire::attentions(trace);
  if (parts.empty() || !parts[0].plan) {
    json.null();
    return;
  }
  const wire::AttentionPart& part = parts[0];
  json.begin_object().key("kind").value(wire::mask_words(*part.options));
  json.key("rows").begin_array();
  for (index_t i = 0; i < part.shape.q_len; ++i) {
    json.begin_array();
    for (index_t j = 0; j < part.shape.kv_len; ++j)
      json.value(reason_names(part.plan->reasons(0, 0, i, j)));
    json.end_array();
  }
  json.end_array().end_object();
}

void write_scale(JsonWriter& json, const Trace& trace, int decimals) {
  const std::vector<wire::AttentionPart> parts = wire::attentions(trace);
  if (parts.empty()) {
    json.null();
    return;
  }
  json.begin_object().key("words").value(wire::scale_words(parts[0], decimals));
  json.key("exact").value(wire::exact_text(parts[0].scale)).end_object();
}

void write_steps(JsonWriter& json, const Trace& trace) {
  json.begin_array();
  for (const TracedStep& traced : trace.steps) {
    if (traced.step.op == nullptr) continue;
    json.begin_object().key("tap").value(traced.step.tap).key("op").value(traced.step.op->id);
    json.key("formula").value(traced.step.op->formula);
    json.key("sentence").value(traced.step.op->sentence).end_object();
  }
  json.end_array();
}

namespace {

// The numbers that an edit changed, by index; a row of many is one entry for each.
void write_sets(JsonWriter& json, const Case& before, const Case& after) {
  json.begin_array();
  for (const auto& [tap, value] : after.inputs) {
    const auto old = std::find_if(before.inputs.begin(), before.inputs.end(),
                                  [&name = tap](const auto& input) { return input.first == name; });
    if (old == before.inputs.end() || old->second.shape != value.shape) continue;
    for (std::size_t n = 0; n < value.values.size(); ++n) {
      if (old->second.values[n] == value.values[n]) continue;
      std::vector<index_t> at;
      auto rest = static_cast<index_t>(n);
      for (std::size_t axis = value.shape.size(); axis-- > 0;) {
        at.insert(at.begin(), rest % value.shape[axis]);
        rest /= value.shape[axis];
      }
      json.begin_object().key("matrix").value(tap).key("at").values(std::span<const index_t>(at));
      json.key("to").value(wire::shortest(value.values[n])).end_object();
    }
  }
  json.end_array();
}

}  // namespace

void write_edit(JsonWriter& json, const Case& before, const Case& after, const wire::Edit& edit) {
  json.begin_object().key("set");
  write_sets(json, before, after);
  json.key("hide").begin_array();
  for (const std::string& name : edit.hide) {
    std::string why_not;
    if (const std::optional<index_t> key = wire::find_row(after.key_labels, name, why_not))
      json.value(*key);
  }
  json.end_array();
  if (edit.mask) json.key("mask").value(*edit.mask);
  if (edit.scale) json.key("scale").value(wire::shortest(*edit.scale));
  if (edit.empty_row)
    json.key("empty_row").value(*edit.empty_row == EmptyRow::zero ? "zero" : "error");
  json.end_object();
}

bool can_be_made(const wire::Edit& edit) {
  return !edit.softmax && !edit.d_k && !edit.correlation && !edit.untie;
}

namespace {

void write_drills(JsonWriter& json, const Case& original) {
  json.begin_array();
  for (std::size_t n = 0; n < original.drills.size(); ++n) {
    const wire::Drill& drill = original.drills[n];
    Problems problems;
    const std::optional<Case> edited = wire::edit_case(original, drill.edit, problems);
    if (!edited || drill.edit.is_empty() || !can_be_made(drill.edit)) continue;
    json.begin_object().key("drill").value(n).key("question").value(drill.question).key("edit");
    write_edit(json, original, *edited, drill.edit);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

void write_case(JsonWriter& json, const EditedCase& edited) {
  const Case &c = edited.given(), &original = edited.original();
  json.key("inputs").begin_array();
  for (const auto& [tap, value] : c.inputs)
    if (tap != "ids" && !c.random) json.value(tap);
  json.end_array().key("from").value(original.from).key("ours").values(original.ours);
  json.key("labels").begin_object().key("q").values(c.query_labels);
  json.key("k").values(c.key_labels).end_object();
  json.key("drills");
  write_drills(json, original);
}

}  // namespace glasshead::wasm
