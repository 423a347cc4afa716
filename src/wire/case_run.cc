// From a case to steps and a trace.
#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "nn/generate.h"
#include "wire/case.h"

namespace glasshead::wire {
namespace {

// The operations a case adds to those of attention and of nn.

// Scores as weights: what attention would be without softmax.
TraceTensor run_linear(const StepArgs& args) { return *args.inputs[0]; }
const Op kLinear = {"weights", "A = Z", "A=Z",
                    "The scaled scores are used as weights as they are: there is no softmax.",
                    run_linear};

// Row n: row first_n minus row second_n of x.
TraceTensor run_differences(const StepArgs& args) {
  const TraceTensor& x = *args.inputs[0];
  const index_t size = x.shape[1];
  TraceTensor out;
  const auto pairs = static_cast<index_t>(number(args.step, "pairs", 0));
  out.shape = {pairs, size};
  for (index_t n = 0; n < pairs; ++n) {
    const auto first = static_cast<index_t>(number(args.step, fmt::format("first_{}", n), 0));
    const auto second = static_cast<index_t>(number(args.step, fmt::format("second_{}", n), 0));
    for (index_t d = 0; d < size; ++d)
      out.values.push_back(x.values[static_cast<std::size_t>(first * size + d)] -
                           x.values[static_cast<std::size_t>(second * size + d)]);
  }
  return out;
}
const Op kDifferences = {"differences", "D = x_a − x_b", "D=x_a-x_b",
                         "Each pair of rows, the first minus the second: the direction from one "
                         "to the other.",
                         run_differences};

double dot(const TraceTensor& m, index_t a, index_t b) {
  const index_t size = m.shape[1];
  double sum = 0;
  for (index_t d = 0; d < size; ++d)
    sum += m.values[static_cast<std::size_t>(a * size + d)] *
           m.values[static_cast<std::size_t>(b * size + d)];
  return sum;
}

// cos(D_m, D_n) = D_m·D_n / (|D_m| |D_n|); NaN where a difference is 0, as its direction is none.
TraceTensor run_cosines(const StepArgs& args) {
  const TraceTensor& d = *args.inputs[0];
  const index_t pairs = d.shape[0];
  TraceTensor out;
  out.shape = {pairs, pairs};
  for (index_t m = 0; m < pairs; ++m)
    for (index_t n = 0; n < pairs; ++n)
      out.values.push_back(dot(d, m, n) / (std::sqrt(dot(d, m, m)) * std::sqrt(dot(d, n, n))));
  return out;
}
const Op kCosines = {"cosines", "cos = D·Dᵀ / |D||D|",
                     "\\cos(D_m,D_n)=\\frac{D_m\\cdot D_n}{|D_m|\\,|D_n|}",
                     "How nearly two differences point the same way: 1 is exactly.", run_cosines};

// Leaves out the steps of the softmax and makes the scaled scores the weights.
void remove_softmax(std::vector<Step>& list) {
  std::vector<Step> kept;
  for (Step& step : list) {
    const std::string id = step.op != nullptr ? step.op->id : "";
    if (id == "row_max" || id == "exp" || id == "row_sum" || id == "lse") continue;
    if (id == "weights" && !kept.empty()) {
      step.op = &kLinear;
      step.reads = {kept.back().tap};
      step.numbers.clear();
    }
    if (id == "out") step.reads.resize(2);  // no maxima
    kept.push_back(std::move(step));
  }
  list = std::move(kept);
}

// Gives the steps of the attention with this prefix its own rule for rows with no allowed key.
void restore_empty_row(const std::string& prefix, EmptyRow rule, std::vector<Step>& list) {
  for (Step& step : list) {
    if (!step.options || step.tap.compare(0, prefix.size(), prefix) != 0) continue;
    const bool is_deeper = step.tap.find('.', prefix.size()) != std::string::npos;
    if (is_deeper || step.options->empty_row == rule) continue;
    AttentionOptions options = *step.options;
    options.empty_row = rule;
    step.options = std::make_shared<const AttentionOptions>(std::move(options));
  }
}

void add_differences(const Case& c, std::vector<Step>& list) {
  Step step;
  step.tap = "differences";
  step.op = &kDifferences;
  step.reads = {"X"};
  step.numbers.emplace_back("pairs", static_cast<double>(c.differences.size()));
  for (std::size_t n = 0; n < c.differences.size(); ++n) {
    step.numbers.emplace_back(fmt::format("first_{}", n),
                              static_cast<double>(c.differences[n].first));
    step.numbers.emplace_back(fmt::format("second_{}", n),
                              static_cast<double>(c.differences[n].second));
  }
  list.push_back(step);
  Step cosines;
  cosines.tap = "cosines";
  cosines.op = &kCosines;
  cosines.reads = {"differences"};
  list.push_back(cosines);
}

// Puts a later run behind the first, what is its own named with `prefix`.
void append_pass(const Case& c, const std::string& prefix, Trace& pass, Trace& trace) {
  std::set<std::string> own;
  for (auto& [tap, tensor] : pass.inputs) {
    const std::string rows = c.network.ids.empty() ? "X" : c.network.ids;
    const bool is_shared = tap != rows && trace.find(tap) != nullptr;
    if (is_shared) continue;
    own.insert(tap);
    trace.inputs.emplace_back(prefix + tap, std::move(tensor));
  }
  for (const TracedStep& step : pass.steps) own.insert(step.step.tap);
  for (TracedStep& step : pass.steps) {
    step.step.tap = prefix + step.step.tap;
    for (std::string& tap : step.step.reads)
      if (own.count(tap) != 0) tap = prefix + tap;
    trace.steps.push_back(std::move(step));
  }
}

}  // namespace

std::vector<Step> case_steps(const Case& c) {
  // Rows with no allowed key are refused when the steps run, not when they are listed: a list can
  // be shown, searched and edited. So it is made of a lenient network, then made strict again.
  nn::Network network = c.network;
  for (nn::Block& block : network.blocks) {
    block.attention.options.empty_row = EmptyRow::zero;
    if (block.cross_attention) block.cross_attention->options.empty_row = EmptyRow::zero;
  }
  std::vector<Step> list = nn::steps(network, nn::shapes_of(c.inputs));
  for (std::size_t n = 0; n < c.network.blocks.size(); ++n) {
    const nn::Block& block = c.network.blocks[n];
    const std::string prefix = c.network.blocks.size() == 1 ? "" : fmt::format("block.{}.", n);
    restore_empty_row(prefix, block.attention.options.empty_row, list);
    if (block.cross_attention)
      restore_empty_row(prefix + "cross.", block.cross_attention->options.empty_row, list);
  }
  if (!c.has_softmax) remove_softmax(list);
  if (!c.differences.empty()) add_differences(c, list);
  return list;
}

Trace run_case(const Case& c) {
  if (c.generate == 0 && c.feed == 0) return run_steps(case_steps(c), c.inputs);
  nn::Generation generation = c.feed > 0 ? nn::run_row_by_row(c.network, c.inputs, c.feed)
                                         : nn::generate(c.network, c.inputs, c.generate);
  Trace trace = std::move(generation.passes[0]);
  for (std::size_t pass = 1; pass < generation.passes.size(); ++pass)
    append_pass(c, fmt::format("step.{}.", pass), generation.passes[pass], trace);
  return trace;
}

}  // namespace glasshead::wire
