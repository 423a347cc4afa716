#include "model/parity.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/model_impl.h"

namespace glasshead::parity {

std::vector<Fixture> fixtures() {
  const std::string folder = GLASSHEAD_SOURCE_DIR "/tests/data/models/";
  const nlohmann::json index = nlohmann::json::parse(std::ifstream(folder + "index.json"));
  std::vector<Fixture> all;
  for (const nlohmann::json& entry : index["models"]) {
    Fixture& f = all.emplace_back();
    f.name = entry["name"];
    f.kind = entry["kind"];
    f.path = folder + entry["path"].get<std::string>();
    f.expected = folder + entry["expected"].get<std::string>();
    f.texts = entry["texts"];
    f.context = entry.value("context", index_t{0});
    f.unread = entry["unread"].get<std::vector<std::string>>();
    f.logits = index["tolerances"]["logits"];
    f.weights = index["tolerances"]["weights"];
    f.states = index["tolerances"]["states"];
  }
  return all;
}

bool has(const NamedTensors& expected, const std::string& name) {
  return std::any_of(expected.begin(), expected.end(),
                     [&](const auto& one) { return one.first == name; });
}

const FileTensor& get(const NamedTensors& expected, const std::string& name) {
  for (const auto& [key, tensor] : expected)
    if (key == name) return tensor;
  throw std::runtime_error("no expected array " + name);
}

std::vector<index_t> ids_of(const FileTensor& tensor) {
  std::vector<index_t> ids;
  for (index_t n = 0; n < tensor.size(); ++n) ids.push_back(static_cast<index_t>(tensor.load(n)));
  return ids;
}

namespace {

bool ends_with(const std::string& text, const char* end) { return text.ends_with(end); }

// "in.2", "weights.0", "out" of a stack as the tap's name.
std::string tap_of(std::string name, const std::string& stack, const std::string& prefix,
                   index_t layers) {
  if (name == "out") return stack + "." + std::to_string(layers - 1) + ".out";
  if (name == "final") return prefix + "final_norm";
  const std::size_t dot = name.find('.');
  const std::string what = name.substr(0, dot), layer = name.substr(dot + 1);
  const std::string part = what == "in"              ? "in"
                           : what == "weights"       ? "self.weights"
                           : what == "cross_weights" ? "cross.weights"
                           : what == "keys"          ? "self.k"
                                                     : "?" + what;
  return stack + "." + layer + "." + part;
}

// Arrays that are no numbers of a run.
bool is_given(const std::string& name) {
  for (const char* given :
       {"ids", "types", "decoder_ids", "greedy", "margins", "beams", "beam_scores", "embedding"})
    if (name == given) return true;
  return false;
}

class Comparison {
 public:
  Comparison(const Model& model, const Fixture& fixture, const NamedTensors& expected)
      : fixture_(fixture), expected_(expected), session_(model) {}

  Worst run() {
    for (index_t t = 0; t < fixture_.texts; ++t) text(std::to_string(t) + ".");
    return worst_;
  }

 private:
  struct Array {
    std::string name, tap;  // in the file, and ours
  };

  std::string tap_name(const std::string& name) const {
    const Model& model = session_.model();
    if (name == "logits") return name;
    if (model.kind() == ModelKind::encoder_decoder) {
      const std::size_t dot = name.find('.');
      const std::string stack = name.substr(0, dot);
      const model::Description& description = model.impl().description;
      const auto& layers =
          (stack == "encoder" ? *description.encoder : *description.decoder).layers;
      return tap_of(name.substr(dot + 1), stack, stack + ".", static_cast<index_t>(layers.size()));
    }
    return tap_of(name, model.kind() == ModelKind::encoder ? "encoder" : "decoder", "",
                  model.layers());
  }

  void text(const std::string& prefix) {
    std::vector<Array> arrays;
    std::vector<Tap> taps;
    for (const auto& [name, tensor] : expected_) {
      if (!name.starts_with(prefix)) continue;
      const std::string rest = name.substr(prefix.size());
      if (is_given(rest)) continue;
      arrays.push_back({name, tap_name(rest)});
      taps.push_back({.name = arrays.back().tap});
    }
    Taps seen(taps);
    run_text(prefix, seen);
    const NamedTensors results = seen.results();
    for (const Array& array : arrays) compare(array, results);
    if (!has(expected_, prefix + "embedding")) return;
    const Tensor<float, 2> ours = session_.embed({text_of(prefix)});
    std::vector<double> values(ours.data(), ours.data() + ours.size());
    differ(prefix + "embedding", values, fixture_.logits, true);
  }

  Session::Text text_of(const std::string& prefix) const {
    Session::Text text{.ids = ids_of(get(expected_, prefix + "ids"))};
    if (has(expected_, prefix + "types")) text.segments = ids_of(get(expected_, prefix + "types"));
    return text;
  }

