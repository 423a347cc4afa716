// Cases in the shape of ONNX nodes: from the golden folders and from the official package's own
// test data.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "conformance/golden.h"
#include "conformance/report.h"

namespace glasshead::conformance {

struct OnnxCase {
  std::string name;
  std::string op;  // "Attention"
  std::string domain;
  std::map<std::string, double> numbers;          // attributes
  std::map<std::string, std::string> strings;     // attributes
  std::vector<std::optional<FileTensor>> inputs;  // by position; absent optional ones are empty
  struct Output {
    std::string name;
    std::optional<FileTensor> tensor;
  };
  std::vector<Output> outputs;  // by position

  double number(const std::string& key, double otherwise) const;
  std::string string(const std::string& key, const std::string& otherwise) const;
  // An input that must be there; throws FormatError.
  const FileTensor& input(std::size_t position) const;
  bool has_input(std::size_t position) const;
  bool wants_output(std::size_t position) const;
};

// Runs it by its operator, attention with every engine: skipped, with the operator named, where
// there is none.
CaseResult run_onnx_case(const OnnxCase& c, const Selection& selection);
bool knows_operator(const OnnxCase& c);

struct OnnxOutput {
  FileTensor tensor;
  // How large the terms are that an entry is the sum of, where they may cancel; empty: as large as
  // the entry.
  std::vector<double> magnitude = {};
};
// By position.
using OnnxOutputs = std::vector<OnnxOutput>;
OnnxOutputs run_onnx_attention(const OnnxCase& c, const Engine& engine);
// RotaryEmbedding, RMSNormalization, LayerNormalization, Softmax, LogSoftmax, Gelu, Swish.
OnnxOutputs run_onnx_normalization(const OnnxCase& c);
OnnxOutputs run_onnx_rotary(const OnnxCase& c);
OnnxOutputs run_onnx_softmax(const OnnxCase& c);
OnnxOutputs run_onnx_activation(const OnnxCase& c);

FolderReport run_onnx_attention_folder(const Golden& golden, const Selection& selection);
FolderReport run_onnx_other_folder(const Golden& golden, const Selection& selection);

}  // namespace glasshead::conformance
