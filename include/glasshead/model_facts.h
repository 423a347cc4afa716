// What a model is and what it costs, without running it: of files, or of a published configuration
// that is known by name and needs no files.
//
//   ModelFacts model = model_facts("SmolLM2-135M-Instruct.Q4_1.gguf");
//   model.stacks[0].layers[5].self.kv_heads
//   ModelCost cost = model_cost(model_facts("llama-2-70b"), 4096);
//   cost.cache_bytes
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "glasshead/error.h"
#include "glasshead/tensor.h"

namespace glasshead {

struct AttentionFacts {
  index_t heads = 0, kv_heads = 0;  // heads / kv_heads query heads share a key/value head
  index_t d_k = 0, d_v = 0;
  double scale = 0;
  double softcap = 0;  // 0: none
  bool is_causal = false;
  index_t window = 0;        // keys that a query sees, its own included; 0: all
  std::string positions;     // "rotary, base 10000", "relative, 32 buckets", "none"
  bool has_qk_norm = false;  // each head of q and of k is normalised
  bool operator==(const AttentionFacts&) const = default;
};

struct LayerFacts {
  AttentionFacts self;
  std::optional<AttentionFacts> cross;  // over the encoder's output
  index_t d_ff = 0;
  std::string activation;  // "silu"
  bool is_gated = false;
  bool operator==(const LayerFacts&) const = default;
};

struct StackFacts {
  std::string name;  // "encoder", "decoder"
  std::string norm;  // "RMSNorm"
  double eps = 0;
  std::string placement;  // of the norms: "pre", "post", "sandwich"
  std::vector<LayerFacts> layers;
  index_t distinct_layers = 0;  // fewer than there are layers: they share weights
};

// Weights of one stored type.
struct StoredFacts {
  std::string type;  // "q4_1"
  index_t tensors = 0;
  index_t parameters = 0;  // numbers
  index_t bytes = 0;
};

struct ModelFacts {
  std::string name;    // the path, or the configuration's name
  std::string format;  // "safetensors", "gguf"; "" for a configuration without files
  std::string family;  // "llama"
  std::string kind;    // "decoder", "encoder", "encoder-decoder"
  index_t vocab = 0, d_model = 0;
  index_t context_length = 0;       // what it was made for; 0: not said
  index_t position_limit = 0;       // tokens past it have no position; 0: none
  index_t learned_positions = 0;    // rows of the table at the input; 0: there is none
  bool has_logits = false;          // predicts tokens
  bool has_tied_head = false;       // by the token table read as a matrix
  std::vector<StackFacts> stacks;   // encoder, decoder
  index_t parameters = 0;           // numbers: a tied or shared matrix once
  std::vector<StoredFacts> stored;  // by type, most bytes first; none without files
  index_t bytes = 0;                // of the weights as stored; without files: in 16 bits
};

// A name of known_models, else a model's directory, .safetensors or .gguf file. No weight is read,
// but all are looked for. Throws IoError or FormatError with everything that is wrong.
ModelFacts model_facts(const std::string& path_or_name);

// A place of a run that a Tap may name, in the layers where it has the same shape.
struct PlaceFacts {
  std::string name;                // "decoder.*.self.q": `*` stands for any of the layers
  std::vector<index_t> layers;     // empty: outside layers
  std::vector<std::string> shape;  // {"6", "tokens", "8"}
};
// Every place of a model, named as model_facts names it, in the order of computation.
std::vector<PlaceFacts> model_places(const std::string& path_or_name);

// "gpt2", "gpt-3", "llama-2-7b", "llama-2-70b", "mistral-7b", ...
std::vector<std::string> known_models();

// Which model families can be loaded, for docs and messages.
struct FamilyFacts {
  std::string name;                      // "gemma2"
  std::vector<std::string> model_types;  // as config.json names it
  std::vector<std::string> gguf;         // as general.architecture names it; empty: not from GGUF
  std::string examples;                  // published models
  std::string norm, positions, attention, feed_forward;  // what sets it apart, in a few words
};
std::vector<FamilyFacts> model_families();

// What `tokens` tokens cost; of an encoder-decoder, as many on both sides. One multiply-add counts
// as two operations.
struct ModelCost {
  index_t tokens = 0;
  index_t cache_bytes = 0;           // keys and values of all tokens, in f32, as sessions keep them
  index_t cache_bytes_windows = 0;   // of the tokens that windows still show
  index_t cache_bytes_per_head = 0;  // if every query head had keys and values of its own
  // Reading the whole text at once. Attention: q·k and weights·v over the pairs that masks show.
  // Matrices: those of the layers for every token, and the logits of one.
  double attention_flops = 0, matrix_flops = 0;
  double attention_flops_next = 0, matrix_flops_next = 0;  // one more token after that; decoders
  double weights_bytes = 0;  // if every head's weights [tokens, tokens] were stored, in f32
};
ModelCost model_cost(const ModelFacts& model, index_t tokens);

}  // namespace glasshead
