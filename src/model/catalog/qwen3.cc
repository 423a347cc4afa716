// Qwen3: every head of q and k is normalised before it turns (Yang et al. 2025, "Qwen3 technical
// report", section 2).
#include "model/catalog/qwen.h"

namespace glasshead::model {
namespace {

void describe_qwen3(Fields& fields, Description& out) {
  Stack& stack =
      read_decoder(fields, {.eps = 1e-6, .head_size = 128, .context_length = 32768}, out);
  read_biases(fields, stack);
  for (Layer& layer : stack.layers) layer.self.qk_norm = stack.norm;
  turn_all(fields, {}, out);
  set_qwen_windows(fields, stack);
}

constexpr const char* kTypes[] = {"qwen3"};
constexpr const char* kClasses[] = {"Qwen3"};

}  // namespace

const Family kQwen3{.name = "qwen3",
                    .model_types = kTypes,
                    .classes = kClasses,
                    .gguf = kTypes,
                    .safetensors_names = kDecoderNames,
                    .gguf_names = kDecoderGgufNames,
                    .describe = describe_qwen3,
                    .examples = "Qwen3",
                    .norm = "RMSNorm before, and of each head of q and k",
                    .positions = "rotary; YaRN",
                    .attention = "grouped queries",
                    .feed_forward = "gated SiLU"};

}  // namespace glasshead::model
