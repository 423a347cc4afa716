#include "doctor/site.h"

#include <algorithm>
#include <utility>

namespace glasshead::doctor {
namespace {

constexpr std::string_view kScores = "scores";

// Extent of the axis counted from the back; 1 where the tensor has no such axis.
index_t from_back(const TraceTensor& tensor, std::size_t axis) {
  const std::size_t rank = tensor.shape.size();
  return rank > axis ? tensor.shape[rank - 1 - axis] : 1;
}

void find_projections(Site& site, const StepList& steps, const Trace& run) {
  if (const Step* q = find_step(steps, site.tap("q"))) {
    if (q->reads.size() >= 2) site.d_model = from_back(run.at(q->reads[0]), 0);
  }
  const Step* v = find_step(steps, site.tap("v"));
  if (v != nullptr && v->reads.size() >= 2) {  // x and W_V
    site.v_input = v->reads[0];
    site.v_input_shape = run.at(site.v_input).shape;
    site.v_shape = run.at(v->tap).shape;
  }
}

}  // namespace

std::vector<Site> find_sites(const StepList& steps, const Trace& run) {
  std::vector<Site> sites;
  for (const Step& step : steps) {
    const std::string_view tap = step.tap;
    if (std::string_view(step.op->id) != kScores || !tap.ends_with(kScores)) continue;
    Site site;
    site.prefix = std::string(tap.substr(0, tap.size() - kScores.size()));
    const Step* out = find_step(steps, site.tap("out"));
    if (out == nullptr || out->reads.size() < 2 || step.reads.size() < 2 || !step.options) continue;
    site.q = step.reads[0];
    site.k = step.reads[1];
    site.v = out->reads[1];
    site.options = step.options;
    const TraceTensor& scores = run.at(step.tap);
    site.pairs = {from_back(scores, 3), from_back(scores, 2), from_back(scores, 1),
                  from_back(scores, 0)};
    site.kv_heads = from_back(run.at(site.k), 2);
    site.d_k = from_back(run.at(site.k), 0);
    site.d_v = from_back(run.at(site.v), 0);
    if (const Step* scaled = find_step(steps, site.tap("scaled")))
      site.scale = number(*scaled, "scale", 1);
    site.has_softmax = find_step(steps, site.tap("exp")) != nullptr;
    find_projections(site, steps, run);
    sites.push_back(std::move(site));
  }
  return sites;
}

const Step* find_step(const StepList& steps, std::string_view tap) {
  const auto at =
      std::find_if(steps.begin(), steps.end(), [&](const Step& s) { return s.tap == tap; });
  return at == steps.end() ? nullptr : &*at;
}

Step* find_step(StepList& steps, std::string_view tap) {
  return const_cast<Step*>(find_step(std::as_const(steps), tap));
}

void erase_step(StepList& steps, std::string_view tap) {
  std::erase_if(steps, [&](const Step& s) { return s.tap == tap; });
}

void bypass_step(StepList& steps, const std::string& tap) {
  const Step* step = find_step(steps, tap);
  if (step == nullptr) return;
  const std::string source = step->reads.at(0);
  erase_step(steps, tap);
  for (Step& later : steps) std::replace(later.reads.begin(), later.reads.end(), tap, source);
}

void insert_after(StepList& steps, std::string_view tap, Step step) {
  const auto at =
      std::find_if(steps.begin(), steps.end(), [&](const Step& s) { return s.tap == tap; });
  steps.insert(at == steps.end() ? at : at + 1, std::move(step));
}

}  // namespace glasshead::doctor
