// Exact attention. For batch b, query head h, query row i at position p, key j:
//
//     s = scale * dot(q[b,h,i], k[b,g,j])          g = h / (heads / kv_heads)
//     s = softcap * tanh(s / softcap)              when softcap > 0
//     s = s + bias(b,h,i,j)
//     allowed(b,h,i,j) ?  s  :  hidden
//     w = softmax over the allowed j               row by row; a sink adds to the sum only
//     out[b,h,i] = sum_j w_j * v[b,g,j]
//
//   AttentionOptions options;
//   options.mask = Mask::causal();
//   attend(q, k, v, out, options);
//
// Shapes: q [batch, heads, q_len, d_k], k [batch, kv_heads, kv_len, d_k], v [batch, kv_heads,
// kv_len, d_v], out [batch, heads, q_len, d_v]. heads is a multiple of kv_heads; query heads that
// share a key/value head are adjacent. Any lengths (0 included), any strides, d_k >= 1, d_v >= 0.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "glasshead/bias.h"
#include "glasshead/context.h"
#include "glasshead/error.h"
#include "glasshead/mask.h"
#include "glasshead/tensor.h"

namespace glasshead {

enum class Align {
  start,  // query row 0 stands at position 0 (top left)
  end     // the last query row stands at the last key: query_start = kv_len - q_len (bottom right)
};

// Where query row 0 stands. Unset means 0 when q_len == kv_len; when they differ and a rule speaks
// of positions (causal, window, prefix, ALiBi by distance, T5) it must be stated: there is no
// default guess. Positions lie between -2^61 and 2^61.
using QueryStart = std::variant<std::monostate, Align, index_t>;

enum class EmptyRow {
  zero,  // a row with no allowed key: out 0, weights 0, lse -inf, gradients 0
  error  // refuse, naming the rows: by `check` where masks hide every key; after the computation,
         // with out written, where all scores are -inf through the data
};

// Drops weights after softmax with probability p and multiplies the kept ones by 1/(1-p).
// Counter-based: whether (b,h,i,j) is dropped depends on the seed and these four numbers alone.
struct Dropout {
  double p = 0;  // in [0, 1)
  std::uint64_t seed = 0;
};

struct AttentionOptions {
  std::optional<double> scale;  // any finite number; nullopt: 1/sqrt(d_k)
  Mask mask;                    // who may attend to whom; default: all
  Bias bias;                    // added after scale and softcap; default: nothing
  std::vector<double>
      sinks;  // [heads] or empty: a score that takes part in max and sum and carries no value
  double softcap = 0;      // > 0: scores are squashed to (-softcap, softcap); 0: off
  QueryStart query_start;  // where query row 0 stands, when q_len != kv_len
  EmptyRow empty_row = EmptyRow::zero;
  Dropout dropout;  // off by default; never on by itself
};

// The state of each row's softmax, written on request: leave a member's data null for what is not
// wanted.
struct RowState {
  MutableTensor<3>
      max;  // [batch, heads, q_len] largest allowed score (the sink included); -inf if none
  MutableTensor<3>
      sum;  // [batch, heads, q_len] sum of exp(s - max) over allowed keys (and the sink)
  MutableTensor<3> lse;  // [batch, heads, q_len] max + ln(sum), natural log; -inf if none
};

// Everything that is wrong with this call, each problem naming its argument, the axis, what was
// found and what would be right. Empty: attend will run. Reads explicit masks and dense biases
// (NaN, +inf and finite numbers beyond the compute type's range are refused), never q, k or v. Data
// must be aligned to its element; strides may be 0 or negative.
std::vector<Problem> check(const ConstTensor<4>& q, const ConstTensor<4>& k,
                           const ConstTensor<4>& v, const AttentionOptions& options = {});

// Computes out (and rows on request) from q, k, v, which share one dtype: f64, f32, bf16 or f16;
// out may be of any of these and is rounded to once. Compute type: f64 for f64 input, else f32. q
// is scaled before the product. The fused path: no matrix of scores is made; beside its results it
// needs memory for a few tiles per thread. Promises:
//   - a row's bits are a function of its query, its allowed keys, their positions and values: not
//     of threads, batch, the other rows of the call, or the instruction set (docs/same-bits.md);
//   - hidden keys and values are never read into a result, whatever they hold;
//   - NaN in a visible q, k or v gives NaN in exactly the rows that see it; true overflow gives a
//     value that is not finite; a score of -inf through the data has weight 0.
// Error against f64: on average below that of plain three-pass attention in the compute type, and
// for every number within a forward bound (tests/core/error_bound.h derives it). Throws ShapeError
// or OptionError with every problem `check` finds, and those of out and rows. out and rows must not
// overlap q, k, v or each other: only the same first element is found and refused, since views may
// interleave in one buffer.
void attend(const ConstTensor<4>& q, const ConstTensor<4>& k, const ConstTensor<4>& v,
            const MutableTensor<4>& out, const AttentionOptions& options = {},
            const RowState& rows = {}, const Context& context = default_context());

// The same by the readable path, one row after another, all its scores at hand (src/core/rows.h):
// what the fused path is compared with. Sums over keys are made in blocks of 128 in the compute
// type, and the blocks are added in order in f64.
void attend_transparent(const ConstTensor<4>& q, const ConstTensor<4>& k, const ConstTensor<4>& v,
                        const MutableTensor<4>& out, const AttentionOptions& options = {},
                        const RowState& rows = {});

// A block of the weights: query heads [head_begin, head_end) and rows [row_begin, row_end) of every
// batch.
struct RowRange {
  index_t head_begin = 0, head_end = 0;
  index_t row_begin = 0, row_end = 0;
};

// Weights before dropout, exp(s - max)/sum recomputed from q, k: weights [batch, head_end -
// head_begin, row_end - row_begin, kv_len]; exactly 0 where hidden. Same arithmetic and errors as
// attend; weights must not overlap q or k (found as there).
void attention_weights(const ConstTensor<4>& q, const ConstTensor<4>& k,
                       const AttentionOptions& options, const RowRange& range,
                       const MutableTensor<4>& weights);

// Where the gradients of a loss L go. dq, dk, dv have the shapes of q, k, v; dk and dv are summed
// over the query heads that share a key/value head. The others are optional: leave out what is not
// wanted. Any of f64, f32, bf16, f16: rounded to once.
struct Gradients {
  MutableTensor<4> dq, dk, dv;
  // One for each term of options.bias, in order; data null where none is wanted, and the list may
  // stop early. Of a dense term in its own shape, with 1s in front to make four axes: summed over
  // the axes along which it is repeated. Of a T5 term [1, 1, buckets, heads]. ALiBi's slopes have
  // none.
  std::vector<MutableTensor<4>> d_bias = {};
  MutableTensor<1> d_sinks = {};  // [heads], of options.sinks
};

// Gradients of L with respect to q, k, v, given d_out = dL/dout:
//     dv_j = sum_i w_ij d_out_i        dw_ij = dot(d_out_i, v_j)   (both times dropout's factor)
//     ds_ij = w_ij (dw_ij - sum_j w_ij dw_ij)             also the gradient of the bias
//     ds'_ij = ds_ij (1 - tanh(s'_ij / softcap)^2)        s' before softcap
//     dq_i = scale * sum_j ds'_ij k_j        dk_j = scale * sum_i ds'_ij q_i
//     d_sink_h = - sum_i w_i,sink sum_j w_ij dw_ij
// out and rows (max and sum; lse is not read) are what attend wrote for the same q, k, v and
// options: sum_j w_ij dw_ij is dot(d_out_i, out_i), so out is best kept in the compute type, which
// rows.max and rows.sum must have (f64 will do for f32). Other rows than attend's give wrong
// numbers, and nothing worse.
//
// The fused path: compute type as attend's, no matrix of scores, memory O(q_len + kv_len) for each
// thread beside its results (an f64 sum for each number of a bias's gradient). dq is summed over
// keys in order, in chunks of 1,024 keys; dk and dv over the query rows in order, the heads that
// share them together. The bits depend on neither threads nor instruction set nor batch. Rows
// without a key give 0; so does a pair whose weight is 0 (hidden, its score -inf through the data,
// or too far below the row's maximum), whatever q, k, v and d_out hold there. Errors as attend's.
// Results must not overlap anything else (found as by attend).
void attend_backward(const ConstTensor<4>& d_out, const ConstTensor<4>& q, const ConstTensor<4>& k,
                     const ConstTensor<4>& v, const ConstTensor<4>& out, const RowState& rows,
                     const Gradients& gradients, const AttentionOptions& options = {},
                     const Context& context = default_context());

// The same where out and rows were not kept: runs attend first, into memory of its own.
void attend_backward(const ConstTensor<4>& d_out, const ConstTensor<4>& q, const ConstTensor<4>& k,
                     const ConstTensor<4>& v, const Gradients& gradients,
                     const AttentionOptions& options = {},
                     const Context& context = default_context());

// The same by the readable path, one row after another: what the fused path is compared with.
// Computes in f64 whatever the dtype, rounding once to that of the results.
void attend_backward_transparent(const ConstTensor<4>& d_out, const ConstTensor<4>& q,
                                 const ConstTensor<4>& k, const ConstTensor<4>& v,
                                 const Gradients& gradients, const AttentionOptions& options = {});

}  // namespace glasshead
