// The parts that every layer is made of: inputs, projections, norms, residuals.
#include "nn/walk.h"

#include <cmath>

#include <fmt/format.h>

namespace glasshead::nn {

std::string size_text(const Shape& shape) {
  if (shape.empty()) return "one number";
  if (shape.size() == 1) return fmt::format("{} numbers", shape[0]);
  std::string text;
  for (const index_t extent : shape) text += fmt::format("{}{}", text.empty() ? "" : "x", extent);
  return text;
}

void Walk::problem(std::string where, std::string what) {
  for (const Problem& earlier : problems)
    if (earlier.where == where && earlier.what == what) return;  // read by several layers
  problems.push_back({std::move(where), std::move(what)});
}

Value Walk::add(const Op* op, Value result, std::vector<std::string> reads,
                std::vector<StepNumber> numbers) {
  list.push_back({result.tap, op, std::move(reads), std::move(numbers), nullptr});
  return result;
}

// The shape of an input; a problem that says what was wanted if there is none.
std::optional<Shape> Walk::input(const std::string& tap, const std::string& wanted) {
  const auto found = inputs_.find(tap);
  if (found != inputs_.end()) return found->second;
  problem(tap, "is missing; wanted: " + wanted);
  return std::nullopt;
}

Value Walk::matrix_input(const std::string& tap, const std::string& wanted) {
  Value value{tap, input(tap, wanted), tap};
  if (value.is_known() && value.shape->size() != 2) {
    problem(tap, size_text(*value.shape) + ": wanted: " + wanted);
    value.shape.reset();
  }
  return value;
}

// A vector that needs one number for each column of `of`.
void Walk::check_row(const std::string& tap, const std::string& wanted, const Value& of) {
  const auto shape = input(tap, wanted);
  if (!shape) return;
  if (shape->size() != 1)
    problem(tap, size_text(*shape) + ": wanted: " + wanted);
  else if (of.is_known() && (*shape)[0] != of.columns())
    problem(tap, fmt::format("{} where {} has {} columns: there must be one for each column",
                             size_text(*shape), of.source, of.columns()));
}

Value Walk::project(const char* op, const std::string& tap, const Value& x,
                    const Projection& projection, const Axes& axes) {
  std::vector<std::string> reads{x.tap};
  Value result{tap, x.shape, x.source};
  if (!projection.weight.empty()) {
    const Value w =
        matrix_input(projection.weight, fmt::format("a matrix [{}, {}]", axes.rows, axes.columns));
    reads.push_back(w.tap);
    result = {tap, std::nullopt, w.tap};
    if (w.is_known() && x.is_known() && w.rows() != x.columns())
      problem(w.tap, fmt::format("{} where {} is {}: rows must equal {} = {}", size_text(*w.shape),
                                 x.tap, size_text(*x.shape), axes.rows, x.columns()));
    if (w.is_known() && x.is_known()) result.shape = Shape{x.rows(), w.columns()};
  }
  if (!projection.bias.empty()) {
    reads.push_back(projection.bias);
    check_row(projection.bias, "a row [" + axes.columns + "]", result);
  }
  return add(find_op(op), std::move(result), std::move(reads));
}

Value Walk::norm(const Norm& norm, const std::string& tap, const std::string& field,
                 const Value& x) {
  if (norm.kind == NormKind::none) return x;
  if (!(norm.eps >= 0) || !std::isfinite(norm.eps))
    problem(field + ".eps", "must be a finite number, 0 or more");
  std::vector<std::string> reads{x.tap};
  for (const std::string& name : {norm.gain, norm.bias}) {
    if (name.empty()) continue;
    reads.push_back(name);
    check_row(name, "a row [d_model]", {x.tap, x.shape, x.tap});
  }
  const bool is_layer = norm.kind == NormKind::layer;
  if (!is_layer && !norm.bias.empty()) problem(field + ".bias", "RMSNorm has a gain and no bias");
  return add(find_op(is_layer ? "layer_norm" : "rms_norm"), {tap, x.shape, tap}, std::move(reads),
             {{"eps", norm.eps}, {"has_gain", norm.gain.empty() ? 0 : 1}});
}

Value Walk::residual(const std::string& tap, const Value& x, const Value& change) {
  if (x.is_known() && change.is_known() && *x.shape != *change.shape)
    problem(change.source, fmt::format("gives {} where {} is {}: the residual adds the two, so "
                                       "their shapes must be equal",
                                       size_text(*change.shape), x.tap, size_text(*x.shape)));
  return add(find_op("residual"), {tap, x.shape, tap}, {x.tap, change.tap});
}

}  // namespace glasshead::nn
