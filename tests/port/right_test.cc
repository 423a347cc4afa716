// Right numbers of somebody else, of every family: nothing is called wrong.
#include <algorithm>
#include <cmath>

#include "edited.h"

namespace glasshead::port_tests {
namespace {

struct Recorded {
  std::string name, path;
  index_t context;
  NamedTensors expected;
};

// What Hugging Face transformers computes with the tiny models (tests/data/models/README.md).
std::vector<Recorded> recorded() {
  std::ifstream in(fixture("index.json"));
  const Json index = Json::parse(in);
  std::vector<Recorded> all;
  for (const Json& entry : index["models"])
    all.push_back({entry["name"].get<std::string>(), fixture(entry["path"].get<std::string>()),
                   entry.value("context", index_t{0}),
                   read_safetensors(fixture(entry["expected"].get<std::string>()))});
  return all;
}

// "0.in.2", "0.decoder.weights.1" of a text as the place's name; "" for what is no place.
std::string place_of(const std::string& name, const Model& model) {
  std::string rest = name;
  const bool has_both = model.kind() == ModelKind::encoder_decoder;
  std::string stack = model.kind() == ModelKind::encoder ? "encoder" : "decoder";
  if (has_both && rest.find("coder.") != std::string::npos) {
    stack = rest.substr(0, 7);
    rest = rest.substr(8);
  }
  const std::string layer = rest.substr(rest.rfind('.') + 1);
  if (rest == "logits") return rest;
  if (rest == "final") return has_both ? stack + ".final_norm" : "final_norm";
  if (rest.starts_with("in.")) return stack + "." + layer + ".in";
  if (rest.starts_with("weights.")) return stack + "." + layer + ".self.weights";
  if (rest.starts_with("cross_weights.")) return stack + "." + layer + ".cross.weights";
  if (rest.starts_with("keys.")) return stack + "." + layer + ".self.k";
  return "";
}

PortText text_of_recorded(const NamedTensors& expected) {
  NamedTensors ids;
  for (const auto& [name, tensor] : expected)
    if (name.starts_with("0.")) ids.emplace_back(name.substr(2), tensor);
  return text_of(ids);
}

NamedTensors places_of_recorded(const NamedTensors& expected, const Model& model) {
  NamedTensors places;
  for (const auto& [name, tensor] : expected) {
    const std::string place = name.starts_with("0.") ? place_of(name.substr(2), model) : "";
    if (!place.empty()) places.emplace_back(place, tensor);
  }
  return places;
}

FileTensor narrowed(const FileTensor& wide, DType type) {
  FileTensor narrow = make_tensor(type, wide.shape);
  for (index_t n = 0; n < wide.size(); ++n)
    store_element(narrow.bytes.data(), type, n, wide.load(n));
  return narrow;
}

TEST(PortRight, transformers_numbers_of_every_family_are_right) {
  int places = 0;
  double worst = 0;
  for (const Recorded& one : recorded()) {
    const Model model = Model::load(one.path, {.context = one.context});
    const PortReport report = diagnose_port(model, text_of_recorded(one.expected),
                                            places_of_recorded(one.expected, model));
    EXPECT_TRUE(report.is_right()) << one.name << "\n" << port_text(report);
    EXPECT_GE(report.places.size(), 3u) << one.name;
    places += static_cast<int>(report.places.size());
    for (const PortPlace& place : report.places) worst = std::max(worst, place.error);
  }
  EXPECT_GT(places, 200);
  // The tolerance is ten times what is seen here and more: f32 against f64 of small models.
  EXPECT_LT(worst, 5e-6);
}

TEST(PortRight, numbers_of_a_narrower_type_are_judged_by_its_rounding) {
  for (const DType type : {DType::bf16, DType::f16})
    for (const Recorded& one : recorded()) {
      const Model model = Model::load(one.path, {.context = one.context});
      NamedTensors places = places_of_recorded(one.expected, model);
      for (auto& [name, tensor] : places) tensor = narrowed(tensor, type);
      const PortReport report = diagnose_port(model, text_of_recorded(one.expected), places);
      EXPECT_EQ(report.arithmetic, type);
      EXPECT_TRUE(report.is_right()) << one.name << "\n" << port_text(report);
    }
}

TEST(PortRight, scaled_logits_of_t5_are_a_missing_scale) {
  const Model model = Model::load(fixture("t5"));
  NamedTensors places = dumped(model, text_for(model), everything);
  FileTensor& logits = tensor(places, "logits");
  for (index_t n = 0; n < logits.size(); ++n)
    store_element(logits.bytes.data(), DType::f32, n, logits.load(n) * std::sqrt(24.0));
  const PortReport report = diagnose_port(model, text_for(model), places);
  EXPECT_EQ(cause(report), "head-scale-missing") << port_text(report);
  EXPECT_EQ(report.findings.front().place.name, "logits");
}

TEST(PortRight, a_factor_that_nothing_explains_is_told) {
  const Model model = Model::load(fixture("llama"));
  NamedTensors places = dumped(model, text_for(model), everything);
  FileTensor& out = tensor(places, "decoder.1.ffn.out");
  for (index_t n = 0; n < out.size(); ++n)
    store_element(out.bytes.data(), DType::f32, n, out.load(n) * 1.25);
  const PortReport report = diagnose_port(model, text_for(model), places);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_TRUE(report.findings[0].causes.empty()) << port_text(report);
  ASSERT_FALSE(report.findings[0].facts.empty());
  EXPECT_EQ(report.findings[0].facts[0], "every number is 1.25 times the right one");
}

TEST(PortRight, not_a_number_is_wrong_and_has_no_name) {
  const Model model = Model::load(fixture("llama"));
  NamedTensors places = dumped(model, text_for(model), everything);
  store_element(tensor(places, "decoder.0.self.v").bytes.data(), DType::f32, 7, std::nan(""));
  const PortReport report = diagnose_port(model, text_for(model), places);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].place.name, "decoder.0.self.v");
  EXPECT_EQ(report.findings[0].place.error, HUGE_VAL);
  EXPECT_TRUE(report.findings[0].causes.empty());
  EXPECT_EQ(report.findings[0].facts[0], "1 of 240 numbers are NaN or infinite");
}

