// What a model is, as plain data: everything that the arithmetic needs, layer by layer. A family's
// configuration is read into it once (catalog/); after that nothing asks for a family's name.
//
//   Description model = describe(files, {});                  // weights.h
//   for (const Layer& layer : model.decoder->layers)
//     layer.self.window                                       // a family's pattern is data
//
// A layer, by placement, with x [tokens, d_model]:
//
//   pre       x += attention(norm(x));            x += ffn(norm(x))
//   post      x = norm(x + attention(x));         x = norm(x + ffn(x))
//   sandwich  x += after(attention(norm(x)));     x += after(ffn(norm(x)))
//
// with cross-attention, where a layer has it, between the two in the same way.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "glasshead/model.h"
#include "glasshead/tensor.h"
#include "nn/activation.h"
#include "nn/rope.h"

namespace glasshead::model {

using Kind = ModelKind;

enum class NormKind { layer, rms };
struct Norm {
  NormKind kind = NormKind::layer;
  double eps = 1e-5;
  // The files hold gain - 1 (Gemma): the loader adds it, so weights.h has gains to multiply by.
  double gain_offset = 0;
};

enum class Placement { pre, post, sandwich };

// Rotary positions with every kind of scaling worked out: pair i of a vector at position p turns by
// p·frequencies[i], and cos and sin are multiplied by amplitude.
struct Rotary {
  nn::RopePairing pairing = nn::RopePairing::halves;
  std::vector<double> frequencies = {};  // [rotary/2]; the first `rotary` coordinates turn
  double amplitude = 1;
  double base = 0;           // what they were made of, to be shown
  std::string scaling = {};  // "", "linear", "llama3", "yarn", "longrope (short)", "dynamic"
};

// Positions as a learned bias per head that depends on key - query alone, in buckets that widen
// with distance (Raffel et al. 2020, section 2.1).
struct RelativeBuckets {
  index_t buckets = 32;
  index_t max_distance = 128;
  bool is_two_sided = true;  // encoders: later keys have buckets of their own
};

struct Attention {
  index_t heads = 0, kv_heads = 0;
  index_t d_k = 0, d_v = 0;
  double scale = 1;
  double softcap = 0;      // 0: none
  bool is_causal = false;  // cross-attention never is
  index_t window = 0;      // causal: query i sees keys i-window+1 .. i; 0: all up to i
  bool has_qkv_bias = false, has_out_bias = false;
  std::optional<Norm> qk_norm =
      std::nullopt;           // over the d_k of every head of q and of k, before they turn
  index_t rotary = -1;        // into Stack::rotaries; -1: does not turn
  bool has_relative = false;  // the stack's relative bias is added
};

struct FeedForward {
  index_t width = 0;
  nn::Activation activation = nn::Activation::relu;
  bool is_gated = false;  // activation(gate)·up, else activation(up)
  bool has_bias = false;
};

struct Layer {
  Attention self;
  std::optional<Attention> cross = std::nullopt;  // over the encoder's output
  FeedForward ffn;
};

struct Stack {
  std::vector<Layer> layers;
  Norm norm;
  Placement placement = Placement::pre;
  bool has_final_norm = true;
  std::vector<Rotary> rotaries;  // most models have one, or none
  std::optional<RelativeBuckets> relative;
  index_t distinct_layers = 0;  // how many have weights of their own: 1 if all share (ALBERT)
};

struct Embedding {
  index_t width = 0;           // of the token table
  bool is_projected = false;   // to d_model, by a matrix after the norm (ALBERT)
  double scale = 1;            // multiplies the token's row, before anything is added
  index_t positions = 0;       // rows of the learned table; 0: there is none
  index_t first_position = 0;  // the row of a text's first token
  // Tokens of this id stand at row `first_position - 1` and are not counted (RoBERTa's padding,
  // also inside a text).
  std::optional<index_t> uncounted;
  index_t token_types = 0;  // rows of the segment table; 0: there is none. Default segment: 0
  std::optional<Norm> norm;
};

// MLM heads: logits = table · norm(activation(dense(x))) + bias.
struct Transform {
  nn::Activation activation = nn::Activation::gelu;
  Norm norm;
};

struct Head {
  bool has_logits = true;
  bool is_tied = true;  // the token table read as a matrix
  double scale = 1;     // multiplies the rows that go into the matrix (T5: d_model^-1/2)
  double softcap = 0;   // of the logits; 0: none
  std::optional<Transform> transform;
  bool has_bias = false;
  bool has_pooler = false;  // tanh(dense(x[0]))
};

// A vector for a whole text, of the last layer's rows.
enum class Pooling { none, mean, first };

struct Description {
  std::string family;  // to be shown; nothing computes with it
  Kind kind = Kind::decoder;
  index_t d_model = 0, vocab = 0;
  Embedding embedding;  // an encoder-decoder's two stacks share it
  std::optional<Stack> encoder, decoder;
  Head head;
  Pooling pooling = Pooling::none;  // what the files ask for (sentence embeddings)
  bool normalises_pooled = false;   // to length 1

  index_t context_length = 0;  // what the model was made for; 0: not said
  // Tokens past it have no position: a learned table's rows, or where a rotary scaling would have
  // to change. 0: none.
  index_t position_limit = 0;

  // Ids as the configuration names them; the tokenizer's word goes first where it has one.
  std::optional<index_t> bos, pad, decoder_start;
  std::vector<index_t> eos;
};

const char* name(NormKind kind);        // "LayerNorm", "RMSNorm"
const char* name(Placement placement);  // "pre", "post", "sandwich"

}  // namespace glasshead::model