  void run_text(const std::string& prefix, Taps& seen) {
    const Session::Text text = text_of(prefix);
    switch (session_.model().kind()) {
      case ModelKind::decoder:
        session_.truncate(0, 0);
        session_.forward({{.ids = text.ids}}, LogitRows::all, &seen);
        return;
      case ModelKind::encoder:
        session_.encode({text}, &seen);
        return;
      case ModelKind::encoder_decoder: {
        const index_t sequence = session_.read(text.ids, &seen);
        session_.forward({{sequence, ids_of(get(expected_, prefix + "decoder_ids"))}},
                         LogitRows::all, &seen);
        session_.drop(sequence);
      }
    }
  }

  void compare(const Array& array, const NamedTensors& results) {
    const FileTensor& ours = get(results, array.tap);
    std::vector<double> values(static_cast<std::size_t>(ours.size()));
    if (ends_with(array.tap, ".k")) {  // [kv_heads, n, d_k] as [n, kv_heads·d_k]
      const index_t heads = ours.shape[0], n = ours.shape[1], d = ours.shape[2];
      for (index_t h = 0; h < heads; ++h)
        for (index_t i = 0; i < n; ++i)
          for (index_t e = 0; e < d; ++e)
            values[static_cast<std::size_t>((i * heads + h) * d + e)] =
                ours.load((h * n + i) * d + e);
    } else {
      for (index_t e = 0; e < ours.size(); ++e) values[static_cast<std::size_t>(e)] = ours.load(e);
    }
    if (ends_with(array.tap, ".weights"))
      differ(array.name, values, fixture_.weights, false);
    else
      differ(array.name, values, array.tap == "logits" ? fixture_.logits : fixture_.states, true);
  }

  void differ(const std::string& name, const std::vector<double>& ours, double tolerance,
              bool is_relative) {
    const FileTensor& theirs = get(expected_, name);
    ++worst_.arrays;
    double largest = 0, error = 0;
    if (theirs.size() != static_cast<index_t>(ours.size())) {
      error = HUGE_VAL;
    } else {
      for (std::size_t n = 0; n < ours.size(); ++n) {
        const double expected = theirs.load(static_cast<index_t>(n));
        largest = std::max(largest, std::fabs(expected));
        const double difference = std::fabs(ours[n] - expected);
        if (!(difference <= error)) error = difference;  // a NaN stays
      }
    }
    error /= is_relative ? tolerance * largest : tolerance;
    if (error <= worst_.error) return;
    worst_.error = std::isnan(error) ? HUGE_VAL : error;
    worst_.where = name;
  }

  const Fixture& fixture_;
  const NamedTensors& expected_;
  Session session_;
  Worst worst_;
};

}  // namespace

Worst compare(const Model& model, const Fixture& fixture, const NamedTensors& expected) {
  return Comparison(model, fixture, expected).run();
}

namespace {

TEST(Parity, every_family_computes_what_transformers_does) {
  for (const Fixture& fixture : fixtures()) {
    SCOPED_TRACE(fixture.name);
    const Model model = Model::load(fixture.path, {.context = fixture.context});
    const Worst worst = compare(model, fixture, read_safetensors(fixture.expected));
    EXPECT_LE(worst.error, 1) << worst.where;
    EXPECT_GE(worst.arrays, 6);
    std::printf("%-24s %3d arrays, worst %.4f of the tolerance (%s)\n", fixture.name.c_str(),
                worst.arrays, worst.error, worst.where.c_str());
  }
}

// From the first token whose lead over the second best is within twice the tolerance on, either may
// follow.
std::size_t sure(const FileTensor& margins, double tolerance) {
  std::size_t n = 0;
  while (static_cast<index_t>(n) < margins.size() &&
         margins.load(static_cast<index_t>(n)) > 2 * tolerance)
    ++n;
  return n;
}

void expect_begins(const std::vector<index_t>& ours, const std::vector<index_t>& theirs,
                   std::size_t count) {
  ASSERT_GE(ours.size(), std::min(count, theirs.size()));
  for (std::size_t n = 0; n < std::min(count, theirs.size()); ++n) EXPECT_EQ(ours[n], theirs[n]);
}

TEST(Parity, greedy_texts_are_the_same) {
  for (const Fixture& fixture : fixtures()) {
    const NamedTensors expected = read_safetensors(fixture.expected);
    if (!has(expected, "0.greedy")) continue;
    SCOPED_TRACE(fixture.name);
    const Model model = Model::load(fixture.path, {.context = fixture.context});
    for (index_t t = 0; t < fixture.texts; ++t) {
      const std::string prefix = std::to_string(t) + ".";
      const std::vector<index_t> theirs = ids_of(get(expected, prefix + "greedy")),
                                 text = ids_of(get(expected, prefix + "ids"));
      Session session(model);
      GenerateOptions options{.max_tokens = static_cast<index_t>(theirs.size())};
      options.stops_at_eos = false;
      std::vector<index_t> prompt = text;
      if (model.kind() == ModelKind::encoder_decoder) {
        options.sequence = session.read(text);
        prompt = {0};
      }
      const FileTensor& logits = get(expected, prefix + "logits");
      double largest = 0;
      for (index_t n = 0; n < logits.size(); ++n)
        largest = std::max(largest, std::fabs(logits.load(n)));
      expect_begins(generate(session, prompt, options).ids, theirs,
                    sure(get(expected, prefix + "margins"), fixture.logits * largest));
    }
  }
}

TEST(Parity, beams_are_the_same) {
  for (const Fixture& fixture : fixtures()) {
    const NamedTensors expected = read_safetensors(fixture.expected);
    if (!has(expected, "0.beams")) continue;
    SCOPED_TRACE(fixture.name);
    const Model model = Model::load(fixture.path, {.context = fixture.context});
    for (index_t t = 0; t < fixture.texts; ++t) {
      const std::string prefix = std::to_string(t) + ".";
      Session session(model);
      const index_t sequence = session.read(ids_of(get(expected, prefix + "ids")));
      const std::vector<Beam> ours =
          beam_search(session, {0}, {.beams = 3, .max_tokens = 8, .sequence = sequence});
      const FileTensor& theirs = get(expected, prefix + "beams");
      const FileTensor& scores = get(expected, prefix + "beam_scores");
      ASSERT_EQ(ours.size(), 3U);
      for (std::size_t n = 0; n < 3; ++n) {
        const auto steps = static_cast<std::size_t>(theirs.shape[1]);
        std::vector<index_t> ids = ours[n].ids;
        const auto length = static_cast<double>(ids.size() + (ours[n].is_finished ? 1 : 0));
        EXPECT_NEAR(ours[n].log_probability / length, scores.load(static_cast<index_t>(n)), 1e-3);
        if (ours[n].is_finished) ids.push_back(1);
        ids.resize(steps, 0);
        for (std::size_t i = 0; i < steps; ++i)
          EXPECT_EQ(ids[i], theirs.load(static_cast<index_t>(n * steps + i))) << n << ", " << i;
      }
    }
  }
}

// The checkpoint's files as one in memory, whose numbers can be changed.
struct Changeable {
  explicit Changeable(const Fixture& fixture) {
    const formats::Checkpoint files = formats::Checkpoint::open(fixture.path);
    NamedTensors tensors;
    for (const formats::StoredTensor& tensor : files.tensors())
      tensors.emplace_back(tensor.name, FileTensor{dtype_named(name(tensor.type)).value(),
                                                   tensor.shape,
                                                   {tensor.bytes.begin(), tensor.bytes.end()}});
    bytes = safetensors_bytes(tensors);
    const std::vector<std::byte> config = files.beside("config.json");
    std::vector<Problem> problems;
    const bool is_read = formats::Checkpoint::parse_safetensors(
        bytes, {reinterpret_cast<const char*>(config.data()), config.size()}, checkpoint, problems);
    EXPECT_TRUE(is_read) << (problems.empty() ? "" : problems[0].what);
  }

