// What is built around attention, described as data: plain structs that hold structure and *names
// of taps*; the matrices themselves are the named inputs of a run. `steps` turns a description into
// the list of steps that trace.h runs.
//
//   Network net;                                   // X -> one attention
//   net.blocks.resize(1);
//   net.blocks[0].attention.query = {"W_Q", ""};   // q = X·W_Q
//   auto list = nn::steps(net, shapes_of(inputs));
//
// Taps written for a single block: [ids -> X,] [positions -> x0,] q k v, [q_heads k_heads v_heads,]
// [q_rotated k_rotated,] scores ... out, [concat,] [projected,] ... With several blocks each tap of
// block n is called "block.<n>.<tap>". A description of more than one row of text runs all rows at
// once.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "glasshead/attention.h"
#include "glasshead/trace.h"
#include "nn/activation.h"
#include "nn/rope.h"

namespace glasshead::nn {

// x·W + b, W [d_in, d_out], b [d_out], given by tap name. An empty weight passes x on unchanged; an
// empty bias adds nothing.
struct Projection {
  std::string weight;
  std::string bias;
};

enum class NormKind { none, layer, rms };

// LayerNorm: (x - mean)/sqrt(var + eps)·gain + bias (Ba, Kiros, Hinton 2016); RMSNorm:
// x/sqrt(mean(x²) + eps)·gain (Zhang, Sennrich 2019). Empty gain is 1, empty bias is 0.
struct Norm {
  NormKind kind = NormKind::none;
  std::string gain, bias;
  double eps = 1e-5;
};

enum class NormPlacement {
  pre,
  post
};  // norm(x) feeds the sub-layer, or the norm follows the residual

// one linear layer:  x·up                            (down and gate empty, activation none)
// two:               act(x·up)·down
// gated:             (act(x·gate) ∘ (x·up))·down     (Shazeer 2020)
struct FeedForward {
  Projection up;
  Projection gate;
  Projection down;
  Activation activation = Activation::none;
};

enum class PositionKind { none, sinusoidal, learned };

// Added to the embeddings. sinusoidal: sin(p/base^(2i/d)) at 2i, cos of the same at 2i+1 (Vaswani
// et al. 2017, section 3.5). learned: row p of the tap `table`.
struct Positions {
  PositionKind kind = PositionKind::none;
  std::string table;
  double base = 10000;
};

struct Attention {
  index_t heads = 1;
  index_t kv_heads = 1;
  Projection query, key, value,
      output;  // W_Q [d_model, heads·d_k], W_K [d_model, kv_heads·d_k], W_V, W_O
  std::optional<Rope> rope;
  std::string given_q, given_k,
      given_v;               // taps that are q, k, v already ([n, d] or [heads, n, d]); else empty
  AttentionOptions options;  // scale, mask, bias, ...
};

struct Block {
  Attention attention;  // self-attention, or, with is_cross, keys and values from `context`
  bool is_cross = false;
  std::optional<Attention> cross_attention;  // a second attention, over `context`, after the first
  bool has_residual = false;                 // x + sublayer(x) around attention and feed-forward
  NormPlacement placement = NormPlacement::pre;
  Norm attention_norm, cross_norm, feed_forward_norm;
  std::optional<FeedForward> feed_forward;
};

struct Unembedding {
  bool is_tied = false;  // logits = h·Eᵀ with the embedding table
  std::string weight;    // else h·W, W [d_model, vocab]
  std::string bias;
  double softcap = 0;  // of the logits; 0: off
};

struct Network {
  std::string ids;        // tap of token ids [n]; empty: X is given
  std::string embedding;  // tap of the embedding table E [vocab, d_model]
  Positions positions;
  index_t first_position = 0;  // of row 0
  std::vector<Block> blocks;
  Norm final_norm;
  std::optional<Unembedding> unembedding;  // -> logits, probabilities, next_token
};

using Shapes = std::map<std::string, std::vector<index_t>>;  // tap -> shape of every input

// Everything that does not fit: where is the tap ("W_K", "block.1.W_Q"), what names both shapes and
// the axis.
std::vector<Problem> check(const Network& network, const Shapes& inputs);

// The steps in order. The description must have passed `check`.
std::vector<Step> steps(const Network& network, const Shapes& inputs);

}  // namespace glasshead::nn
