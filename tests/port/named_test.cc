// Mistakes in a configuration or in weights, each made in a copy of a tiny model's files, and each
// named: from every place that there is, and from hidden states alone.
#include <cmath>

#include "edited.h"

namespace glasshead::port_tests {
namespace {

struct Made {
  const char* what;
  const char* model;
  Edits edits;
  std::vector<std::string> names;  // any of these: some mistakes are one
};

std::function<void(Json&)> set(const char* key, const Json& value) {
  return [key, value](Json& config) { config[key] = value; };
}
std::function<void(Json&)> set_rope(const char* key, const Json& value) {
  return [key, value](Json& config) { config["rope_parameters"][key] = value; };
}
std::function<void(const std::string&, Weight)> scaled(const char* part, double factor) {
  return [part, factor](const std::string& name, Weight w) {
    if (name.find(part) != std::string::npos) w.each([factor](double x) { return x * factor; });
  };
}
std::function<void(const std::string&, Weight)> shifted(const char* part, double by) {
  return [part, by](const std::string& name, Weight w) {
    if (name.find(part) != std::string::npos) w.each([by](double x) { return x + by; });
  };
}

// Rows of heads of `d` from halves to neighbours.
void permute(Weight w, index_t d) {
  const FileTensor before = w.tensor;
  for (index_t r = 0; r < w.rows(); ++r) {
    const index_t e = r % d, from = r - e + (e % 2 == 0 ? e / 2 : d / 2 + e / 2);
    for (index_t c = 0; c < w.columns(); ++c) w.set(r, c, before.load(from * w.columns() + c));
  }
}

void transpose(Weight w) {
  const FileTensor before = w.tensor;
  for (index_t r = 0; r < w.rows(); ++r)
    for (index_t c = 0; c < w.columns(); ++c) w.set(r, c, before.load(c * w.columns() + r));
}

void swap_named(NamedTensors& file, const std::string& one, const std::string& other) {
  for (auto& [name, first] : file) {
    const std::size_t at = name.find(one);
    if (at == std::string::npos) continue;
    std::string twin = name;
    twin.replace(at, one.size(), other);
    std::swap(first.bytes, tensor(file, twin).bytes);
  }
}

const std::vector<Made>& mistakes() {
  static const std::vector<Made> all{
      {"rope_theta not read",
       "llama",
       {.config = set_rope("rope_theta", 10000.0)},
       {"rope-base:10000"}},
      {"eps by default", "llama", {.config = set("rms_norm_eps", 1e-6)}, {"norm-eps:1e-6"}},
      {"gelu for silu", "llama", {.config = set("hidden_act", "gelu")}, {"activation-other:gelu"}},
      {"relu for silu", "llama", {.config = set("hidden_act", "relu")}, {"activation-other:relu"}},
      {"rows for the other pairing",
       "llama",
       {.weights =
            [](const std::string& name, Weight w) {
              if (name.find("q_proj") != std::string::npos ||
                  name.find("k_proj") != std::string::npos)
                permute(w, 8);
            }},
       {"rope-rows-permuted"}},
      {"gate and up swapped",
       "llama",
       {.file = [](NamedTensors& file) { swap_named(file, "gate_proj", "up_proj"); }},
       {"gate-up-swapped"}},
      {"k and v swapped",
       "llama",
       {.file = [](NamedTensors& file) { swap_named(file, "k_proj", "v_proj"); }},
       {"qkv-order:q v k"}},
      {"token table as the head",
       "llama",
       {.file =
            [](NamedTensors& file) {
              tensor(file, "lm_head.weight").bytes =
                  tensor(file, "model.embed_tokens.weight").bytes;
            }},
       {"head-tied"}},
      {"1 + w of a plain norm", "llama", {.weights = shifted("norm", 1)}, {"norm-offset-added"}},
      {"k transposed",
       "llama",
       {.weights =
            [](const std::string& name, Weight w) {
              if (name.find("k_proj") != std::string::npos) transpose(w);
            }},
       {"weights-transposed:k"}},
      {"no bias of o",
       "llama-biased",
       {.weights = scaled("o_proj.bias", 0)},
       {"bias-missing:attention out"}},
      {"no bias of q", "llama-biased", {.weights = scaled("q_proj.bias", 0)}, {"bias-missing:q"}},
      {"no bias of down",
       "llama-biased",
       {.weights = scaled("down_proj.bias", 0)},
       {"bias-missing:ffn down"}},
      {"rope scaling not read",
       "llama-llama3",
       {.config = set("rope_scaling", nullptr)},
       {"rope-scaling-missing"}},
      {"window not read",
       "mistral",
       {.config = set("sliding_window", nullptr)},
       {"window-missing"}},
      {"window of 4", "mistral", {.config = set("sliding_window", 4)}, {"window-off:1"}},
      {"window of 2", "mistral", {.config = set("sliding_window", 2)}, {"window-off:-1"}},
      {"head_dim for query_pre_attn_scalar",
       "gemma2",
       {.config = set("query_pre_attn_scalar", 8)},
       {"scale-other:1/sqrt(d_k)"}},
      {"d_model for query_pre_attn_scalar",
       "gemma2",
       {.config = set("query_pre_attn_scalar", 24)},
       {"scale-other:1/sqrt(d_model)"}},
      {"no softcap",
       "gemma2",
       {.config = set("attn_logit_softcapping", nullptr)},
       {"softcap-missing"}},
      {"softcaps swapped",
       "gemma2",
       {.config = set("attn_logit_softcapping", 3.0)},
       {"softcap-other:3"}},
      {"no softcap of the logits",
       "gemma2",
       {.config = set("final_logit_softcapping", nullptr)},
       {"logits-softcap-missing"}},
      {"tanh for erf",
       "gemma2",
       {.config = set("hidden_activation", "gelu")},
       {"activation-other:gelu"}},
      {"w for 1 + w", "gemma2", {.weights = shifted("norm", -1)}, {"norm-offset-missing"}},
      {"global base in local layers",
       "gemma3",
       {.config = set("rope_local_base_freq", 100.0)},
       {"rope-base:100"}},
      {"rope in layers without",
       "smollm3",
       {.config = set("no_rope_layers", {1, 1, 1})},
       {"rope-of-other-layers:100"}},
      {"gains of q and k swapped",
       "qwen3",
       {.file = [](NamedTensors& file) { swap_named(file, "q_norm", "k_norm"); }},
       {"qk-norm-swapped"}},
      {"erf for tanh",
       "gpt2",
       {.config = set("activation_function", "gelu")},
       {"activation-other:gelu"}},
      {"scaled by layer",
       "gpt2",
       {.config = set("scale_attn_by_inverse_layer_idx", true)},
       {"scale-by-layer"}},
      {"not scaled", "gpt2", {.config = set("scale_attn_weights", false)}, {"scale-missing"}},
      {"positions one row on",
       "gpt2",
       {.weights =
            [](const std::string& name, Weight w) {
              if (name.find("wpe") == std::string::npos) return;
              for (index_t r = 0; r + 1 < w.rows(); ++r)
                for (index_t c = 0; c < w.columns(); ++c) w.set(r, c, w.at(r + 1, c));
            }},
       {"positions-shifted:1"}},
      {"no positions", "gpt2", {.weights = scaled("wpe", 0)}, {"positions-missing"}},
      {"Conv1D not transposed",
       "gpt2",
       {.weights =
            [](const std::string& name, Weight w) {
              if (name.find("attn.c_proj.weight") != std::string::npos) transpose(w);
            }},
       {"weights-transposed:attention out"}},
      {"no bias of a norm",
       "gpt2",
       {.weights =
            [](const std::string& name, Weight w) {
              if (name.find("ln_") != std::string::npos && name.ends_with("bias"))
                w.each([](double) { return 0; });
            }},
       {"norm-bias-missing"}},
      {"tanh for erf, twice",
       "bert",
       {.config = set("hidden_act", "gelu_new")},
       {"activation-other:gelu_tanh"}},
      {"eps by another's default",
       "bert",
       {.config = set("layer_norm_eps", 1e-12)},
       {"norm-eps:1e-12"}},
      {"no token types", "bert", {.weights = scaled("token_type", 0)}, {"token-type-missing"}},
      {"no bias of the head",
       "bert",
       {.weights = scaled("cls.predictions.bias", 0)},
       {"head-bias-missing"}},
      {"positions from another row",
       "roberta",
       {.config = set("pad_token_id", 0)},
       {"positions-shifted:-1"}},
      {"another largest distance",
       "t5",
       {.config = set("relative_attention_max_distance", 128)},
       {"relative-distance:128"}},
      {"no relative bias",
       "t5",
       {.weights = scaled("relative_attention_bias", 0)},
       {"relative-missing"}},
  };
  return all;
}

bool is_named(const PortReport& report, const Made& made) {
  const std::string found = cause(report);
  return std::find(made.names.begin(), made.names.end(), found) != made.names.end();
}

TEST(PortNamed, mistakes_are_named_from_every_place_and_explain_everything) {
  for (const Made& made : mistakes()) {
    const PortReport report = report_on(made.model, made.edits);
    EXPECT_TRUE(is_named(report, made)) << made.model << ": " << made.what << "\n"
                                        << port_text(report);
    // BERT's head has an activation, too.
    const bool is_twofold = std::string(made.what) == "tanh for erf, twice";
    EXPECT_TRUE(report.explains_everything);
    EXPECT_EQ(report.findings.size(), is_twofold ? 2u : 1u)
        << made.model << ": " << made.what << "\n"
        << port_text(report);
  }
}

TEST(PortNamed, mistakes_are_named_from_hidden_states_alone) {
  for (const Made& made : mistakes()) {
    const PortReport report = report_on(made.model, made.edits, hidden_states);
    EXPECT_TRUE(is_named(report, made)) << made.model << ": " << made.what << "\n"
                                        << port_text(report);
  }
}

TEST(PortNamed, two_mistakes_are_two_findings) {
  const Edits edits{
      .config = [](Json& config) { config["rope_parameters"]["rope_theta"] = 10000.0; },
      .file = [](NamedTensors& file) { swap_named(file, "gate_proj", "up_proj"); }};
  const PortReport report = report_on("llama", edits);
  ASSERT_EQ(report.findings.size(), 2u) << port_text(report);
  EXPECT_EQ(report.findings[0].causes.front().name(), "rope-base:10000");
  EXPECT_EQ(report.findings[0].place.name, "decoder.0.self.q");
  EXPECT_EQ(report.findings[1].causes.front().name(), "gate-up-swapped");
  EXPECT_EQ(report.findings[1].place.name, "decoder.0.ffn.inner");
  EXPECT_TRUE(report.is_explained());
}

TEST(PortNamed, a_mistake_in_one_layer_is_said_to_be_there) {
  const Edits edits{.file = [](NamedTensors& file) {
    std::swap(tensor(file, "model.layers.1.mlp.gate_proj.weight").bytes,
              tensor(file, "model.layers.1.mlp.up_proj.weight").bytes);
  }};
  const PortReport report = report_on("llama", edits);
  EXPECT_EQ(cause(report), "gate-up-swapped");
  EXPECT_EQ(report.findings.front().place.name, "decoder.1.ffn.inner");
  EXPECT_EQ(report.findings.front().causes.front().where, "from layer 1 on");
}

}  // namespace
}  // namespace glasshead::port_tests
