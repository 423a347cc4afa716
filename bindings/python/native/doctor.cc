#include "python/native/doctor.h"

#include <cstring>
#include <memory>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "doctor/case_subject.h"
#include "glasshead/tensor_file.h"
#include "python/native/calls.h"
#include "python/native/options.h"

namespace glasshead::python {
namespace {

constexpr const char* kFunction = "diagnose";

std::optional<Rotary> rotary_of(const std::optional<RotaryArguments>& given) {
  if (!given) return std::nullopt;
  return Rotary{std::get<0>(*given), std::get<1>(*given), std::get<2>(*given)};
}

Judged diagnose_arrays(nb::handle q, nb::handle k, nb::handle v, const Options* options,
                       const std::optional<RotaryArguments>& rotary, nb::handle unprojected,
                       const Claimed& claimed) {
  std::vector<Problem> problems = problems_of(options);
  const Array queries = read_array(q, "q", problems), keys = read_array(k, "k", problems),
              values = read_array(v, "v", problems),
              before = read_optional(unprojected, "unprojected", problems);
  problems.insert(problems.end(), claimed.problems.begin(), claimed.problems.end());
  refuse_if_any(kFunction, std::move(problems));
  const nb::gil_scoped_release others_may_run;
  return claimed.judge({queries.tensor<4>(), keys.tensor<4>(), values.tensor<4>(),
                        values_of(options), rotary_of(rotary), before.tensor<4>()});
}

// A probe whose arrays are copied out one by one.
class Made {
 public:
  explicit Made(Probe probe) : probe_(std::move(probe)) {}

  bool has_mask() const { return probe_.mask.size() > 0; }
  std::vector<std::vector<std::string>> alike() const { return probe_.alike; }
  double least_distance() const { return probe_.least_distance; }

  // `out`: contiguous, float32, or bool for the mask, of the tensor's shape.
  void copy(const std::string& name, nb::handle out) const {
    std::vector<Problem> problems;
    const Array to = read_array(out, "out", problems);
    refuse_if_any("make_probe", std::move(problems));
    const MutableTensor<4> view = to.writable<4>();
    if (name == "mask")
      put(probe_.mask, view);
    else
      put(name == "q" ? probe_.q : name == "k" ? probe_.k : probe_.v, view);
  }

 private:
  template <class T>
  static void put(const Tensor<T, 4>& from, const MutableTensor<4>& to) {
    if (to.dtype != dtype_of<T>() || to.shape != from.shape() ||
        to.strides != row_major(from.shape()))
      throw ShapeError("make_probe", {{"out", "does not have the probe's shape and type"}});
    if (from.size() > 0)
      std::memcpy(to.data, from.data(), static_cast<std::size_t>(from.size()) * sizeof(T));
  }

  Probe probe_;
};

Made probe_of(const std::vector<index_t>& shape, const Options* options, std::uint64_t seed,
              const std::optional<RotaryArguments>& rotary) {
  refuse_if_any("make_probe", problems_of(options));
  const nb::gil_scoped_release others_may_run;
  const ProbeShape sizes{shape[0], shape[1], shape[2], shape[3], shape[4], shape[5], shape[6]};
  return Made(make_probe(sizes, values_of(options), seed, rotary_of(rotary)));
}

}  // namespace

void Claimed::claim(const std::string& name, nb::handle object) {
  ConstTensor<4>* to = name == "out"       ? &claims_.out
                       : name == "weights" ? &claims_.weights
                       : name == "scores"  ? &claims_.scores
                       : name == "dq"      ? &claims_.dq
                       : name == "dk"      ? &claims_.dk
                       : name == "dv"      ? &claims_.dv
                                           : &claims_.d_out;
  Array array = read_array(object, name.c_str(), problems, name == "lse" ? 3 : 4);
  if (!array.is_there()) return;
  if (name == "lse")
    claims_.lse = array.tensor<3>();
  else
    *to = array.tensor<4>();
  held_.push_back(std::move(array));
}

void Claimed::dtype(const std::string& word) {
  options.arithmetic = dtype_named(word);
  if (!options.arithmetic || *options.arithmetic == DType::u8 || *options.arithmetic == DType::i64)
    problems.push_back({"dtype", "\"" + word + "\" is none of f64, f32, bf16, f16"});
}

Judged Claimed::judge(const AttentionCase& attention,
                      const std::vector<std::string>& labels) const {
  DiagnoseOptions labelled = options;
  if (labelled.query_labels.empty()) labelled.query_labels = labels;
  const Diagnosis diagnosis = glasshead::diagnose(attention, claims_, labelled);
  return {diagnosis_text(diagnosis), diagnosis_json(diagnosis)};
}

Judged judge_case(const wire::Case& c, const Claimed& claimed) {
  std::vector<Problem> problems = claimed.problems;
  const std::optional<doctor::CaseSubject> subject = doctor::case_subject(c, problems);
  refuse_if_any(kFunction, std::move(problems));
  return claimed.judge(subject->attention(), subject->query_labels);
}

void add_doctor(nb::module_& module) {
  nb::class_<Claimed>(module, "Claims", "What somebody's attention gave, and how to judge it.")
      .def(nb::init<>())
      .def("claim", &Claimed::claim, nb::arg("name"), nb::arg("array"))
      .def("dtype", &Claimed::dtype, nb::arg("name"))
      .def(
          "decimals", [](Claimed& self, int places) { self.options.decimals = places; },
          nb::arg("places"))
      .def(
          "pairs", [](Claimed& self, bool are_tried) { self.options.tries_pairs = are_tried; },
          nb::arg("are_tried"))
      .def(
          "labels",
          [](Claimed& self, const std::vector<std::string>& labels) {
            self.options.query_labels = labels;
          },
          nb::arg("labels"))
      .def(
          "most_work", [](Claimed& self, double most) { self.options.most_work = most; },
          nb::arg("most"));
  nb::class_<Made>(module, "Probe", "Inputs that tell mistakes apart; see glasshead.Probe.")
      .def_prop_ro("has_mask", &Made::has_mask)
      .def_prop_ro("alike", &Made::alike)
      .def_prop_ro("least_distance", &Made::least_distance)
      .def("copy", &Made::copy, nb::arg("name"), nb::arg("out"));
  module.def("diagnose", &diagnose_arrays, nb::arg("q"), nb::arg("k"), nb::arg("v"),
             nb::arg("options").none(), nb::arg("rotary").none(), nb::arg("unprojected").none(),
             nb::arg("claims"), "(text, JSON)");
  module.def("make_probe", &probe_of, nb::arg("shape"), nb::arg("options").none(), nb::arg("seed"),
             nb::arg("rotary").none());
}

}  // namespace glasshead::python
