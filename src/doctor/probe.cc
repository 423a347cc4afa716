// make_probe: inputs on which the catalogue's mistakes are apart, and those that can't be.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "doctor/probe_outlook.h"
#include "glasshead/diagnose.h"

namespace glasshead {

using namespace doctor;

namespace {

// So many rows of the probe are compared to find out which mistakes are alike.
constexpr double kWork = 5e6;

// All claims at once, so that what differs in lse alone is apart too.
struct Print {
  std::string name;
  std::vector<Shown> numbers;
};

// The largest distance of two; once it is above `enough`, some such distance.
double apart(const Print& a, const Print& b, double enough) {
  double most = 0;
  if (a.numbers.size() != b.numbers.size()) return std::numeric_limits<double>::infinity();
  for (std::size_t n = 0; n < a.numbers.size() && !(most > enough); ++n)
    most = std::max(most, distance(a.numbers[n].expected, b.numbers[n].expected,
                                   a.numbers[n].tolerance + b.numbers[n].tolerance));
  return most;
}

std::vector<Print> prints_of(const Subject& subject, const Judge& judge,
                             const std::vector<RowIndex>& rows) {
  std::vector<Suspect> programs(1);
  programs.front().program = subject.right;
  for (Suspect& single : singles(subject.right))
    if (!single.is_rounding() && !is_too_wide(single.program))
      programs.push_back(std::move(single));
  std::vector<Print> prints;
  for (const Suspect& suspect : programs) {
    Print print{"right", {}};
    if (!suspect.made.empty())
      print.name = named(*suspect.made.front().fault, suspect.made.front().choice).name();
    Runner runner(suspect.program);
    for (const RowIndex& row : rows)
      for (const Shown& number : shown(judge, runner.row(row), row))
        print.numbers.push_back(number);
    prints.push_back(std::move(print));
  }
  return prints;
}

void find_alike(const std::vector<Print>& prints, Probe& probe) {
  std::vector<bool> is_grouped(prints.size(), false);
  probe.least_distance = std::numeric_limits<double>::infinity();
  for (std::size_t a = 0; a < prints.size(); ++a) {
    if (is_grouped[a]) continue;
    std::vector<std::string> group{prints[a].name};
    for (std::size_t b = a + 1; b < prints.size(); ++b) {
      if (is_grouped[b]) continue;
      const double distance_ab =
          apart(prints[a], prints[b], std::max(kClose, probe.least_distance));
      if (distance_ab > kClose) {
        probe.least_distance = std::min(probe.least_distance, distance_ab);
        continue;
      }
      is_grouped[b] = true;
      group.push_back(prints[b].name);
    }
    if (group.size() > 1) probe.alike.push_back(std::move(group));
  }
}

void check_shape(const ProbeShape& s) {
  std::vector<Problem> problems;
  const auto need = [&](const char* name, index_t n, index_t least) {
    if (n < least)
      problems.push_back(
          {name, std::to_string(n) + "; at least " + std::to_string(least) + " is needed"});
  };
  need("batch", s.batch, 1);
  need("heads", s.heads, 1);
  need("kv_heads", s.kv_heads, 1);
  need("q_len", s.q_len, 1);
  need("kv_len", s.kv_len, 1);
  need("d_k", s.d_k, 1);
  need("d_v", s.d_v, 1);
  const std::array<index_t, 4> tensors[] = {{s.batch, s.heads, s.q_len, s.d_k},
                                            {s.batch, s.heads, s.q_len, s.d_v},
                                            {s.batch, s.heads, s.q_len, s.kv_len},
                                            {s.batch, s.kv_heads, s.kv_len, s.d_k},
                                            {s.batch, s.kv_heads, s.kv_len, s.d_v}};
  for (const std::array<index_t, 4>& shape : tensors) {
    const std::optional<index_t> size = checked_size(shape);
    if (size && checked_mul(*size, 8)) continue;
    problems.push_back({"shape", "larger than 64-bit addresses"});
    break;
  }
  if (!problems.empty()) fail(ErrorKind::option, "make_probe", std::move(problems));
}

// The pairs that may attend, as booleans.
Tensor<std::uint8_t, 4> mask_of(const AttentionOptions& options, const PairShape& pairs) {
  const MaskPlan plan(options, pairs);
  Tensor<std::uint8_t, 4> mask({pairs.batch, pairs.heads, pairs.q_len, pairs.kv_len});
  for (index_t b = 0; b < pairs.batch; ++b)
    for (index_t h = 0; h < pairs.heads; ++h)
      for (index_t i = 0; i < pairs.q_len; ++i)
        for (index_t j = 0; j < pairs.kv_len; ++j)
          mask(b, h, i, j) = plan.allowed(b, h, i, j) ? 1 : 0;
  return mask;
}

}  // namespace

Probe make_probe(const ProbeShape& s, const AttentionOptions& options, std::uint64_t seed,
                 const std::optional<Rotary>& rotary) {
  check_shape(s);
  Probe probe;
  ProbeInputs inputs = probe_inputs(s, options, seed);
  probe.q = std::move(inputs.q);
  probe.k = std::move(inputs.k);
  probe.v = std::move(inputs.v);
  const AttentionCase attention{probe.q, probe.k, probe.v, options, rotary, {}};
  AttentionOptions believed = options;
  believed.empty_row = EmptyRow::zero;
  std::vector<Problem> problems = check(attention.q, attention.k, attention.v, believed);
  check_rotary(attention, problems);
  if (!problems.empty()) fail(ErrorKind::option, "make_probe", std::move(problems));
  const Subject subject(attention, DType::f32);
  // Claims of the right shapes; what they hold is not looked at.
  const Tensor<float, 4> out({s.batch, s.heads, s.q_len, s.d_v});
  const Tensor<float, 3> lse({s.batch, s.heads, s.q_len});
  Claims claims;
  claims.out = out;
  claims.lse = lse;
  const Judge judge(claims, std::nullopt, DType::f32);
  if (!options.mask.parts().empty()) probe.mask = mask_of(believed, subject.right.pairs());
  find_alike(prints_of(subject, judge, rows_to_check(subject.right, kWork)), probe);
  return probe;
}

}  // namespace glasshead
