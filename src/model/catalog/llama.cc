// Llama 1 to 3, and the many models that are one under their own name (Touvron et al. 2023).
#include "model/catalog/decoder.h"

namespace glasshead::model {
namespace {

void describe_llama(Fields& fields, Description& out) {
  Stack& stack = read_decoder(fields, {.eps = 1e-6, .context_length = 2048}, out);
  read_biases(fields, stack);
  // GGUF's converter laid the rows of q and k out for turning adjacent coordinates.
  turn_all(fields,
           {.pairing = fields.is_gguf() ? nn::RopePairing::adjacent : nn::RopePairing::halves},
           out);
  // Mistral's GGUF files say that they are llama.
  set_windows(stack, std::vector<bool>(stack.layers.size(), true),
              fields.window({nullptr, "attention.sliding_window"}, 0));
}

constexpr const char* kTypes[] = {"llama"};
constexpr const char* kClasses[] = {"Llama", "LLaMA"};
constexpr const char* kGguf[] = {"llama"};

}  // namespace

const Family kLlama{.name = "llama",
                    .model_types = kTypes,
                    .classes = kClasses,
                    .gguf = kGguf,
                    .safetensors_names = kDecoderNames,
                    .gguf_names = kDecoderGgufNames,
                    .describe = describe_llama,
                    .examples = "Llama 1 to 3.2, SmolLM, SmolLM2, TinyLlama",
                    .norm = "RMSNorm before",
                    .positions = "rotary; linear, dynamic, YaRN, Llama-3 scaling",
                    .attention = "grouped queries",
                    .feed_forward = "gated SiLU"};

}  // namespace glasshead::model
