// Gemma 1, 2 and 3 (Gemma team 2024, 2024 and 2025). Norms multiply by 1 + w, and the embedding by
// sqrt(d_model). GGUF files hold 1 + w already, and of windows and scales only what the
// architecture doesn't fix.
#include <cmath>

#include <fmt/format.h>

#include "model/catalog/decoder.h"

namespace glasshead::model {
namespace {

constexpr Key kWindow{"sliding_window", "attention.sliding_window"};
constexpr const char* kGelu = "gelu_pytorch_tanh";

Stack& read_gemma(Fields& fields, DecoderDefaults defaults, Description& out) {
  defaults.is_tied = true;
  defaults.activation = kGelu;
  defaults.head_size = 256;
  Stack& stack = read_decoder(fields, defaults, out);
  out.embedding.scale = std::sqrt(static_cast<double>(out.d_model));
  if (!fields.is_gguf()) stack.norm.gain_offset = 1;
  read_biases(fields, stack);
  return stack;
}

void describe_gemma(Fields& fields, Description& out) {
  // Published files say "gelu" and mean its tanh form; later ones add hidden_activation.
  constexpr Key kOld{"hidden_act"}, kNew{"hidden_activation"};
  const bool is_new = fields.has(kNew);
  const bool is_plain_gelu = !is_new && fields.text_or(kOld, kGelu) == "gelu";
  Stack& stack =
      read_gemma(fields,
                 {.activation_key = is_plain_gelu ? Key{nullptr} : (is_new ? kNew : kOld),
                  .context_length = 8192},
                 out);
  turn_all(fields, {}, out);
  for (Layer& layer : stack.layers) layer.ffn.activation = stack.layers[0].ffn.activation;
}

// From GGUF: 1/sqrt(head size), but for the 27B models 1/sqrt(d_model/heads).
double scale_of(Fields& fields, const Stack& stack, const Description& out) {
  if (stack.layers.empty() || stack.layers[0].self.heads == 0) return 1;
  const Attention& self = stack.layers[0].self;
  double scalar = fields.positive_or({"query_pre_attn_scalar"}, 256);
  if (fields.is_gguf()) {
    const std::size_t layers = stack.layers.size();
    const bool is_27b = layers == 46 || layers == 62;
    scalar = static_cast<double>(is_27b ? out.d_model / self.heads : self.d_k);
  }
  return 1 / std::sqrt(scalar);
}

// The layers but every `period`th slide. GGUF files may say the period, or have one flag for each.
std::vector<bool> pattern(Fields& fields, const Stack& stack, index_t period) {
  constexpr Key kGguf{nullptr, "attention.sliding_window_pattern"};
  std::vector<bool> slides(stack.layers.size());
  if (fields.has_list(kGguf)) {
    const std::vector<bool> flags = fields.flags(kGguf);
    if (flags.size() == slides.size()) return flags;
    fields.problem(kGguf, fmt::format("a list of {}; must have one flag for each of the {} layers",
                                      flags.size(), slides.size()));
    return slides;
  }
  period = fields.size_or({"sliding_window_pattern", kGguf.gguf}, period, kMostLayers);
  for (std::size_t i = 0; i < slides.size(); ++i)
    slides[i] = period > 0 && (static_cast<index_t>(i) + 1) % period != 0;
  return sliding_layers(fields, slides);
}

double softcap(Fields& fields, Key key, double otherwise) {
  return fields.is_null(key) ? 0 : fields.number_or(key, otherwise);
}

void read_softcaps(Fields& fields, Description& out, double of_scores, double of_logits) {
  constexpr Key kScores{"attn_logit_softcapping", "attn_logit_softcapping"};
  constexpr Key kLogits{"final_logit_softcapping", "final_logit_softcapping"};
  const double scores = softcap(fields, kScores, of_scores);
  out.head.softcap = softcap(fields, kLogits, of_logits);
  if (scores < 0) fields.problem(kScores, "must not be below 0");
  if (out.head.softcap < 0) fields.problem(kLogits, "must not be below 0");
  for (Layer& layer : out.decoder->layers) layer.self.softcap = scores;
}

void describe_gemma2(Fields& fields, Description& out) {
  Stack& stack =
      read_gemma(fields, {.activation_key = {"hidden_activation"}, .context_length = 8192}, out);
  stack.placement = Placement::sandwich;
  turn_all(fields, {}, out);
  set_scale(stack, scale_of(fields, stack, out));
  read_softcaps(fields, out, 50, 30);
  const index_t window = fields.window(kWindow, 4096);
  set_windows(stack, pattern(fields, stack, 2), window);
}

void describe_gemma3(Fields& fields, Description& out) {
  if (fields.has({"text_config"})) fields.enter("text_config");
  Stack& stack = read_gemma(fields,
                            {.activation_key = {"hidden_activation"},
                             .vocab = 262208,
                             .heads = 8,
                             .kv_heads = 4,
                             .context_length = 131072},
                            out);
  stack.placement = Placement::sandwich;
  for (Layer& layer : stack.layers) layer.self.qk_norm = stack.norm;
  set_scale(stack, scale_of(fields, stack, out));
  read_softcaps(fields, out, 0, 0);
  const index_t window = fields.window(kWindow, 4096);
  const std::vector<bool> slides = pattern(fields, stack, 6);
  set_windows(stack, slides, window);
  if (stack.layers.empty()) return;
  const index_t head_size = stack.layers[0].self.d_k;
  const Rotary full = read_rotary(
      fields, {.base = 1e6, .head_size = head_size, .layer_type = "full_attention"}, out);
  const Rotary local = read_rotary(fields,
                                   {.base = 1e4,
                                    .head_size = head_size,
                                    .layer_type = "sliding_attention",
                                    .base_key = {"rope_local_base_freq", "rope.freq_base_swa"},
                                    .may_scale = false},
                                   out);
  for (std::size_t i = 0; i < stack.layers.size(); ++i)
    stack.layers[i].self.rotary = place(slides[i] ? local : full, stack);
}

// Gemma 2 and 3 have four norms in a layer; post_attention_layernorm is of what attention adds.
constexpr NameRule kHfRules[] = {
    {Slot::tokens, "@embed_tokens"},
    {Slot::attention_norm, "@layers.{}.input_layernorm"},
    {Slot::q, "@layers.{}.self_attn.q_proj"},
    {Slot::k, "@layers.{}.self_attn.k_proj"},
    {Slot::v, "@layers.{}.self_attn.v_proj"},
    {Slot::attention_out, "@layers.{}.self_attn.o_proj"},
    {Slot::q_norm, "@layers.{}.self_attn.q_norm"},
    {Slot::k_norm, "@layers.{}.self_attn.k_norm"},
    {Slot::attention_after, "@layers.{}.post_attention_layernorm"},
    {Slot::ffn_norm, "@layers.{}.pre_feedforward_layernorm"},
    {Slot::gate, "@layers.{}.mlp.gate_proj"},
    {Slot::up, "@layers.{}.mlp.up_proj"},
    {Slot::down, "@layers.{}.mlp.down_proj"},
    {Slot::ffn_after, "@layers.{}.post_feedforward_layernorm"},
    {Slot::final_norm, "@norm"},
    {Slot::logits, "lm_head"},
    {Slot::tokens_copy, "language_model.lm_head"},
};
constexpr NameRule kGgufRules[] = {
    {Slot::tokens, "token_embd"},
    {Slot::attention_norm, "blk.{}.attn_norm"},
    {Slot::q, "blk.{}.attn_q"},
    {Slot::k, "blk.{}.attn_k"},
    {Slot::v, "blk.{}.attn_v"},
    {Slot::attention_out, "blk.{}.attn_output"},
    {Slot::q_norm, "blk.{}.attn_q_norm"},
    {Slot::k_norm, "blk.{}.attn_k_norm"},
    {Slot::attention_after, "blk.{}.post_attention_norm"},
    {Slot::ffn_norm, "blk.{}.ffn_norm"},
    {Slot::gate, "blk.{}.ffn_gate"},
    {Slot::up, "blk.{}.ffn_up"},
    {Slot::down, "blk.{}.ffn_down"},
    {Slot::ffn_after, "blk.{}.post_ffw_norm"},
    {Slot::final_norm, "output_norm"},
    {Slot::logits, "output"},
    {Slot::rotary_factors, "rope_freqs"},
};
constexpr const char* kPrefixes[] = {"model.", "", "language_model.model.",
                                     "model.language_model."};
// The picture half of the models that have one is left: text alone is read.
constexpr const char* kLeft[] = {"*.rotary_emb.inv_freq", "vision_tower.*", "model.vision_tower.*",
                                 "multi_modal_projector.*", "model.multi_modal_projector.*"};
constexpr Names kNames{kHfRules, kPrefixes, kLeft};
constexpr Names kGgufNames{kGgufRules, {}, {}};

constexpr const char* kTypes[] = {"gemma"};
constexpr const char* kTypes2[] = {"gemma2"};
constexpr const char* kTypes3[] = {"gemma3_text", "gemma3"};
constexpr const char* kGguf3[] = {"gemma3"};
constexpr const char* kClasses[] = {"Gemma"};
constexpr const char* kClasses2[] = {"Gemma2"};
constexpr const char* kClasses3[] = {"Gemma3"};

}  // namespace

const Family kGemma{.name = "gemma",
                    .model_types = kTypes,
                    .classes = kClasses,
                    .gguf = kTypes,
                    .safetensors_names = kDecoderNames,
                    .gguf_names = kDecoderGgufNames,
                    .describe = describe_gemma,
                    .examples = "Gemma 2B, 7B",
                    .norm = "RMSNorm × (1 + w) before",
                    .positions = "rotary",
                    .attention = "one or more key heads",
                    .feed_forward = "gated GELU (tanh)"};

const Family kGemma2{.name = "gemma2",
                     .model_types = kTypes2,
                     .classes = kClasses2,
                     .gguf = kTypes2,
                     .safetensors_names = kNames,
                     .gguf_names = kGgufNames,
                     .describe = describe_gemma2,
                     .examples = "Gemma 2",
                     .norm = "RMSNorm × (1 + w) before and after",
                     .positions = "rotary",
                     .attention = "grouped queries, softcap, a window on every second layer",
                     .feed_forward = "gated GELU (tanh)"};

const Family kGemma3{.name = "gemma3",
                     .model_types = kTypes3,
                     .classes = kClasses3,
                     .gguf = kGguf3,
                     .safetensors_names = kNames,
                     .gguf_names = kGgufNames,
                     .describe = describe_gemma3,
                     .examples = "Gemma 3, text",
                     .norm = "RMSNorm × (1 + w) before and after, and of each head of q and k",
                     .positions = "rotary, another base where there is a window",
                     .attention = "grouped queries, a window on five layers of six",
                     .feed_forward = "gated GELU (tanh)"};

}  // namespace glasshead::model
