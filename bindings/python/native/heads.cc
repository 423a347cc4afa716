// Every head of a model at a glance: HeadStudy.
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "python/native/calls.h"
#include "python/native/numbers.h"
#include "python/native/session.h"

namespace glasshead::python {
namespace {

using Bounds = std::pair<index_t, index_t>;
// attention, layer, head, then the numbers in the order of HeadMetrics
using Measured =
    std::tuple<std::string, index_t, index_t, double, double, double, double, double, double>;

template <class Ask>  // ask(study) -> an answer
auto asked(SharedStudy& self, const Ask& ask) {
  const nb::gil_scoped_release others_may_run;
  const std::lock_guard alone(self.turns);
  return ask(self.kept);
}

std::vector<Measured> metrics(SharedStudy& self) {
  std::vector<Measured> all;
  for (HeadMetrics& one : asked(self, [](const HeadStudy& study) { return study.metrics(); }))
    all.emplace_back(std::move(one.attention), one.layer, one.head, one.first, one.previous,
                     one.self, one.entropy, one.distance, one.induction);
  return all;
}

// The pictures alone: metrics() has the other numbers.
std::vector<std::pair<std::string, Floats>> maps(SharedStudy& self) {
  std::vector<std::pair<std::string, Floats>> arrays;
  for (auto& [name, tensor] : asked(self, [](const HeadStudy& study) { return study.results(); }))
    if (tensor.dtype == DType::f32) arrays.emplace_back(name, array_of(std::move(tensor)));
  return arrays;
}

Doubles rows(SharedStudy& self, const std::string& attention) {
  return array_of(asked(self, [&](const HeadStudy& study) { return study.rows(attention); }));
}

Matrix weights(SharedStudy& self, const std::string& attention, index_t head, const Bounds& queries,
               const Bounds& keys, const Context* context) {
  const PairRange pairs{queries.first, queries.second, keys.first, keys.second};
  return array_of(asked(self, [&](const HeadStudy& study) {
    const Tensor<float, 2> made =
        study.weights(attention, head, pairs, context == nullptr ? default_context() : *context);
    return copy_of({made.data(), made.shape()});
  }));
}

}  // namespace

void add_heads(nb::module_& module) {
  nb::class_<SharedStudy>(module, "HeadStudy", "See glasshead.HeadStudy.")
      .def(
          "__init__",
          [](SharedStudy* self, index_t cell, bool keeps_rows, index_t sequence) {
            new (self) SharedStudy(HeadStudy({cell, keeps_rows, sequence}));
          },
          nb::arg("cell"), nb::arg("keeps_rows"), nb::arg("sequence"))
      .def("metrics", &metrics)
      .def("maps", &maps)
      .def("rows", &rows, nb::arg("attention"))
      .def("weights", &weights, nb::arg("attention"), nb::arg("head"), nb::arg("queries"),
           nb::arg("keys"), nb::arg("context").none())
      .def("bytes", [](SharedStudy& self) {
        return asked(self, [](const HeadStudy& study) { return study.bytes(); });
      });
}

}  // namespace glasshead::python
