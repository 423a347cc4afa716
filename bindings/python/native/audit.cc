// The audit for Python: calls go out as bytes with shapes and strides, answers come back as bytes.
#include "glasshead/audit.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/native/calls.h"

namespace glasshead::python {
namespace {

std::vector<Feature> features_of(const std::vector<std::string>& words) {
  std::vector<Feature> taken;
  for (const Feature feature : all_features())
    if (std::find(words.begin(), words.end(), name(feature)) != words.end())
      taken.push_back(feature);
  return taken;
}

// (bytes, dtype, shape, strides in bytes, offset of the first element): the memory that a view
// spans.
nb::tuple memory_of(const void* data, DType type, const std::vector<index_t>& shape,
                    const std::vector<index_t>& strides) {
  const auto size = static_cast<index_t>(size_of(type));
  index_t low = 0, high = 0;
  bool is_empty = false;
  nb::list extents, steps;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    is_empty = is_empty || shape[axis] == 0;
    const index_t reach = (shape[axis] - 1) * strides[axis];
    (reach < 0 ? low : high) += reach;
    extents.append(shape[axis]);
    steps.append(strides[axis] * size);
  }
  const auto* first = static_cast<const char*>(data);
  const nb::bytes bytes =
      is_empty ? nb::bytes("", 0)
               : nb::bytes(first + low * size, static_cast<std::size_t>((high - low + 1) * size));
  return nb::make_tuple(bytes, name(type), nb::tuple(extents), nb::tuple(steps),
                        is_empty ? 0 : -low * size);
}

nb::object memory_of(const ConstTensor<4>& x) {
  return memory_of(x.data, x.dtype, {x.shape.begin(), x.shape.end()},
                   {x.strides.begin(), x.strides.end()});
}

nb::object memory_of(const Broadcast& x) {
  if (x.data == nullptr) return nb::none();
  return memory_of(x.data, x.dtype, {x.shape.begin(), x.shape.begin() + x.rank},
                   {x.strides.begin(), x.strides.begin() + x.rank});
}

nb::object side(const std::optional<index_t>& n) {
  return n ? nb::object(nb::int_(*n)) : nb::object(nb::none());
}

nb::dict call_of(const AuditCall& call) {
  nb::dict made;
  made["input"] = call.input;
  made["q"] = memory_of(call.q);
  made["k"] = memory_of(call.k);
  made["v"] = memory_of(call.v);
  made["mask"] = memory_of(call.mask);
  made["bias"] = memory_of(call.bias);
  made["causal"] = call.causal ? nb::object(nb::str(*call.causal == Align::start ? "start" : "end"))
                               : nb::object(nb::none());
  made["window"] =
      call.window ? nb::object(nb::make_tuple(side(call.window->left), side(call.window->right)))
                  : nb::object(nb::none());
  nb::list lengths;
  for (const index_t n : call.key_lengths) lengths.append(n);
  made["key_lengths"] = call.key_lengths.empty() ? nb::object(nb::none()) : nb::object(lengths);
  made["scale"] = call.scale ? nb::object(nb::float_(*call.scale)) : nb::object(nb::none());
  made["softcap"] = call.softcap;
  made["threads"] = call.threads;
  return made;
}

class Run {
 public:
  Run(const std::string& subject, const std::vector<std::string>& takes,
      const std::vector<std::string>& groups, std::uint64_t seed, const std::string& folder)
      : run_({subject, features_of(takes), groups, seed, folder, {}}) {}

  nb::object next() {
    const AuditCall* call = run_.next();
    return call == nullptr ? nb::object(nb::none()) : nb::object(call_of(*call));
  }

  void answer(const std::string& dtype, const std::vector<index_t>& shape, const nb::bytes& bytes) {
    AuditAnswer answer;
    answer.out.dtype = dtype_named(dtype).value();  // the package names no other
    answer.out.shape = shape;
    answer.out.bytes.resize(bytes.size());
    if (bytes.size() > 0) std::memcpy(answer.out.bytes.data(), bytes.c_str(), bytes.size());
    const nb::gil_scoped_release others_may_run;
    run_.answer(std::move(answer));
  }

  void told(Answered kind, const std::string& text) { run_.answer({kind, {}, text}); }
  AuditReport report() const { return run_.report(); }
  index_t done() const { return run_.inputs_done(); }
  index_t inputs() const { return run_.inputs(); }

 private:
  AuditRun run_;
};

}  // namespace

void add_audit(nb::module_& module) {
  module.def("audit_groups", &audit_groups);
  module.def("audit_features", [] {
    std::vector<std::string> names;
    for (const Feature feature : all_features()) names.emplace_back(name(feature));
    return names;
  });
  const auto tells = [](Answered kind) {
    return [kind](Run& run, const std::string& text) { run.told(kind, text); };
  };
  nb::class_<AuditReport>(module, "AuditReport")
      .def("text", &audit_text)
      .def("json", &audit_json)
      .def("why_nothing", &AuditReport::why_nothing);
  nb::class_<Run>(module, "AuditRun")
      .def(nb::init<const std::string&, const std::vector<std::string>&,
                    const std::vector<std::string>&, std::uint64_t, const std::string&>(),
           nb::arg("subject"), nb::arg("takes"), nb::arg("groups"), nb::arg("seed"),
           nb::arg("folder"))
      .def_prop_ro("done", &Run::done)
      .def_prop_ro("inputs", &Run::inputs)
      .def("next", &Run::next)
      .def("answer", &Run::answer, nb::arg("dtype"), nb::arg("shape"), nb::arg("bytes"))
      .def("refused", tells(Answered::refused), nb::arg("text"))
      .def("crashed", tells(Answered::crashed), nb::arg("text"))
      .def("hung", tells(Answered::hung), nb::arg("text"))
      .def("not_offered", tells(Answered::not_offered), nb::arg("text"))
      .def("report", &Run::report);
}

}  // namespace glasshead::python
