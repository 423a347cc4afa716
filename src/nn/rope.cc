#include "nn/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "base/math.h"

namespace glasshead::nn {
namespace {

double scale_factor(double factor, double mscale) {
  return factor > 1 ? 0.1 * mscale * math::log(factor) + 1 : 1;
}

// The (fractional) pair that turns `turns` times over the original length.
double pair_of_turns(double turns, const Rope& rope, const Yarn& yarn) {
  const double ratio = yarn.original_length / (turns * 2 * std::numbers::pi);
  return static_cast<double>(rope.span) * math::log(ratio) / (2 * math::log(rope.base));
}

void slow_down(std::vector<double>& frequencies, const Rope& rope, const Yarn& yarn) {
  double low = pair_of_turns(yarn.beta_fast, rope, yarn);
  double high = pair_of_turns(yarn.beta_slow, rope, yarn);
  if (yarn.is_truncated) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(rope.span - 1));
  if (low == high) high += 0.001;  // a step instead of a ramp, as the paper's code has it
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    const double kept = 1 - ramp;
    frequencies[i] = frequencies[i] / yarn.factor * (1 - kept) + frequencies[i] * kept;
  }
}

}  // namespace

Rope resolved(Rope rope, index_t d) {
  if (rope.span == 0) rope.span = rope.rotary == 0 ? d : rope.rotary;
  if (rope.rotary == 0) rope.rotary = rope.span;
  return rope;
}

std::vector<Problem> check(const Rope& rope, index_t d, const std::string& where) {
  std::vector<Problem> problems;
  const auto add = [&](const std::string& field, std::string what) {
    problems.push_back({where + field, std::move(what)});
  };
  const Rope full = resolved(rope, d);
  if (!(rope.base > 0) || !std::isfinite(rope.base))
    add(".base", "must be a finite number above 0");
  if (full.span < 2 || full.span % 2 != 0 || full.span > d)
    add(rope.span != 0 || rope.rotary == 0 ? ".span" : ".rotary",
        fmt::format("{}: pairs need an even number of coordinates from 2 to d_k = {}", full.span,
                    d));
  else if (full.rotary < 2 || full.rotary % 2 != 0 || full.rotary > full.span)
    add(".rotary", fmt::format("{}: must be even, from 2 to {}", full.rotary, full.span));
  if (rope.yarn) {
    const Yarn& yarn = *rope.yarn;
    for (const auto& [field, value] : {std::pair{".yarn.factor", yarn.factor},
                                       std::pair{".yarn.original_length", yarn.original_length},
                                       std::pair{".yarn.beta_fast", yarn.beta_fast},
                                       std::pair{".yarn.beta_slow", yarn.beta_slow}})
      if (!(value > 0) || !std::isfinite(value)) add(field, "must be a finite number above 0");
    if (rope.base == 1) add(".base", "1: YaRN divides by ln base; must not be 1");
  }
  return problems;
}

std::vector<double> rope_frequencies(const Rope& rope, index_t d) {
  const Rope full = resolved(rope, d);
  std::vector<double> frequencies(static_cast<std::size_t>(full.rotary / 2));
  for (std::size_t i = 0; i < frequencies.size(); ++i)
    frequencies[i] =
        math::pow(full.base, -2 * static_cast<double>(i) / static_cast<double>(full.span));
  if (full.yarn) slow_down(frequencies, full, *full.yarn);
  return frequencies;
}

double yarn_amplitude(const Yarn& yarn) {
  if (yarn.mscale != 0 && yarn.mscale_all_dim != 0)
    return scale_factor(yarn.factor, yarn.mscale) / scale_factor(yarn.factor, yarn.mscale_all_dim);
  return scale_factor(yarn.factor, 1);
}

RopeTable rope_table(const Rope& rope, index_t d, double position) {
  const std::vector<double> frequencies = rope_frequencies(rope, d);
  const double amplitude = rope.yarn ? yarn_amplitude(*rope.yarn) : 1;
  RopeTable table;
  for (const double frequency : frequencies) {
    table.cos.push_back(math::cos(position * frequency) * amplitude);
    table.sin.push_back(math::sin(position * frequency) * amplitude);
  }
  return table;
}

void rotate(std::span<double> x, std::span<const double> cos, std::span<const double> sin,
            const Rope& rope) {
  const Rope full = resolved(rope, static_cast<index_t>(x.size()));
  const auto half = static_cast<std::size_t>(full.span / 2);
  for (std::size_t i = 0; i < cos.size(); ++i) {
    const bool is_adjacent = full.pairing == RopePairing::adjacent;
    double& a = x[is_adjacent ? 2 * i : i];
    double& b = x[is_adjacent ? 2 * i + 1 : i + half];
    const double a_before = a;
    a = a_before * cos[i] - b * sin[i];
    b = a_before * sin[i] + b * cos[i];
  }
}

}  // namespace glasshead::nn
