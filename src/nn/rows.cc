#include "nn/rows.h"

#include <vector>

#include "core/context_impl.h"
#include "nn/norm.h"

namespace glasshead::nn {
namespace {

void for_rows(index_t rows, const Context& context, const auto& f) {
  context.impl().pool.run(rows, [&](index_t r, int) { f(r); });
}

std::vector<double> wide(std::span<const float> from) { return {from.begin(), from.end()}; }

}  // namespace

void layer_norm_rows(const View<const float, 2>& x, std::span<const float> gain,
                     std::span<const float> bias, double eps, const View<float, 2>& y,
                     const Context& context) {
  const std::vector<double> g = wide(gain), b = wide(bias);
  for_rows(x.shape[0], context, [&](index_t r) {
    std::vector<double> row(static_cast<std::size_t>(x.shape[1]));
    for (index_t i = 0; i < x.shape[1]; ++i) row[static_cast<std::size_t>(i)] = x(r, i);
    layer_norm(row, g, b, eps, row);
    for (index_t i = 0; i < x.shape[1]; ++i)
      y(r, i) = static_cast<float>(row[static_cast<std::size_t>(i)]);
  });
}

void rms_norm_rows(const View<const float, 2>& x, std::span<const float> gain, double eps,
                   const View<float, 2>& y, const Context& context) {
  const std::vector<double> g = wide(gain);
  for_rows(x.shape[0], context, [&](index_t r) {
    std::vector<double> row(static_cast<std::size_t>(x.shape[1]));
    for (index_t i = 0; i < x.shape[1]; ++i) row[static_cast<std::size_t>(i)] = x(r, i);
    rms_norm(row, g, eps, row);
    for (index_t i = 0; i < x.shape[1]; ++i)
      y(r, i) = static_cast<float>(row[static_cast<std::size_t>(i)]);
  });
}

void rotate_rows(const View<float, 3>& x, const View<const float, 2>& cos,
                 const View<const float, 2>& sin, const Rope& rope, const Context& context) {
  const index_t pairs = cos.shape[1];
  for_rows(x.shape[0], context, [&](index_t r) {
    std::vector<double> c(static_cast<std::size_t>(pairs)), s(c.size());
    for (index_t i = 0; i < pairs; ++i) {
      c[static_cast<std::size_t>(i)] = cos(r, i);
      s[static_cast<std::size_t>(i)] = sin(r, i);
    }
    std::vector<double> row(static_cast<std::size_t>(x.shape[2]));
    for (index_t h = 0; h < x.shape[1]; ++h) {
      for (index_t i = 0; i < x.shape[2]; ++i) row[static_cast<std::size_t>(i)] = x(r, h, i);
      rotate(row, c, s, rope);
      for (index_t i = 0; i < x.shape[2]; ++i)
        x(r, h, i) = static_cast<float>(row[static_cast<std::size_t>(i)]);
    }
  });
}

void activate_rows(const View<float, 2>& x, Activation activation, const Context& context) {
  for_rows(x.shape[0], context, [&](index_t r) {
    for (index_t i = 0; i < x.shape[1]; ++i)
      x(r, i) = static_cast<float>(activate(activation, x(r, i)));
  });
}

void gate_rows(const View<float, 2>& gate, const View<const float, 2>& up, Activation activation,
               const Context& context) {
  for_rows(gate.shape[0], context, [&](index_t r) {
    for (index_t i = 0; i < gate.shape[1]; ++i)
      gate(r, i) = static_cast<float>(activate(activation, gate(r, i))) * up(r, i);
  });
}

void add_rows(const View<float, 2>& x, const View<const float, 2>& y, const Context& context) {
  for_rows(x.shape[0], context, [&](index_t r) {
    for (index_t i = 0; i < x.shape[1]; ++i) x(r, i) += y(r, i);
  });
}

}  // namespace glasshead::nn
