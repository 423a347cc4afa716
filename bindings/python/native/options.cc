#include "python/native/options.h"

#include <utility>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace glasshead::python {

void Options::problem(const std::string& where, const std::string& what) {
  problems.push_back({where, what});
}

void Options::causal() { values.mask = values.mask & Mask::causal(); }

void Options::window(std::optional<index_t> left, std::optional<index_t> right) {
  values.mask = values.mask & Mask::window(left, right);
}

void Options::key_lengths(const std::vector<index_t>& lengths) {
  values.mask = values.mask & Mask::key_lengths(lengths);
}

void Options::segments(index_t batch, const std::vector<index_t>& query_ids,
                       const std::vector<index_t>& key_ids) {
  values.mask = values.mask & Mask::segments(batch, query_ids, key_ids);
}

void Options::prefix(const std::vector<index_t>& lengths) {
  values.mask = values.mask & Mask::prefix(lengths);
}

void Options::add_mask(Array array) {
  values.mask = values.mask & Mask::allowed(array.broadcast());
  held_.push_back(std::move(array));
}

void Options::add_bias(Array array) {
  values.bias = values.bias + Bias::dense(array.broadcast());
  held_.push_back(std::move(array));
}

void Options::mask(nb::handle object, const std::string& where) {
  Array array = read_array(object, where.c_str(), problems);
  if (array.is_there()) add_mask(std::move(array));
}

void Options::bias(nb::handle object, const std::string& where) {
  Array array = read_array(object, where.c_str(), problems);
  if (array.is_there()) add_bias(std::move(array));
}

void Options::attn_mask(nb::handle object) {
  Array array = read_array(object, "attn_mask", problems);
  if (!array.is_there()) return;
  if (array.dtype() == DType::i64)
    problem("attn_mask",
            "has dtype int64; booleans (True takes part) or floating-point numbers to add to the "
            "scores");
  else if (array.dtype() == DType::u8)
    add_mask(std::move(array));
  else
    add_bias(std::move(array));
}

void Options::alibi(const std::vector<double>& slopes, bool is_key_index) {
  values.bias = values.bias + Bias::alibi(slopes, is_key_index ? Bias::AlibiForm::key_index
                                                               : Bias::AlibiForm::distance);
}

void Options::t5(index_t buckets, index_t heads, const std::vector<double>& table,
                 bool is_bidirectional, index_t max_distance) {
  Bias::T5 term;
  term.buckets = buckets;
  term.heads = heads;
  term.table = table;
  term.is_bidirectional = is_bidirectional;
  term.max_distance = max_distance;
  values.bias = values.bias + Bias::t5(std::move(term));
}

const AttentionOptions& values_of(const Options* options) {
  static const AttentionOptions none;
  return options == nullptr ? none : options->values;
}

std::vector<Problem> problems_of(const Options* options) {
  return options == nullptr ? std::vector<Problem>() : options->problems;
}

void add_options(nb::module_& module) {
  nb::class_<Options>(module, "Options", "AttentionOptions, one keyword after another.")
      .def(nb::init<>())
      .def("problem", &Options::problem, nb::arg("where"), nb::arg("what"))
      .def(
          "scale", [](Options& options, double scale) { options.values.scale = scale; },
          nb::arg("scale"))
      .def(
          "softcap", [](Options& options, double softcap) { options.values.softcap = softcap; },
          nb::arg("softcap"))
      .def(
          "sinks",
          [](Options& options, const std::vector<double>& sinks) { options.values.sinks = sinks; },
          nb::arg("sinks"))
      .def(
          "query_start",
          [](Options& options, index_t position) { options.values.query_start = position; },
          nb::arg("position"))
      .def(
          "align",
          [](Options& options, bool is_end) {
            options.values.query_start = is_end ? Align::end : Align::start;
          },
          nb::arg("is_end"))
      .def(
          "empty_row",
          [](Options& options, bool is_error) {
            options.values.empty_row = is_error ? EmptyRow::error : EmptyRow::zero;
          },
          nb::arg("is_error"))
      .def(
          "dropout",
          [](Options& options, double p, std::uint64_t seed) {
            options.values.dropout = {p, seed};
          },
          nb::arg("p"), nb::arg("seed"))
      .def("causal", &Options::causal)
      .def("window", &Options::window, nb::arg("left").none(), nb::arg("right").none())
      .def("key_lengths", &Options::key_lengths, nb::arg("lengths"))
      .def("segments", &Options::segments, nb::arg("batch"), nb::arg("query_ids"),
           nb::arg("key_ids"))
      .def("prefix", &Options::prefix, nb::arg("lengths"))
      .def("mask", &Options::mask, nb::arg("array"), nb::arg("where"))
      .def("bias", &Options::bias, nb::arg("array"), nb::arg("where"))
      .def("attn_mask", &Options::attn_mask, nb::arg("array"))
      .def("alibi", &Options::alibi, nb::arg("slopes"), nb::arg("is_key_index"))
      .def("t5", &Options::t5, nb::arg("buckets"), nb::arg("heads"), nb::arg("table"),
           nb::arg("is_bidirectional"), nb::arg("max_distance"));
  module.def("alibi_slopes", &Bias::alibi_slopes, nb::arg("heads"),
             "The slopes of Press, Smith, Lewis 2022 for any number of heads.");
}

}  // namespace glasshead::python