// Where q, k and v are theirs and right, the doctor's catalogue knows more of what can be wrong.

// Softmax over the queries instead of the keys, [heads, tokens, d]: columns of the weights add
// to 1.
FileTensor out_by_columns(const FileTensor& q, const FileTensor& k, const FileTensor& v) {
  FileTensor out = q;
  const index_t n = q.shape[1], d = q.shape[2];
  for (index_t h = 0; h < q.shape[0]; ++h) {
    const index_t g = h / (q.shape[0] / k.shape[0]);
    const auto score = [&](index_t i, index_t j) {
      double s = 0;
      for (index_t e = 0; e < d; ++e)
        s += q.load((h * n + i) * d + e) * k.load((g * n + j) * d + e);
      return std::exp(s / std::sqrt(static_cast<double>(d)));
    };
    for (index_t i = 0; i < n; ++i)
      for (index_t e = 0; e < d; ++e) {
        double sum = 0;
        for (index_t j = 0; j <= i; ++j) {
          double column = 0;
          for (index_t r = j; r < n; ++r) column += score(r, j);
          sum += score(i, j) / column * v.load((g * n + j) * d + e);
        }
        store_element(out.bytes.data(), DType::f32, (h * n + i) * d + e, sum);
      }
  }
  return out;
}

bool is_weights_or_lse(const std::string& name) {
  return name.ends_with("weights") || name.ends_with("lse");
}

// What a model computes whose attention is wrong so in these layers.
NamedTensors by_columns(const Model& model, const std::vector<index_t>& layers) {
  Session session(model);
  std::vector<Change> changes;
  const auto run = [&](std::vector<Tap> taps) {
    Taps seen(std::move(taps));
    session.truncate(0, 0);
    session.change(changes);
    session.forward({{.ids = text_for(model).ids}}, LogitRows::all, &seen);
    return seen.results();
  };
  for (const index_t layer : layers) {
    const std::string self = "decoder." + std::to_string(layer) + ".self.";
    NamedTensors seen = run({{.name = self + "q"}, {.name = self + "k"}, {.name = self + "v"}});
    changes.push_back(
        Patch{self + "out", out_by_columns(tensor(seen, self + "q"), tensor(seen, self + "k"),
                                           tensor(seen, self + "v"))});
  }
  std::vector<Tap> all;
  for (const std::string& name : model.tap_names())
    if (!is_weights_or_lse(name)) all.push_back({.name = name});
  return run(std::move(all));
}

