#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "glasshead/tensor_file.h"
#include "python/native/calls.h"
#include "python/native/doctor.h"
#include "python/native/options.h"
#include "python/native/trace_case.h"
#include "python/native/trace_page.h"
#include "wire/case_text.h"
#include "wire/document_build.h"
#include "wire/document_notes.h"
#include "wire/explain.h"
#include "wire/lesson.h"
#include "wire/render.h"
#include "wire/sequence.h"
#include "wire/trace_json.h"

namespace glasshead::python {
namespace {

constexpr const char* kFunction = "trace";

class Traced {
 public:
  explicit Traced(ShownCase c)
      : run_{std::move(c.shown), {}}, text_(std::move(c.text)), start_(std::move(c.start)) {
    run_.trace = wire::run_case(run_.shown);
  }

  const wire::Case& shown() const { return run_.shown; }

  std::vector<std::string> inputs() const {
    std::vector<std::string> names;
    for (const auto& [tap, value] : run_.trace.inputs) names.push_back(tap);
    return names;
  }

  using Told = std::tuple<std::string, std::string, std::string, std::vector<std::string>>;
  std::vector<Told> steps() const {  // tap, formula, sentence, reads
    std::vector<Told> list;
    for (const TracedStep& traced : run_.trace.steps) {
      const Step& step = traced.step;
      list.emplace_back(step.tap, step.op != nullptr ? step.op->formula : "",
                        step.op != nullptr ? step.op->sentence : "", step.reads);
    }
    return list;
  }

  std::vector<index_t> shape(const std::string& tap) const { return run_.trace.at(tap).shape; }

  // `out`: contiguous float64 of the tap's size.
  void copy(const std::string& tap, nb::handle out) const {
    std::vector<Problem> problems;
    const TraceTensor& value = run_.trace.at(tap);
    const Array to = read_array(out, "out", problems, 1);
    refuse_if_any(kFunction, std::move(problems));
    const MutableTensor<1> view = to.writable<1>();
    const auto size = static_cast<index_t>(value.values.size());
    if (view.dtype != DType::f64 || view.shape[0] != size || (size > 1 && view.strides[0] != 1))
      throw ShapeError(kFunction, {{"out", "is not " + std::to_string(size) +
                                               " float64 numbers, one after another"}});
    if (size > 0) std::memcpy(view.data, value.values.data(), value.values.size() * sizeof(double));
  }

  std::string page(const std::string& format, const Printing& printing) const {
    const wire::DocumentOptions options = options_of(run_.shown, format, printing);
    if (format == "json") {
      refuse_unknown_taps(printing.steps);
      std::string text;
      wire::write_trace_json(run_.shown, options, [&](std::string_view piece) { text += piece; });
      return text + "\n";
    }
    wire::DocumentOptions all = options;
    all.steps.clear();
    wire::Document document = wire::build_document(run_.shown, run_.trace, all);
    refuse_unknown_steps(document, printing.steps);
    wire::keep_steps(document, printing.steps);
    return rendered(document, format, printing);
  }

  std::string explain(const Printing& printing) const {
    const wire::DocumentOptions options = options_of(run_.shown, "text", printing);
    return wire::to_text(wire::explain_document(run_.shown, run_.trace, options),
                         {printing.width, printing.is_ascii});
  }

  // The page `make web` writes, with this case in it.
  std::string lesson(const std::string& page) const {
    wire::Lesson lesson{wire::address_name(run_.shown.name), text_, start_};
    if (text_.empty()) {  // made of arrays
      lesson.text = wire::given_case_text(run_.shown);
      std::vector<Problem> problems;
      if (!wire::parse_case(lesson.text, lesson.name, problems))
        throw OptionError(kFunction, std::move(problems));
    } else if (start_.empty()) {
      throw OptionError(kFunction, {{"hide",
                                     "the page hides keys of the sequence alone, and this "
                                     "one is the context's"}});
    }
    std::optional<std::string> filled = wire::fill_lesson(page, lesson);
    if (!filled)
      throw FormatError(kFunction, {{"web", "lesson.html has no place for a case; make web anew"}});
    return std::move(*filled);
  }

  std::string diff(const Traced& before, const std::string& format,
                   const Printing& printing) const {
    return diff_page(before.run_, run_, format, printing);
  }
  std::string by_hand(int decimals, bool is_shifted, const std::string& format,
                      const Printing& printing) const {
    return by_hand_page(run_, decimals, is_shifted, format, printing);
  }
  std::string mistake(const std::string& name, const std::string& format,
                      const Printing& printing) const {
    return mistake_page(run_, name, format, printing);
  }
  std::string gradients(const std::string& format, const Printing& printing) const {
    return gradients_page(run_, format, printing);
  }

  Judged diagnose(const Claimed& claimed) const {
    const nb::gil_scoped_release others_may_run;
    return judge_case(run_.shown, claimed);
  }

  // Every tap, or `out` alone for a .npy.
  void write_numbers(const std::string& path, bool is_npy) const {
    if (is_npy) {
      write_npy(path, file_tensor(run_.trace.at("out")));
      return;
    }
    NamedTensors all;
    for (const auto& [tap, value] : run_.trace.inputs) all.emplace_back(tap, file_tensor(value));
    for (const TracedStep& traced : run_.trace.steps)
      all.emplace_back(traced.step.tap, file_tensor(traced.value));
    write_safetensors(path, all);
  }

