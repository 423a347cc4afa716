// Mistral 7B: Llama with a window (Jiang et al. 2023, section 2).
#include "model/catalog/decoder.h"

namespace glasshead::model {
namespace {

void describe_mistral(Fields& fields, Description& out) {
  Stack& stack = read_decoder(fields, {.eps = 1e-6, .kv_heads = 8, .context_length = 131072}, out);
  turn_all(fields, {}, out);
  // Later versions write null: no window. Left out, it is the first version's.
  set_windows(stack, std::vector<bool>(stack.layers.size(), true),
              fields.window({"sliding_window"}, 4096));
}

constexpr const char* kTypes[] = {"mistral"};
constexpr const char* kClasses[] = {"Mistral"};

}  // namespace

const Family kMistral{.name = "mistral",
                      .model_types = kTypes,
                      .classes = kClasses,
                      .gguf = {},  // they are of the llama architecture
                      .safetensors_names = kDecoderNames,
                      .gguf_names = {},
                      .describe = describe_mistral,
                      .examples = "Mistral 7B",
                      .norm = "RMSNorm before",
                      .positions = "rotary",
                      .attention = "grouped queries, a window on every layer (0.1)",
                      .feed_forward = "gated SiLU"};

}  // namespace glasshead::model
