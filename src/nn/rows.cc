#include "nn/rows.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/assert.h"
#include "core/context_impl.h"

namespace glasshead::nn {
namespace {

// Numbers of a work item: some 20 us of work.
constexpr index_t kItem = 16384;

// f(first, last) over pieces of [0, rows), each row having `size` numbers.
template <class F>
void for_rows(index_t rows, index_t size, const Context& context, const F& f) {
  const index_t each = std::max<index_t>(1, kItem / std::max<index_t>(1, size));
  context.impl().pool.run((rows + each - 1) / each, [&](index_t item, int) {
    f(item * each, std::min(rows, (item + 1) * each));
  });
}

// The sum of f(i) over [0, n) in sixteen parts, as rows.h has it.
template <class F>
double sum_of(index_t n, const F& f) {
  constexpr index_t kParts = 16;
  double part[kParts] = {};
  index_t i = 0;
  for (; i + kParts <= n; i += kParts)
    for (index_t k = 0; k < kParts; ++k) part[k] += f(i + k);
  for (index_t k = 0; i < n; ++i, ++k) part[k] += f(i);
  for (index_t half = kParts / 2; half > 0; half /= 2)
    for (index_t k = 0; k < half; ++k) part[k] += part[k + half];
  return part[0];
}

double wide(float x) { return static_cast<double>(x); }

// y = (x - mean)·r·gain + bias; step of x and y.
struct NormRow {
  const float* x;
  float* y;
  index_t n, x_step, y_step;
  const float *gain, *bias;  // or null

  double at(index_t i) const { return wide(x[i * x_step]); }
  void put(double mean, double r) const {
    if (x_step == 1 && y_step == 1)
      put_steps<1>(mean, r);
    else
      put_steps<0>(mean, r);
  }

 private:
  template <index_t kStep>  // 0: any
  void put_steps(double mean, double r) const {
    const index_t from = kStep == 0 ? x_step : kStep, to = kStep == 0 ? y_step : kStep;
    for (index_t i = 0; i < n; ++i) {
      double value = (wide(x[i * from]) - mean) * r;
      if (gain != nullptr) value *= wide(gain[i]);
      if (bias != nullptr) value += wide(bias[i]);
      y[i * to] = static_cast<float>(value);
    }
  }
};

// f(row) for the rows of x and y.
template <class F>
void for_norms(const View<const float, 2>& x, std::span<const float> gain,
               std::span<const float> bias, const View<float, 2>& y, const Context& context,
               const F& f) {
  GLASSHEAD_ASSERT(gain.empty() || static_cast<index_t>(gain.size()) == x.shape[1]);
  GLASSHEAD_ASSERT(bias.empty() || static_cast<index_t>(bias.size()) == x.shape[1]);
  for_rows(x.shape[0], x.shape[1], context, [&](index_t first, index_t last) {
    for (index_t r = first; r < last; ++r)
      f(NormRow{.x = x.data + r * x.strides[0],
                .y = y.data + r * y.strides[0],
                .n = x.shape[1],
                .x_step = x.strides[1],
                .y_step = y.strides[1],
                .gain = gain.empty() ? nullptr : gain.data(),
                .bias = bias.empty() ? nullptr : bias.data()});
  });
}

// One head of one row: (a, b) -> (a·cos - b·sin, a·sin + b·cos).
template <bool kIsAdjacent>
void turn(float* x, index_t step, index_t half, const float* cos, const float* sin, index_t pairs) {
  for (index_t i = 0; i < pairs; ++i) {
    float& first = x[(kIsAdjacent ? 2 * i : i) * step];
    float& second = x[(kIsAdjacent ? 2 * i + 1 : i + half) * step];
    const double a = wide(first), b = wide(second), c = wide(cos[i]), s = wide(sin[i]);
    first = static_cast<float>(a * c - b * s);
    second = static_cast<float>(a * s + b * c);
  }
}

Bend bend_of(Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return Bend::gelu;
    case Activation::gelu_tanh:
      return Bend::gelu_tanh;
    case Activation::silu:
      return Bend::silu;
    case Activation::quick_gelu:
      return Bend::quick_gelu;
    case Activation::tanh:
      return Bend::tanh;
    case Activation::relu:
    case Activation::none:
      break;
  }
  return Bend::relu;
}

// Row r of a view as numbers side by side: where it stands, or in `copy`.
const float* dense_row(const View<const float, 2>& x, index_t r, std::vector<float>& copy) {
  const float* const row = x.data + r * x.strides[0];
  if (x.strides[1] == 1) return row;
  copy.resize(static_cast<std::size_t>(x.shape[1]));
  for (index_t i = 0; i < x.shape[1]; ++i)
    copy[static_cast<std::size_t>(i)] = row[i * x.strides[1]];
  return copy.data();
}

void bend_rows(const View<float, 2>& x, const View<const float, 2>* up, Activation activation,
               const Context& context) {
  const auto bend = context.impl().kernels.layers.bend;
  for_rows(x.shape[0], x.shape[1], context, [&](index_t first, index_t last) {
    std::vector<float> copy, up_copy;
    for (index_t r = first; r < last; ++r) {
      float* const row = x.data + r * x.strides[0];
      const float* const factors = up == nullptr ? nullptr : dense_row(*up, r, up_copy);
      if (x.strides[1] == 1) {
        bend({.bend = bend_of(activation), .count = x.shape[1], .x = row, .up = factors});
        continue;
      }
      dense_row(x, r, copy);
      bend({.bend = bend_of(activation), .count = x.shape[1], .x = copy.data(), .up = factors});
      for (index_t i = 0; i < x.shape[1]; ++i)
        row[i * x.strides[1]] = copy[static_cast<std::size_t>(i)];
    }
  });
}

}  // namespace