 private:
  static FileTensor file_tensor(const TraceTensor& value) {
    FileTensor tensor = make_tensor(DType::f64, value.shape);
    if (!value.values.empty())
      std::memcpy(tensor.bytes.data(), value.values.data(), tensor.bytes.size());
    return tensor;
  }

  static void refuse_unknown_steps(const wire::Document& document,
                                   const std::vector<std::string>& names) {
    std::vector<Problem> problems;
    for (const std::string& name : names) {
      wire::Document named;
      named.sections = document.sections;
      wire::keep_steps(named, {name});
      if (named.sections.empty())
        problems.push_back({"steps", name + ": no step or matrix of this name"});
    }
    refuse_if_any(kFunction, std::move(problems));
  }

  void refuse_unknown_taps(const std::vector<std::string>& names) const {
    std::vector<std::string> taps = inputs();
    for (const TracedStep& traced : run_.trace.steps) taps.push_back(traced.step.tap);
    std::vector<Problem> problems;
    for (const std::string& name : names) {
      const bool is_known = std::any_of(taps.begin(), taps.end(), [&](const std::string& tap) {
        return name == tap || name == wire::leaf_of(tap);
      });
      if (!is_known) problems.push_back({"steps", name + ": no step or matrix of this name"});
    }
    refuse_if_any(kFunction, std::move(problems));
  }

  Shown run_;
  std::string text_, start_;  // as ShownCase has them; no text: the case was made of arrays
};

Traced trace_case(const std::string& text, const std::string& name,
                  const std::vector<std::string>& set, const std::vector<std::string>& hide,
                  const std::optional<std::string>& mask, std::optional<double> scale,
                  const std::optional<std::string>& empty_row) {
  const nb::gil_scoped_release others_may_run;
  return Traced(read_case(text, name, {set, hide, mask, scale, empty_row}));
}

Traced trace_arrays(nb::handle q, nb::handle k, nb::handle v, const Options* options,
                    const std::vector<std::string>& query_labels,
                    const std::vector<std::string>& key_labels, const std::string& name,
                    const std::string& title) {
  std::vector<Problem> problems = problems_of(options);
  const Array queries = read_array(q, "q", problems), keys = read_array(k, "k", problems),
              values = read_array(v, "v", problems);
  const nb::gil_scoped_release others_may_run;
  return Traced({case_of({queries, keys, values, query_labels, key_labels}, values_of(options),
                         name, title, std::move(problems)),
                 {},
                 {}});
}

std::string read_text(const std::string& path) {
  const std::vector<std::byte> bytes = read_bytes(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void write_text(const std::string& path, const std::string& text) {
  write_bytes(path, std::as_bytes(std::span(text)));
}

}  // namespace

void add_trace(nb::module_& module) {
  nb::class_<Printing>(module, "Printing", "How a page is printed.")
      .def(nb::init<>())
      .def_rw("decimals", &Printing::decimals)
      .def_rw("width", &Printing::width)
      .def_rw("percent", &Printing::is_percent)
      .def_rw("full", &Printing::is_full)
      .def_rw("nearest", &Printing::is_nearest)
      .def_rw("ascii", &Printing::is_ascii)
      .def_rw("math", &Printing::has_math)
      .def_rw("standalone", &Printing::is_standalone)
      .def_rw("steps", &Printing::steps)
      .def_rw("query", &Printing::query)
      .def_rw("head", &Printing::head);
  nb::class_<Traced>(module, "Trace", "A traced case; see glasshead.Trace.")
      .def_prop_ro("name", [](const Traced& self) { return self.shown().name; })
      .def_prop_ro("title", [](const Traced& self) { return self.shown().title; })
      .def_prop_ro("query_labels", [](const Traced& self) { return self.shown().query_labels; })
      .def_prop_ro("key_labels", [](const Traced& self) { return self.shown().key_labels; })
      .def("inputs", &Traced::inputs)
      .def("steps", &Traced::steps)
      .def("shape", &Traced::shape, nb::arg("tap"))
      .def("copy", &Traced::copy, nb::arg("tap"), nb::arg("out"))
      .def("page", &Traced::page, nb::arg("format"), nb::arg("printing"))
      .def("lesson", &Traced::lesson, nb::arg("page"))
      .def("explain", &Traced::explain, nb::arg("printing"))
      .def("diff", &Traced::diff, nb::arg("before"), nb::arg("format"), nb::arg("printing"))
      .def("by_hand", &Traced::by_hand, nb::arg("decimals"), nb::arg("is_shifted"),
           nb::arg("format"), nb::arg("printing"))
      .def("mistake", &Traced::mistake, nb::arg("name"), nb::arg("format"), nb::arg("printing"))
      .def("gradients", &Traced::gradients, nb::arg("format"), nb::arg("printing"))
      .def("diagnose", &Traced::diagnose, nb::arg("claims"))
      .def("write_numbers", &Traced::write_numbers, nb::arg("path"), nb::arg("is_npy"));
  module.def("trace_case", &trace_case, nb::arg("text"), nb::arg("name"), nb::arg("set"),
             nb::arg("hide"), nb::arg("mask").none(), nb::arg("scale").none(),
             nb::arg("empty_row").none());
  module.def("trace_arrays", &trace_arrays, nb::arg("q"), nb::arg("k"), nb::arg("v"),
             nb::arg("options").none(), nb::arg("query_labels"), nb::arg("key_labels"),
             nb::arg("name"), nb::arg("title"));
  module.def("read_text", &read_text, nb::arg("path"));
  module.def("write_text", &write_text, nb::arg("path"), nb::arg("text"));
}

}  // namespace glasshead::python
