#include "doctor/case_subject.h"

#include <algorithm>

#include "doctor/numbers.h"
#include "doctor/site.h"

namespace glasshead::doctor {
namespace {

// Leading axes of size 1 added.
Tensor<double, 4> four_axes(const TraceTensor& from) {
  std::array<index_t, 4> shape{1, 1, 1, 1};
  const std::size_t rank = from.shape.size();
  for (std::size_t n = 0; n < std::min<std::size_t>(rank, 4); ++n)
    shape[3 - n] = from.shape[rank - 1 - n];
  Tensor<double, 4> to(shape);
  std::copy(from.values.begin(), from.values.end(), to.data());
  return to;
}

}  // namespace

AttentionCase CaseSubject::attention() const {
  AttentionCase given{q, k, v, options, std::nullopt, {}};
  if (unprojected.size() > 0) given.unprojected = unprojected;
  return given;
}

std::optional<CaseSubject> case_subject(const wire::Case& c, std::vector<Problem>& problems) {
  const StepList list = wire::case_steps(c);
  StepList steps = list;
  for (Step& step : steps) {  // a row without a key is judged like any other
    if (!step.options) continue;
    auto options = std::make_shared<AttentionOptions>(*step.options);
    options->empty_row = EmptyRow::zero;
    step.options = std::move(options);
  }
  const Trace run = run_steps(steps, c.inputs);
  const std::vector<Site> sites = find_sites(steps, run);
  if (sites.empty() || !sites.front().has_softmax) {
    problems.push_back(
        {c.name, sites.empty() ? "there is no attention in it" : "its attention has no softmax"});
    return std::nullopt;
  }
  const Site& site = sites.front();
  CaseSubject subject;
  subject.q = four_axes(run.at(site.q));
  subject.k = four_axes(run.at(site.k));
  subject.v = four_axes(run.at(site.v));
  if (!site.v_input.empty() && site.v_input_shape == site.v_shape)
    subject.unprojected = four_axes(run.at(site.v_input));
  subject.options = *site.options;
  subject.options.scale = site.scale;
  subject.query_labels = c.query_labels;
  return subject;
}

}  // namespace glasshead::doctor
