// The module glasshead._native: what glasshead's Python calls. Not meant to be used by itself.
#include <exception>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "glasshead/context.h"
#include "glasshead/error.h"
#include "python/native/calls.h"
#include "python/native/options.h"

namespace glasshead::python {
namespace {

const char* class_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::shape:
      return "ShapeError";
    case ErrorKind::option:
      return "OptionError";
    case ErrorKind::format:
      return "FormatError";
    case ErrorKind::io:
      return "IoError";
  }
  return "Error";
}

// The library's error as the exception of the same name, with its text and its problems.
void raise(const Error& error) {
  const nb::module_ errors = nb::module_::import_("glasshead._errors");
  nb::list problems;
  for (const Problem& problem : error.problems())
    problems.append(nb::make_tuple(problem.where, problem.what));
  const nb::object raised = errors.attr("made")(nb::str(class_of(error.kind())),
                                                nb::str(error.what()), error.function(), problems);
  PyErr_SetObject(raised.type().ptr(), raised.ptr());
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    raise(error);
  }
}

using SetInfo = std::tuple<std::string, bool, std::string>;

std::vector<SetInfo> infos(const std::vector<KernelSetInfo>& sets) {
  std::vector<SetInfo> all;
  for (const KernelSetInfo& set : sets) all.emplace_back(set.name, set.is_supported, set.lacks);
  return all;
}

}  // namespace
}  // namespace glasshead::python

NB_MODULE(_native, module) {
  using namespace glasshead;  // NOLINT(google-build-using-namespace): a function's own
  namespace nb = nanobind;
  module.doc() = "What the package glasshead is made of; use glasshead itself.";
  nb::register_exception_translator(&python::translate);
  nb::class_<Context>(module, "Context",
                      "Where attention runs: the instruction set and the threads. Neither changes "
                      "a bit of a result, but for a set of rounding_kernel_sets() that is named.")
      .def(
          "__init__",
          [](Context* self, const std::string& isa, int threads) {
            ContextOptions options;
            options.isa = isa;
            options.threads = threads;
            new (self) Context(options);
          },
          nb::arg("isa") = "", nb::arg("threads") = 0,
          "isa: a name of kernel_sets() or rounding_kernel_sets(), empty for the best of the "
          "former that this processor has; threads: 0 for all the cores that this process may use. "
          "GLASSHEAD_ISA and GLASSHEAD_THREADS stand in "
          "for what is left out.")
      .def_prop_ro("isa", [](const Context& self) { return std::string(self.isa()); })
      .def_prop_ro("why_isa", &Context::why_isa)
      .def_prop_ro("threads", &Context::threads)
      .def("__repr__", [](const Context& self) {
        return std::string("glasshead.Context(isa='") + self.isa() +
               "', threads=" + std::to_string(self.threads()) + ")";
      });
  module.def(
      "kernel_sets", [] { return python::infos(kernel_sets()); },
      "(name, whether this processor supports it, what it lacks), best first.");
  module.def(
      "rounding_kernel_sets", [] { return python::infos(rounding_kernel_sets()); },
      "Likewise those that round to bf16, where they are named: docs/same-bits.md.");
  python::add_options(module);
  python::add_calls(module);
  python::add_cache(module);
  python::add_doctor(module);
  python::add_trace(module);
  python::add_audit(module);
  python::add_models(module);
}
