// SmolLM3: Llama without rotary positions on every fourth layer (Yang et al. 2025, "Rope to Nope").
#include <fmt/format.h>

#include "model/catalog/decoder.h"

namespace glasshead::model {
namespace {

// no_rope_layers holds 1 for a layer that turns and 0 for one that doesn't, whatever its name says.
std::vector<index_t> turning_layers(Fields& fields, const Stack& stack) {
  constexpr Key kKey{"no_rope_layers"};
  const std::size_t layers = stack.layers.size();
  std::vector<index_t> turns = fields.wholes(kKey);
  if (turns.empty()) {
    const index_t interval = fields.size_or({"no_rope_layer_interval"}, 4, kMostLayers);
    for (std::size_t i = 0; i < layers; ++i)
      turns.push_back(interval > 0 && (static_cast<index_t>(i) + 1) % interval == 0 ? 0 : 1);
  }
  if (turns.size() < layers) {
    fields.problem(kKey, fmt::format("a list of {}; must have a 0 or 1 for each of the {} layers",
                                     turns.size(), layers));
    turns.resize(layers, 1);
  }
  return turns;
}

void describe_smollm3(Fields& fields, Description& out) {
  Stack& stack = read_decoder(
      fields, {.eps = 1e-6, .is_tied = true, .kv_heads = 4, .context_length = 32768}, out);
  read_biases(fields, stack);
  turn_all(fields,
           {.base = 2e6,
            .pairing = fields.is_gguf() ? nn::RopePairing::adjacent : nn::RopePairing::halves},
           out);
  const std::vector<index_t> turns = turning_layers(fields, stack);
  const index_t window =
      fields.flag_or({"use_sliding_window"}, false) ? fields.window({"sliding_window"}, 0) : 0;
  std::vector<bool> slides(stack.layers.size(), false);
  for (std::size_t i = 0; i < stack.layers.size(); ++i) {
    if (turns[i] == 0) stack.layers[i].self.rotary = -1;
    slides[i] = turns[i] == 0;
  }
  set_windows(stack, sliding_layers(fields, slides), window);
}

constexpr const char* kTypes[] = {"smollm3"};
constexpr const char* kClasses[] = {"SmolLM3"};

}  // namespace

const Family kSmolLm3{.name = "smollm3",
                      .model_types = kTypes,
                      .classes = kClasses,
                      .gguf = kTypes,
                      .safetensors_names = kDecoderNames,
                      .gguf_names = kDecoderGgufNames,
                      .describe = describe_smollm3,
                      .examples = "SmolLM3",
                      .norm = "RMSNorm before",
                      .positions = "rotary, none on every fourth layer",
                      .attention = "grouped queries",
                      .feed_forward = "gated SiLU"};

}  // namespace glasshead::model
