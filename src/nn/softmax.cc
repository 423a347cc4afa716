#include "nn/softmax.h"

#include <cmath>
#include <limits>

#include "base/math.h"
#include "core/rows.h"

namespace glasshead::nn {
namespace {

// Sums over an axis are made as those over keys: block by block, then in order.
constexpr auto kBlock = static_cast<std::size_t>(kSumBlock);

// One line of entries along the axis: `count` of them, `stride` apart.
struct Line {
  std::size_t first, count, stride;
  std::size_t at(std::size_t j) const { return first + j * stride; }
};

double largest(std::span<const double> x, const Line& line) {
  double max = -std::numeric_limits<double>::infinity();
  for (std::size_t j = 0; j < line.count; ++j) {
    const double value = x[line.at(j)];
    if (std::isnan(value)) return value;
    if (value > max) max = value;
  }
  return max;
}

double sum_of_exp(std::span<const double> x, const Line& line, double max) {
  double sum = 0;
  for (std::size_t j0 = 0; j0 < line.count; j0 += kBlock) {
    double block = 0;
    for (std::size_t j = j0; j < line.count && j < j0 + kBlock; ++j)
      block += math::exp(x[line.at(j)] - max);
    sum += block;
  }
  return sum;
}

template <class Work>
void for_each_line(std::span<const index_t> shape, std::size_t axis, Work work) {
  std::size_t outer = 1, inner = 1;
  for (std::size_t a = 0; a < axis; ++a) outer *= static_cast<std::size_t>(shape[a]);
  for (std::size_t a = axis + 1; a < shape.size(); ++a) inner *= static_cast<std::size_t>(shape[a]);
  const auto count = static_cast<std::size_t>(shape[axis]);
  for (std::size_t o = 0; o < outer; ++o)
    for (std::size_t i = 0; i < inner; ++i) work(Line{o * count * inner + i, count, inner});
}

}  // namespace

void softmax(std::span<const double> x, std::span<const index_t> shape, std::size_t axis,
             std::span<double> out) {
  for_each_line(shape, axis, [&](const Line& line) {
    const double max = largest(x, line);
    const double sum = sum_of_exp(x, line, max);
    for (std::size_t j = 0; j < line.count; ++j)
      out[line.at(j)] = math::exp(x[line.at(j)] - max) / sum;
  });
}

void log_softmax(std::span<const double> x, std::span<const index_t> shape, std::size_t axis,
                 std::span<double> out) {
  for_each_line(shape, axis, [&](const Line& line) {
    const double max = largest(x, line);
    const double log_sum = math::log(sum_of_exp(x, line, max));
    for (std::size_t j = 0; j < line.count; ++j) out[line.at(j)] = x[line.at(j)] - max - log_sum;
  });
}

}  // namespace glasshead::nn
