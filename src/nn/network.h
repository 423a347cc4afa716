// What is built around attention, described as data: plain structs that hold structure and *names
// of taps*; the matrices themselves are the named inputs of a run. `steps` turns a description into
// the list of steps that trace.h runs.
//
//   Network net;                                   // X -> one attention
//   net.blocks.resize(1);
//   net.blocks[0].attention.query = {"W_Q", ""};   // q = X·W_Q
//   auto list = nn::steps(net, shapes_of(inputs));
//
// Taps, in the order in which they are written; each only where the description asks for it. n rows
// of X, m rows of keys (n, or those of "context").
//
//   X                  [n, d_model]          lookup: row `id` of the embedding, for each id
//   x0                 [n, d_model]          X + positions
//   of each block, called "block.<n>.<tap>" when there are several:
//   attention_normed   [n, d_model]          placement pre: the norm of the block's input
//   q                  [n, heads·d_k]        k [m, kv_heads·d_k]     v [m, kv_heads·d_v]
//   q_heads            [heads, n, d_k]       heads > 1; k_heads, v_heads [kv_heads, m, ...]
//   q_rotated          as q or q_heads       rope; k_rotated
//   k_cache v_cache    as k and v above      generate.h: earlier rows and the new ones
//   scores ... out     as in trace.h         [heads,] n, m or d_v
//   concat             [n, heads·d_v]        heads > 1
//   projected          [n, d_out]            W_O
//   residual           [n, d_model]          the block's input + the above
//   attention_normed   [n, d_model]          placement post
//   cross.<tap>                              cross_attention: all of the above once more
//   ff_normed          [n, d_model]          placement pre
//   ff_gate            [n, d_ff]             gated
//   ff_gate_activated  [n, d_ff]             gated, with an activation
//   ff_up              [n, d_ff]             two layers or gated
//   ff_activated       [n, d_ff]             act(ff_up), or act(ff_gate) ∘ ff_up
//   ff_out             [n, d_out]            the last (or only) linear layer
//   ff_residual        [n, d_model]          what went into the feed-forward + ff_out
//   ff_normed          [n, d_model]          placement post
//   after the last block:
//   final_normed       [n, d_model]
//   logits             [n, vocab]
//   logits_capped      [n, vocab]
//   probabilities      [n, vocab]
//   next_token         [n]                   lowest index of the largest; NaN if one is NaN
//
// Inputs that have fixed names: "X" when no ids are given, "context" [m, d_context] for
// cross-attention. All n rows of a text are run at once.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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

Shapes shapes_of(const std::vector<std::pair<std::string, TraceTensor>>& inputs);

// Everything that does not fit. `where` is the input's tap ("W_K", "block.1.W_Q"), or, for what is
// no input, the field: "attention.heads", "attention.mask", "positions"; "block.1.attention.heads"
// with several blocks, "cross_attention." for the second attention. `what` names both shapes and
// the axis: "3x2 where X is 3x2: rows must equal d_model = 2". A problem is reported once, where
// it is; what follows from it is not.
std::vector<Problem> check(const Network& network, const Shapes& inputs);

// The steps in order. Refuses (ShapeError) a description that `check` finds problems in.
std::vector<Step> steps(const Network& network, const Shapes& inputs);

// The table of this folder's operations, and the one of an id ("residual"), null if there is none.
std::span<const Op> ops();
const Op* find_op(std::string_view id);

}  // namespace glasshead::nn
