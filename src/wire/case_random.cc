#include "wire/case_random.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/random.h"

namespace glasshead::wire {

namespace {

void put_input(Case& c, const std::string& name, TraceTensor tensor) {
  const auto same = std::find_if(c.inputs.begin(), c.inputs.end(),
                                 [&](const auto& input) { return input.first == name; });
  if (same == c.inputs.end())
    c.inputs.emplace_back(name, std::move(tensor));
  else
    same->second = std::move(tensor);
  c.paths[name] = "random";
}

}  // namespace

void size_random(Case& c) {
  const std::vector<index_t> shape{c.random->rows, c.random->d_k};
  const auto size = static_cast<std::size_t>(shape[0] * shape[1]);
  for (const char* name : {"q", "k", "v"}) put_input(c, name, {shape, std::vector<double>(size)});
}

void fill_random(Case& c) {
  const RandomInputs& random = *c.random;
  c.query_labels.resize(static_cast<std::size_t>(random.rows));
  for (index_t n = 0; n < random.rows; ++n)
    if (std::string& label = c.query_labels[static_cast<std::size_t>(n)]; label.empty())
      label = fmt::format("{}", n);
  c.key_labels = c.query_labels;
  const double own = std::sqrt(1 - random.correlation);
  const double shared = std::sqrt(random.correlation);
  std::uint64_t stream = 0;
  for (const char* name : {"q", "k", "v"}) {
    TraceTensor tensor;
    tensor.shape = {random.rows, random.d_k};
    for (index_t row = 0; row < random.rows; ++row) {
      const double common =
          shared == 0 ? 0
                      : standard_normal(random.seed, static_cast<std::uint64_t>(row), stream + 1);
      for (index_t d = 0; d < random.d_k; ++d) {
        const auto n = static_cast<std::uint64_t>(row * random.d_k + d);
        tensor.values.push_back(own * standard_normal(random.seed, n, stream) + shared * common);
      }
    }
    stream += 2;  // one stream for the coordinates, one for what they share
    put_input(c, name, std::move(tensor));
  }
}

}  // namespace glasshead::wire