  // All numbers of a tensor times `factor`, and back again.
  void scale(const formats::StoredTensor& tensor, double factor) {
    const DType type = dtype_named(name(tensor.type)).value();
    std::byte* const data = bytes.data() + (tensor.bytes.data() - bytes.data());
    const auto count = static_cast<index_t>(tensor.bytes.size() / size_of(type));
    if (factor != 1) before.assign(data, data + tensor.bytes.size());
    if (factor == 1) std::copy(before.begin(), before.end(), data);
    for (index_t n = 0; factor != 1 && n < count; ++n) {
      std::vector<std::byte> aligned(data + n * static_cast<index_t>(size_of(type)),
                                     data + (n + 1) * static_cast<index_t>(size_of(type)));
      store_element(aligned.data(), type, 0, factor * load_element(aligned.data(), type, 0));
      std::copy(aligned.begin(), aligned.end(), data + n * static_cast<index_t>(size_of(type)));
    }
  }

  std::vector<std::byte> bytes, before;
  formats::Checkpoint checkpoint;
};

bool has_name(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Masks and position numbers that old files hold beside the weights.
bool is_buffer(const std::string& name) {
  return name.ends_with(".attn.bias") || name.ends_with("position_ids");
}

// So that no mistake in the wiring of a tensor could pass: every one, changed by a tenth, must be
// seen.
TEST(Parity, every_tensor_changed_is_found) {
  int changed = 0;
  for (const Fixture& fixture : fixtures()) {
    if (fixture.path.ends_with(".gguf")) continue;  // the same numbers as the folder's
    SCOPED_TRACE(fixture.name);
    const NamedTensors expected = read_safetensors(fixture.expected);
    Changeable files(fixture);
    for (const formats::StoredTensor& tensor : files.checkpoint.tensors()) {
      if (is_buffer(tensor.name) || has_name(fixture.unread, tensor.name)) continue;
      files.scale(tensor, 1.1);
      std::string refused;
      try {
        const Worst worst =
            compare(model_of(files.checkpoint, {.context = fixture.context}), fixture, expected);
        EXPECT_GT(worst.error, 1) << tensor.name;
      } catch (const FormatError&) {
        // a stored copy that no longer equals its twin
      }
      ++changed;
      files.scale(tensor, 1);
    }
    const Worst back =
        compare(model_of(files.checkpoint, {.context = fixture.context}), fixture, expected);
    EXPECT_LE(back.error, 1) << back.where;
  }
  EXPECT_GT(changed, 20);
}

}  // namespace
}  // namespace glasshead::parity
