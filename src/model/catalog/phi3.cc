// Phi-3 and Phi-4-mini: q, k and v in one matrix, gate and up in another, and two sets of rotary
// factors for short and long texts (Abdin et al. 2024, "Phi-3 technical report"; Ding et al. 2024,
// "LongRoPE").
#include "model/catalog/decoder.h"

namespace glasshead::model {
namespace {

void describe_phi3(Fields& fields, Description& out) {
  Stack& stack = read_decoder(fields, {.eps = 1e-5, .context_length = 4096}, out);
  turn_all(fields, {.is_always_longrope = true}, out);
  set_windows(stack, std::vector<bool>(stack.layers.size(), true),
              fields.window({"sliding_window", "attention.sliding_window"}, 0));
}

constexpr NameRule kHfRules[] = {
    {Slot::tokens, "@embed_tokens"},
    {Slot::attention_norm, "@layers.{}.input_layernorm"},
    {Slot::qkv, "@layers.{}.self_attn.qkv_proj"},
    {Slot::attention_out, "@layers.{}.self_attn.o_proj"},
    {Slot::ffn_norm, "@layers.{}.post_attention_layernorm"},
    {Slot::gate_up, "@layers.{}.mlp.gate_up_proj"},
    {Slot::down, "@layers.{}.mlp.down_proj"},
    {Slot::final_norm, "@norm"},
    {Slot::logits, "lm_head"},
};
constexpr NameRule kGgufRules[] = {
    {Slot::tokens, "token_embd"},
    {Slot::attention_norm, "blk.{}.attn_norm"},
    {Slot::qkv, "blk.{}.attn_qkv"},
    {Slot::attention_out, "blk.{}.attn_output"},
    {Slot::ffn_norm, "blk.{}.ffn_norm"},
    {Slot::gate_up, "blk.{}.ffn_up"},
    {Slot::down, "blk.{}.ffn_down"},
    {Slot::final_norm, "output_norm"},
    {Slot::logits, "output"},
    {Slot::rotary_factors, "rope_factors_long"},
    {Slot::rotary_factors, "rope_factors_short"},
};
constexpr const char* kPrefixes[] = {"model.", ""};
constexpr const char* kLeft[] = {"*.rotary_emb.inv_freq"};
constexpr const char* kTypes[] = {"phi3"};
constexpr const char* kClasses[] = {"Phi3"};

}  // namespace

const Family kPhi3{.name = "phi3",
                   .model_types = kTypes,
                   .classes = kClasses,
                   .gguf = kTypes,
                   .safetensors_names = {kHfRules, kPrefixes, kLeft},
                   .gguf_names = {kGgufRules, {}, {}},
                   .describe = describe_phi3,
                   .examples = "Phi-3, Phi-3.5, Phi-4-mini",
                   .norm = "RMSNorm before",
                   .positions = "rotary, also of a part of the head; LongRoPE",
                   .attention = "grouped queries, a window",
                   .feed_forward = "gated SiLU"};

}  // namespace glasshead::model