void layer_norm_rows(const View<const float, 2>& x, std::span<const float> gain,
                     std::span<const float> bias, double eps, const View<float, 2>& y,
                     const Context& context) {
  for_norms(x, gain, bias, y, context, [&](const NormRow& row) {
    const auto n = static_cast<double>(row.n);
    const double mean = sum_of(row.n, [&](index_t i) { return row.at(i); }) / n;
    const double squares = sum_of(row.n, [&](index_t i) {
      const double away = row.at(i) - mean;
      return away * away;
    });
    row.put(mean, 1 / std::sqrt(squares / n + eps));
  });
}

void rms_norm_rows(const View<const float, 2>& x, std::span<const float> gain, double eps,
                   const View<float, 2>& y, const Context& context) {
  for_norms(x, gain, {}, y, context, [&](const NormRow& row) {
    const double squares = sum_of(row.n, [&](index_t i) { return row.at(i) * row.at(i); });
    row.put(0, 1 / std::sqrt(squares / static_cast<double>(row.n) + eps));
  });
}

void rotate_rows(const View<float, 3>& x, const View<const float, 2>& cos,
                 const View<const float, 2>& sin, const Rope& rope, const Context& context) {
  const Rope full = resolved(rope, x.shape[2]);
  const index_t pairs = cos.shape[1];
  GLASSHEAD_ASSERT(cos.strides[1] == 1 && sin.strides[1] == 1 && 2 * pairs <= full.span);
  for_rows(x.shape[0], x.shape[1] * x.shape[2], context, [&](index_t first, index_t last) {
    for (index_t r = first; r < last; ++r)
      for (index_t h = 0; h < x.shape[1]; ++h) {
        float* const head = x.data + r * x.strides[0] + h * x.strides[1];
        const float* const c = cos.data + r * cos.strides[0];
        const float* const s = sin.data + r * sin.strides[0];
        if (full.pairing == RopePairing::adjacent)
          turn<true>(head, x.strides[2], full.span / 2, c, s, pairs);
        else
          turn<false>(head, x.strides[2], full.span / 2, c, s, pairs);
      }
  });
}

void activate_rows(const View<float, 2>& x, Activation activation, const Context& context) {
  if (activation != Activation::none) bend_rows(x, nullptr, activation, context);
}

void gate_rows(const View<float, 2>& gate, const View<const float, 2>& up, Activation activation,
               const Context& context) {
  if (activation != Activation::none) return bend_rows(gate, &up, activation, context);
  for_rows(gate.shape[0], gate.shape[1], context, [&](index_t first, index_t last) {
    for (index_t r = first; r < last; ++r)
      for (index_t i = 0; i < gate.shape[1]; ++i) gate(r, i) *= up(r, i);
  });
}

void add_rows(const View<float, 2>& x, const View<const float, 2>& y, const Context& context) {
  for_rows(x.shape[0], x.shape[1], context, [&](index_t first, index_t last) {
    for (index_t r = first; r < last; ++r) {
      float* const to = x.data + r * x.strides[0];
      const float* const from = y.data + r * y.strides[0];
      if (x.strides[1] == 1 && y.strides[1] == 1)
        for (index_t i = 0; i < x.shape[1]; ++i) to[i] += from[i];
      else
        for (index_t i = 0; i < x.shape[1]; ++i) to[i * x.strides[1]] += from[i * y.strides[1]];
    }
  });
}

}  // namespace glasshead::nn
