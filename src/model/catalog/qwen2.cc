// Qwen2 and Qwen2.5: Llama with biases on q, k and v alone, and a window on the upper layers if the
// configuration asks for one (Yang et al. 2024, "Qwen2 technical report", section 2.2).
#include "model/catalog/qwen.h"

namespace glasshead::model {

void set_qwen_windows(Fields& fields, Stack& stack) {
  const bool has_window = fields.flag_or({"use_sliding_window"}, false);
  const index_t window = has_window ? fields.window({"sliding_window"}, 4096) : 0;
  const index_t first = fields.whole_or({"max_window_layers"}, 28);
  std::vector<bool> slides(stack.layers.size());
  for (std::size_t i = 0; i < slides.size(); ++i)
    slides[i] = window > 0 && static_cast<index_t>(i) >= first;
  set_windows(stack, sliding_layers(fields, slides), window);
}

namespace {

void describe_qwen2(Fields& fields, Description& out) {
  Stack& stack = read_decoder(fields, {.eps = 1e-6, .context_length = 32768}, out);
  for (Layer& layer : stack.layers) layer.self.has_qkv_bias = true;
  turn_all(fields, {}, out);
  set_qwen_windows(fields, stack);
}

constexpr const char* kTypes[] = {"qwen2"};
constexpr const char* kClasses[] = {"Qwen2"};

}  // namespace

const Family kQwen2{.name = "qwen2",
                    .model_types = kTypes,
                    .classes = kClasses,
                    .gguf = kTypes,
                    .safetensors_names = kDecoderNames,
                    .gguf_names = kDecoderGgufNames,
                    .describe = describe_qwen2,
                    .examples = "Qwen2, Qwen2.5",
                    .norm = "RMSNorm before",
                    .positions = "rotary; YaRN",
                    .attention = "grouped queries, biases on q, k, v",
                    .feed_forward = "gated SiLU"};

}  // namespace glasshead::model
