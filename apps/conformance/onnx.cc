#include "conformance/onnx.h"

#include <algorithm>
#include <cmath>

#include "glasshead/error.h"

namespace glasshead::conformance {
namespace {

using nlohmann::json;
using Run = OnnxOutputs (*)(const OnnxCase&);

const std::map<std::string, Run>& operators() {
  static const std::map<std::string, Run> table{
      {"RotaryEmbedding", run_onnx_rotary},
      {"RMSNormalization", run_onnx_normalization},
      {"LayerNormalization", run_onnx_normalization},
      {"Softmax", run_onnx_softmax},
      {"LogSoftmax", run_onnx_softmax},
      {"Gelu", run_onnx_activation},
      {"Swish", run_onnx_activation},
  };
  return table;
}

constexpr const char* kAttention = "Attention";

// Attention's expected outputs are f64 results rounded once: a path that computes in f32 gets 4
// ulp, one that ends in f16 (computed in f32) 1 ulp. The neighbours' are f32 results of ONNX's own
// reference, as its folder says (float64_reference), and hold the same where nothing cancels; where
// terms cancel, as in a rotation or a norm with a bias, they are only right to 4 ulp of the terms.
Tolerance tolerance(const OnnxOutput& got, const Array& expected) {
  const DType type = got.tensor.dtype;
  const double count = type == DType::f16 || type == DType::bf16 ? 1 : 4;
  return {type, [count, type, &got, &expected](std::size_t n) {
            const double size = std::fabs(expected.values[n]);
            const bool may_cancel = n < got.magnitude.size() && got.magnitude[n] > size;
            return count * ulp(may_cancel ? got.magnitude[n] : size, type);
          }};
}

void read_attributes(const json& attributes, OnnxCase& c) {
  for (const auto& [key, value] : attributes.items()) {
    if (value.is_string()) {
      c.strings[key] = value.get<std::string>();
    } else {
      c.numbers[key] = number_of(value);
    }
  }
}

// Tensors by name, put in the order of `names`.
std::vector<std::optional<FileTensor>> in_order(const Golden& golden, const json& references,
                                                const std::vector<std::string>& names) {
  std::vector<std::optional<FileTensor>> tensors(names.size());
  for (const json& reference : references) {
    const std::string name = reference.at("name");
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) {
      throw FormatError("glasshead-conformance",
                        {{name, "is not among the node's inputs and outputs"}});
    }
    tensors[static_cast<std::size_t>(at - names.begin())] = golden.load(reference);
  }
  return tensors;
}

OnnxCase load(const Golden& golden, const json& entry, const std::vector<std::string>& input_names,
              const std::vector<std::string>& output_names) {
  OnnxCase c;
  c.name = entry.at("name");
  c.op = entry.value("op", "Attention");
  c.domain = entry.value("domain", "");
  read_attributes(entry.at("attributes"), c);
  c.inputs = in_order(golden, entry.at("inputs"), input_names);
  auto outputs = in_order(golden, entry.at("outputs"), output_names);
  for (std::size_t n = 0; n < output_names.size(); ++n) {
    c.outputs.push_back({output_names[n], std::move(outputs[n])});
  }
  return c;
}

}  // namespace

double OnnxCase::number(const std::string& key, double otherwise) const {
  const auto found = numbers.find(key);
  return found == numbers.end() ? otherwise : found->second;
}

std::string OnnxCase::string(const std::string& key, const std::string& otherwise) const {
  const auto found = strings.find(key);
  return found == strings.end() ? otherwise : found->second;
}

bool OnnxCase::has_input(std::size_t position) const {
  return position < inputs.size() && inputs[position].has_value();
}

bool OnnxCase::wants_output(std::size_t position) const {
  return position < outputs.size() && outputs[position].tensor.has_value();
}

const FileTensor& OnnxCase::input(std::size_t position) const {
  if (!has_input(position)) {
    throw FormatError("glasshead-conformance",
                      {{name, op + " needs input " + std::to_string(position)}});
  }
  return *inputs[position];
}

bool knows_operator(const OnnxCase& c) {
  return (c.domain.empty() || c.domain == "ai.onnx") &&
         (c.op == kAttention || operators().contains(c.op));
}

namespace {

void compare_outputs(const OnnxCase& c, const OnnxOutputs& got, const std::string& run,
                     CaseResult& verdict) {
  for (std::size_t n = 0; n < c.outputs.size(); ++n) {
    if (!c.outputs[n].tensor) continue;
    const Array expected = widened(*c.outputs[n].tensor);
    const std::string& output = c.outputs[n].name;
    verdict.add(n < got.size()
                    ? compare(output, widened(got[n].tensor), expected, tolerance(got[n], expected))
                    : in_words(output, "is not computed"),
                run + name(c.outputs[n].tensor->dtype));
  }
}

}  // namespace

CaseResult run_onnx_case(const OnnxCase& c, const Selection& selection) {
  CaseResult verdict = named(c.name);
  if (!knows_operator(c))
    return skipped(c.name, "operator " + c.op + " is not part of this program");
  try {
    if (c.op == kAttention) {
      for (const Engine& engine : selection.engines)
        compare_outputs(c, run_onnx_attention(c, engine), engine.name + " ", verdict);
      return verdict;
    }
    if (!selection.has_steps())
      return skipped(c.name, "the fused path has no part in operator " + c.op);
    compare_outputs(c, operators().at(c.op)(c), "", verdict);
  } catch (const Error& error) {
    verdict.add_refusal(error);
  }
  return verdict;
}

FolderReport run_onnx_attention_folder(const Golden& golden, const Selection& selection) {
  FolderReport report{golden.folder(), golden.format(), {}};
  for (const json& entry : golden.index().at("cases")) {
    if (!selection.wants(entry.at("name"))) continue;
    report.cases.push_back(
        selection.is_list ? named(entry.at("name"))
                          : run_onnx_case(load(golden, entry, golden.index().at("canonical_inputs"),
                                               golden.index().at("canonical_outputs")),
                                          selection));
  }
  return report;
}

FolderReport run_onnx_other_folder(const Golden& golden, const Selection& selection) {
  FolderReport report{golden.folder(), golden.format(), {}};
  for (const json& entry : golden.index().at("cases")) {
    if (!selection.wants(entry.at("name"))) continue;
    report.cases.push_back(
        selection.is_list
            ? named(entry.at("name"))
            : run_onnx_case(load(golden, entry, entry.at("node_inputs"), entry.at("node_outputs")),
                            selection));
  }
  return report;
}

}  // namespace glasshead::conformance
