// A tiny model with something wrong in its files: another engine's mistake, made without any code
// of the search, since a wrong configuration or a wrong weight is read by the ordinary loader.
#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "glasshead/model.h"
#include "glasshead/port.h"

namespace glasshead::port_tests {

using Json = nlohmann::ordered_json;

inline std::string fixture(const std::string& name) {
  return std::string(GLASSHEAD_SOURCE_DIR "/tests/data/models/") + name;
}

// A weight's numbers, [rows, columns].
struct Weight {
  FileTensor& tensor;
  index_t rows() const { return tensor.shape[0]; }
  index_t columns() const { return tensor.shape.size() > 1 ? tensor.shape[1] : 1; }
  double at(index_t r, index_t c = 0) const { return tensor.load(r * columns() + c); }
  void set(index_t r, index_t c, double x) {
    store_element(tensor.bytes.data(), tensor.dtype, r * columns() + c, x);
  }
  void each(const std::function<double(double)>& change) {
    for (index_t n = 0; n < tensor.size(); ++n)
      store_element(tensor.bytes.data(), tensor.dtype, n, change(tensor.load(n)));
  }
};

struct Edits {
  std::function<void(Json&)> config = nullptr;
  // Every weight, by its name in the file.
  std::function<void(const std::string&, Weight)> weights = nullptr;
  // The whole file, for what moves numbers between weights.
  std::function<void(NamedTensors&)> file = nullptr;
};

inline Model edited(const std::string& name, const Edits& edits) {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::temp_directory_path() / ("glasshead-port-" + std::to_string(::getpid()) + "-" + name);
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::ifstream in(fixture(name) + "/config.json");
  Json config = Json::parse(in);
  if (edits.config) edits.config(config);
  std::ofstream(folder / "config.json") << config.dump(1);
  NamedTensors tensors;
  for (const auto& [key, stored] : read_safetensors(fixture(name) + "/model.safetensors")) {
    FileTensor wide = make_tensor(DType::f32, stored.shape);  // so that edits are exact
    for (index_t n = 0; n < stored.size(); ++n)
      store_element(wide.bytes.data(), DType::f32, n, stored.load(n));
    tensors.emplace_back(key, std::move(wide));
  }
  if (edits.weights)
    for (auto& [key, tensor] : tensors) edits.weights(key, {tensor});
  if (edits.file) edits.file(tensors);
  write_safetensors((folder / "model.safetensors").string(), tensors);
  const Model model = Model::load(folder.string());
  fs::remove_all(folder);
  return model;
}

inline FileTensor& tensor(NamedTensors& tensors, const std::string& name) {
  for (auto& [key, one] : tensors)
    if (key == name) return one;
  throw std::runtime_error("no tensor " + name);
}

inline PortText text_for(const Model& model) {
  PortText text{.ids = {5, 17, 42, 8, 33, 61, 12, 7, 50, 29}};
  if (model.kind() == ModelKind::encoder_decoder) text.decoder_ids = {0, 9, 31, 44, 18, 60, 3};
  return text;
}

// What a model computes at the places whose names `wants` wants.
inline NamedTensors dumped(const Model& model, const PortText& text,
                           const std::function<bool(const std::string&)>& wants) {
  std::vector<Tap> taps;
  for (const std::string& name : model.tap_names())
    if (wants(name)) taps.push_back({.name = name});
  Taps seen(taps);
  Session session(model);
  switch (model.kind()) {
    case ModelKind::decoder:
      session.forward({{.ids = text.ids}}, LogitRows::all, &seen);
      break;
    case ModelKind::encoder:
      session.encode({{.ids = text.ids, .segments = text.segments}}, &seen);
      break;
    case ModelKind::encoder_decoder:
      session.forward({{session.read(text.ids, &seen), text.decoder_ids}}, LogitRows::all, &seen);
  }
  return seen.results();
}

inline bool everything(const std::string&) { return true; }
// What programs that keep hidden states have.
inline bool hidden_states(const std::string& name) {
  return name.ends_with("embedding") || name.ends_with(".in") || name.ends_with("final_norm") ||
         name == "logits" ||
         (name.ends_with(".out") && !name.ends_with("self.out") && !name.ends_with("ffn.out") &&
          !name.ends_with("cross.out"));
}

// The report on what the edited model computes, against the right one.
inline PortReport report_on(const std::string& name, const Edits& edits,
                            const std::function<bool(const std::string&)>& wants = everything) {
  const Model right = Model::load(fixture(name)), wrong = edited(name, edits);
  const PortText text = text_for(right);
  return diagnose_port(right, text, dumped(wrong, text, wants));
}

// "rope-base:10000", or what was said instead.
inline std::string cause(const PortReport& report) {
  if (report.is_right()) return "right";
  if (report.findings.front().causes.empty()) return "unexplained";
  return report.findings.front().causes.front().name();
}

}  // namespace glasshead::port_tests
