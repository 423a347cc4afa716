#include "conformance/onnx_package.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "conformance/protobuf.h"
#include "glasshead/error.h"

namespace glasshead::conformance {
namespace {

namespace fs = std::filesystem;

// Far above any of the package's tests.
constexpr std::uintmax_t kLargestFile = std::uintmax_t{64} << 20;

std::vector<std::byte> read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw IoError("glasshead-conformance", {{path.string(), "cannot be opened"}});
  const std::uintmax_t size = fs::file_size(path);
  if (size > kLargestFile) {
    throw FormatError("glasshead-conformance", {{path.string(), "is larger than 64 MiB"}});
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (!file) throw IoError("glasshead-conformance", {{path.string(), "cannot be read"}});
  return bytes;
}

bool is_test(const fs::path& folder) { return fs::exists(folder / "model.onnx"); }

// Position of each graph input among the node's inputs; nullopt for an output or input that the
// node doesn't have.
std::optional<std::size_t> position(const std::vector<std::string>& names,
                                    const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

// The node as a case without tensors.
OnnxCase case_of(const std::string& name, const protobuf::Node& node) {
  OnnxCase c;
  c.name = name;
  c.op = node.op;
  c.domain = node.domain;
  for (const protobuf::Attribute& attribute : node.attributes) {
    if (attribute.type == 3) c.strings[attribute.name] = attribute.text;
    if (attribute.type == 1 || attribute.type == 2) c.numbers[attribute.name] = attribute.number;
  }
  c.inputs.resize(node.inputs.size());
  for (const std::string& output : node.outputs) c.outputs.push_back({output, std::nullopt});
  return c;
}

// Fills the tensors from one test_data_set; false if one of them is of a kind that isn't read.
bool load_tensors(const fs::path& set, const protobuf::Model& model, OnnxCase& c) {
  const protobuf::Node& node = model.nodes.front();
  for (std::size_t n = 0; n < model.inputs.size(); ++n) {
    const auto at = position(node.inputs, model.inputs[n]);
    const fs::path file = set / ("input_" + std::to_string(n) + ".pb");
    if (!at || !fs::exists(file)) return false;
    c.inputs[*at] = protobuf::parse_tensor(read_bytes(file));
    if (!c.inputs[*at]) return false;
  }
  for (std::size_t n = 0; n < model.outputs.size(); ++n) {
    const auto at = position(node.outputs, model.outputs[n]);
    const fs::path file = set / ("output_" + std::to_string(n) + ".pb");
    if (!at || !fs::exists(file)) return false;
    c.outputs[*at].tensor = protobuf::parse_tensor(read_bytes(file));
    if (!c.outputs[*at].tensor) return false;
  }
  return true;
}

CaseResult run_test(const fs::path& folder, const Selection& selection) {
  const std::string name = folder.filename().string();
  try {
    const protobuf::Model model = protobuf::parse_model(read_bytes(folder / "model.onnx"));
    if (model.nodes.size() != 1) return skipped(name, "models of more than one node");
    OnnxCase c = case_of(name, model.nodes.front());
    if (!knows_operator(c)) return skipped(name, "operators that are not part of this program");
    if (!load_tensors(folder / "test_data_set_0", model, c)) {
      return skipped(name, c.op + " with tensors that this program does not read");
    }
    return run_onnx_case(c, selection);
  } catch (const Error& error) {
    CaseResult verdict = named(name);
    verdict.add_refusal(error);
    return verdict;
  }
}

std::vector<fs::path> tests_in(const fs::path& folder) {
  if (is_test(folder)) return {folder};
  std::vector<fs::path> tests;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && is_test(entry.path())) tests.push_back(entry.path());
  }
  std::sort(tests.begin(), tests.end());
  return tests;
}

}  // namespace

bool is_onnx_package(const std::string& folder) {
  return fs::is_directory(folder) && !tests_in(folder).empty();
}

FolderReport run_onnx_package(const std::string& folder, const Selection& selection) {
  FolderReport report{folder, "onnx package", {}};
  for (const fs::path& test : tests_in(folder)) {
    const std::string name = test.filename().string();
    if (!selection.wants(name)) continue;
    report.cases.push_back(selection.is_list ? named(name) : run_test(test, selection));
  }
  return report;
}

}  // namespace glasshead::conformance