TEST(PortRight, attention_of_right_q_k_v_is_given_to_the_doctor) {
  const Model model = Model::load(fixture("llama"));
  const PortReport report = diagnose_port(model, text_for(model), by_columns(model, {0, 1}));
  EXPECT_EQ(cause(report), "softmax-columns") << port_text(report);
  // It is one mistake, found in both layers; the rest is right with it.
  EXPECT_EQ(report.findings.size(), 1u) << port_text(report);
  const PortCause& found = report.findings[0].causes.front();
  EXPECT_TRUE(found.is_doctors);
  EXPECT_EQ(found.where, "in layer 0 to layer 1");
  EXPECT_TRUE(report.explains_everything);
  std::size_t behind = 0;  // layer 0's out and all that follows it
  while (report.places[behind].name != "decoder.0.self.out") ++behind;
  EXPECT_EQ(found.explains, static_cast<index_t>(report.places.size() - behind));
  EXPECT_NE(port_text(report).find("it explains everything"), std::string::npos);
}

TEST(PortRight, what_follows_a_mistake_of_the_doctors_is_checked_too) {
  // In layer 0 alone, and gate and up swapped everywhere.
  const Edits swapped{.file = [](NamedTensors& file) {
    for (const char* layer : {"0", "1"}) {
      const std::string mlp = "model.layers." + std::string(layer) + ".mlp.";
      std::swap(tensor(file, mlp + "gate_proj.weight").bytes,
                tensor(file, mlp + "up_proj.weight").bytes);
    }
  }};
  const Model right = Model::load(fixture("llama")), wrong = edited("llama", swapped);
  const PortReport both = diagnose_port(right, text_for(right), by_columns(wrong, {0}));
  ASSERT_EQ(both.findings.size(), 2u) << port_text(both);
  EXPECT_EQ(both.findings[0].causes.front().name(), "softmax-columns");
  EXPECT_EQ(both.findings[0].causes.front().where, "in layer 0");
  EXPECT_EQ(both.findings[1].causes.front().name(), "gate-up-swapped");
  EXPECT_TRUE(both.explains_everything) << port_text(both);
  // What nothing explains behind it is said to be there.
  NamedTensors places = by_columns(right, {0});
  FileTensor& last = tensor(places, "decoder.1.ffn.out");
  for (index_t n = 0; n < last.size(); ++n)
    store_element(last.bytes.data(), DType::f32, n, std::cos(static_cast<double>(n)));
  const PortReport unexplained = diagnose_port(right, text_for(right), places);
  ASSERT_EQ(unexplained.findings.size(), 2u) << port_text(unexplained);
  EXPECT_EQ(unexplained.findings[1].place.name, "decoder.1.ffn.out");
  EXPECT_TRUE(unexplained.findings[1].causes.empty());
  EXPECT_FALSE(unexplained.explains_everything);
}

// --- what is refused ---

std::string problems_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    std::string text;
    for (const Problem& problem : error.problems())
      text += problem.where + ": " + problem.what + "\n";
    return text;
  }
  return "nothing was refused";
}

TEST(PortRefused, everything_that_does_not_fit_is_said_at_once) {
  const Model model = Model::load(fixture("llama"));
  const NamedTensors wrong{{"decoder.0.self.q", make_tensor(DType::f32, {6, 9, 8})},
                           {"decoder.1.out", make_tensor(DType::i64, {10, 24})},
                           {"logits", make_tensor(DType::f32, {2, 10, 67})}};
  const std::string said = problems_of([&] {
    diagnose_port(model, text_for(model), wrong,
                  {.names = {{"decoder.7.out", "x"}, {"decoder.{}.in", "h.{}"}}});
  });
  EXPECT_EQ(
      said,
      "decoder.0.self.q: has shape [6, 9, 8]; decoder.0.self.q here is [6, 10, 8] [heads, "
      "tokens, d]; it fits a text of 9: are a BOS or an end token counted by both?\n"
      "decoder.1.out: holds i64; floating-point numbers are needed\n"
      "logits: has shape [2, 10, 67]; logits here is [10, 67] [tokens, size], in any order of "
      "the axes and with any axes of 1\n"
      "names: decoder.7.out: this model has no such place; decoder.1.in is one\n"
      "names: decoder.{}.in: h.{}: no tensor of the activations has this name\n");
}

