// One hostile case: what it expects, with the README's tolerance.
#include <algorithm>
#include <cmath>

#include "conformance/adversarial.h"
#include "glasshead/error.h"

namespace glasshead::conformance {
namespace {

using nlohmann::json;

struct Expected {
  Array y, lse, tol_unit;
  std::optional<Array> w;
  std::vector<Array> alternatives;
  double tol_abs = 0;
  bool may_be_nonfinite_in_f32 = false;

  Expected(const Golden& golden, const json& expected)
      : y(widened(golden.load(expected.at("Y")))),
        lse(widened(golden.load(expected.at("LSE")))),
        tol_unit(widened(golden.load(expected.at("tol_unit")))) {
    if (expected.contains("W")) w = widened(golden.load(expected.at("W")));
    if (expected.contains("tol_abs")) tol_abs = number_of(expected.at("tol_abs"));
    may_be_nonfinite_in_f32 = expected.at("kind") == "values_or_nan";
    for (const json& other : expected.value("alternatives", json::array())) {
      alternatives.push_back(widened(golden.load(other.at("Y"))));
    }
  }
};

FileTensor absolute(const FileTensor& tensor) {
  FileTensor result = zeros(DType::f64, tensor.shape);
  for (index_t n = 0; n < tensor.size(); ++n) {
    store_element(result.bytes.data(), DType::f64, n, std::fabs(tensor.load(n)));
  }
  return result;
}

// The case whose scores are |scale| sum |q_d k_d| + |bias|, with the same pairs hidden: its largest
// score of a row is the tolerance's E.
AdversarialCase absolute(AdversarialCase c) {
  c.q = absolute(c.q);
  c.k = absolute(c.k);
  if (c.options.scale) c.options.scale = std::fabs(*c.options.scale);
  c.options.softcap = 0;
  for (Bias::Term& term : c.options.bias.terms()) {
    if (auto* alibi = std::get_if<Bias::Alibi>(&term)) {
      const double sign = alibi->form == Bias::AlibiForm::distance ? -1 : 1;  // -slope * |i - j|
      for (double& slope : alibi->slopes) slope = sign * std::fabs(slope);
      continue;
    }
    auto bias = std::make_shared<FileTensor>(absolute(*c.mask));
    for (index_t n = 0; n < bias->size(); ++n) {
      const double given = c.mask->load(n);
      if (std::isinf(given)) store_element(bias->bytes.data(), DType::f64, n, given);
    }
    term = Bias::Dense{Broadcast(bias->view<4>("mask"), bias)};
  }
  return c;
}

struct Tolerances {
  Tolerance y, lse, w;
};

Tolerances tolerances(const Expected& expected, const RowFactors& factors, const Result& result) {
  const double extra = expected.tol_abs;
  const bool may_be_nonfinite = expected.may_be_nonfinite_in_f32 && result.state_type != DType::f64;
  const auto tolerance = [&](DType type, auto unit) {
    const double u = unit_roundoff(type);
    const double smallest = tiny(type);
    return Tolerance{type, [=](std::size_t n) { return u * unit(n) + smallest + extra; },
                     may_be_nonfinite};
  };
  const auto keys =
      expected.w ? std::max<std::size_t>(1, static_cast<std::size_t>(expected.w->shape.back())) : 1;
  return {
      tolerance(result.y_type, [&](std::size_t n) { return expected.tol_unit.values[n]; }),
      tolerance(result.state_type,
                [&](std::size_t n) { return factors.lse[n] + std::fabs(expected.lse.values[n]); }),
      tolerance(result.state_type, [&, keys](std::size_t n) {
        return std::fabs(expected.w->values[n]) * factors.weights[n / keys];
      })};
}

// What passes in this compute type: "Y", or what expected.accept names.
std::vector<std::string> accepted(const json& expected, const Result& result) {
  if (!expected.contains("accept")) return {"Y"};
  return expected.at("accept").at(result.state_type == DType::f64 ? "f64" : "f32");
}

const Array& answer(const Expected& expected, const std::string& accepted_name) {
  if (accepted_name == "Y") return expected.y;
  return expected.alternatives.at(std::stoul(accepted_name.substr(accepted_name.find('/') + 1)));
}

void check_values(const json& entry, const Expected& expected, const RowFactors& factors,
                  const AdversarialCase& c, const Way& way, CaseResult& verdict) {
  const std::string run_name = name(way, c.q.dtype);
  const Result result = run(c, way, expected.w.has_value() || entry.contains("checks"));
  const Tolerances allowed = tolerances(expected, factors, result);
  std::optional<Failure> y_failure;
  bool is_y = false;
  for (const std::string& which : accepted(entry.at("expected"), result)) {
    auto failure = compare("Y", result.y, answer(expected, which), allowed.y);
    if (!failure) {
      y_failure.reset();
      is_y = which == "Y";
      break;
    }
    if (!y_failure) y_failure = std::move(failure);
  }
  verdict.add(std::move(y_failure), run_name);
  verdict.add(compare("LSE", result.lse, expected.lse, allowed.lse), run_name);
  if (expected.w && is_y) verdict.add(compare("W", result.w, *expected.w, allowed.w), run_name);
  for (const json& demand : entry.value("checks", json::array())) {
    verdict.add(check_demand(demand, c, result), run_name);
  }
}

// All ways of running it must refuse, and `check` must say why.
void check_refusal(const Golden& golden, const json& entry, const Selection& selection,
                   CaseResult& verdict) {
  std::optional<AdversarialCase> c;
  try {
    c = load_case(golden, entry);
  } catch (const Error&) {
    return;  // the library's types already can't hold it
  }
  const Failure accepted = in_words("", "is accepted, must be refused");
  if (check(c->q.view<4>("q"), c->k.view<4>("k"), c->v.view<4>("v"), c->options).empty()) {
    verdict.add(accepted, "check");
  }
  for (const Way& way : ways(selection)) {
    if (!refuses([&] { run(*c, way, false); })) verdict.add(accepted, name(way, c->q.dtype));
  }
}

}  // namespace

RowFactors row_factors(const AdversarialCase& c, const Array& tol_unit) {
  AdversarialCase with_size = c;
  with_size.v = absolute(c.v);
  const Way wide{&transparent(), Arithmetic::f64};
  const Array sums = run(with_size, wide, false).y;
  const Array largest = run(absolute(c), wide, false).row_max;
  const auto width = static_cast<std::size_t>(tol_unit.shape.back());
  const double smallest = std::max(16.0, 4 * std::sqrt(static_cast<double>(c.k.shape[2])));
  const std::size_t rows = largest.values.size();
  RowFactors factors{std::vector<double>(rows, 0), std::vector<double>(rows, smallest)};
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t d = 0; d < width; ++d) {
      const double factor = tol_unit.values[row * width + d] / sums.values[row * width + d];
      if (std::isfinite(factor)) factors.weights[row] = std::max(factors.weights[row], factor);
    }
    // No column tells (d_v = 0, or all of them 0 or not finite): what is left without E.
    if (factors.weights[row] == 0) factors.weights[row] = smallest;
    if (std::isfinite(largest.values[row])) factors.lse[row] += 4 * largest.values[row];
  }
  return factors;
}

CaseResult run_case(const Golden& golden, const json& entry, const Selection& selection) {
  CaseResult verdict = named(entry.at("name"));
  if (entry.at("expected").at("kind") == "error") {
    check_refusal(golden, entry, selection, verdict);
    return verdict;
  }
  try {
    const AdversarialCase c = load_case(golden, entry);
    const Expected expected(golden, entry.at("expected"));
    const RowFactors factors = row_factors(c, expected.tol_unit);
    for (const Way& way : ways(selection)) {
      check_values(entry, expected, factors, c, way, verdict);
    }
  } catch (const Error& error) {
    verdict.add_refusal(error);
  }
  return verdict;
}

}  // namespace glasshead::conformance