TEST(PortRefused, names_that_nothing_has) {
  const Model model = Model::load(fixture("llama"));
  const NamedTensors other{{"blocks.0.q", make_tensor(DType::f32, {6, 10, 8})}};
  EXPECT_EQ(problems_of([&] { diagnose_port(model, text_for(model), other); }),
            "activations: no tensor has the name of a place, as decoder.0.self.q or logits; the "
            "first is blocks.0.q: give a file of names\n");
}

TEST(PortRefused, ids_of_no_token_and_too_many) {
  const Model model = Model::load(fixture("gpt2"));
  const NamedTensors some{{"logits", make_tensor(DType::f32, {2, 67})}};
  EXPECT_EQ(problems_of([&] { diagnose_port(model, {.ids = {3, 67}}, some); }),
            "ids: 67 (number 1); this model's ids are 0 to 66\n");
  EXPECT_EQ(problems_of([&] {
              diagnose_port(model, {.ids = std::vector<index_t>(25, 3), .decoder_ids = {1}}, some);
            }),
            "ids: 25 tokens; this model has 24 positions\ndecoder_ids: this model is no "
            "encoder-decoder\n");
}

TEST(PortRefused, ids_in_the_file_that_are_no_ids) {
  FileTensor half = make_tensor(DType::f32, {1, 2});
  store_element(half.bytes.data(), DType::f32, 0, 2.5);
  EXPECT_EQ(problems_of([&] { text_of({{"input_ids", half}}); }),
            "input_ids: number 0 is no whole number\n");
  EXPECT_EQ(problems_of([&] { text_of({{"ids", make_tensor(DType::i64, {2, 5})}}); }),
            "ids: has several rows; the ids of one text are needed\n");
  EXPECT_EQ(problems_of([&] { text_of({{"ids", make_tensor(DType::i64, {5})}}, {.ids = {1}}); }),
            "ids: the activations are of other ids than those given\n");
}

TEST(PortRefused, a_file_of_names_that_is_none) {
  const std::string path = testing::TempDir() + "names.json";
  for (const auto& [text, what] :
       {std::pair("{\"a\": 1}", "a: an object of names is needed, {\"ours\": \"theirs\"}"),
        std::pair("[\"a\"]", "its text: an object of names is needed, {\"ours\": \"theirs\"}"),
        std::pair("{\"a\": \"b\", \"a\": \"c\"}", "a: named twice"),
        std::pair("{\"a\": \"b\"", "not JSON, at byte 10"), std::pair("", "not JSON, at byte 1"),
        std::pair("{\"a\": \"\xff\"}", "not JSON, at byte 8"),
        std::pair("{\"a\": {\"b\": \"c\"}}",
                  "a: an object of names is needed, {\"ours\": \"theirs\"}"),
        std::pair("{} {}", "not JSON, at byte 4")}) {
    std::ofstream(path) << text;
    EXPECT_EQ(problems_of([&] { read_port_names(path); }), path + ": " + what + "\n");
  }
}

TEST(PortRefused, a_file_of_very_many_names_or_of_long_ones_is_read_in_no_time) {
  // 200,000 names, and one of a million holes: each in proportion to its bytes, not to their
  // square.
  const std::string path = testing::TempDir() + "names.json";
  std::string text = "{";
  for (int n = 0; n < 200'000; ++n) text += "\"a" + std::to_string(n) + "\": \"b\", ";
  text += "\"*\": \"" + std::string(1'000'000, '*') + "\"}";
  std::ofstream(path) << text;
  const auto names = read_port_names(path);
  ASSERT_EQ(names.size(), 200'001u);
  EXPECT_EQ(names[7], (std::pair<std::string, std::string>("a7", "b")));
  const Model model = Model::load(fixture("llama"));
  const NamedTensors some{{"logits", make_tensor(DType::f32, {10, 67})}};
  EXPECT_NE(problems_of([&] {
              diagnose_port(model, text_for(model), some, {.names = {names.back(), names[0]}});
            }).find("a0: this model has no such place"),
            std::string::npos);
}

}  // namespace
}  // namespace glasshead::port_tests
