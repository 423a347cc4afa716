// The readable path as data. Attention is a list of steps; a step reads named tensors ("taps") and
// writes one. Run the list: the reference and the trace. Print it: the lesson. Edit it: one classic
// mistake.
//
//   Trace trace = attend_traced(q, k, v, options);
//   double w = trace.at("weights").values[...];
//
//   std::vector<Step> list = steps(options);           // or edit the list first
//   Trace same = run_steps(list, q, k, v, options);
//
// Everything is computed in f64 from unrounded values, in the order it would be written on paper:
// the product is scaled, not q. Sums over keys are made in blocks of 128, then in order; multiply
// and add are rounded apart; exp, log and the rest are the library's own, so the numbers are the
// same on every machine.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "glasshead/attention.h"

namespace glasshead {

// A traced tensor: dense, row-major, f64, any rank.
struct TraceTensor {
  std::vector<index_t> shape;
  std::vector<double> values;
};

struct StepArgs;  // what an operation gets to see

// One kind of operation. The library's operations are constants in tables (core: attention; nn:
// what is built around it), so that a step can be printed, compared and replaced.
struct Op {
  const char* id;        // "scores"
  const char* formula;   // "S = Q·Kᵀ"
  const char* latex;     // "S=QK^{\\top}"
  const char* sentence;  // one line for a learner
  TraceTensor (*run)(
      const StepArgs&);  // computes the output; shapes were checked when the list was made
};

// A named number that belongs to a step ("scale" 0.7071, "eps" 1e-5, "axis" 1).
using StepNumber = std::pair<std::string, double>;

struct Step {
  std::string tap;  // the tensor it writes: "scores", "block.0.attention.scores"
  const Op* op = nullptr;
  std::vector<std::string> reads;   // taps, in the operation's order
  std::vector<StepNumber> numbers;  // parameters
  std::shared_ptr<const AttentionOptions>
      options;  // of the attention this step belongs to; null elsewhere
};

double number(const Step& step, std::string_view key,
              double otherwise);  // the parameter, or `otherwise`
void set_number(Step& step, std::string_view key, double value);

// A step together with its inputs, as its operation sees it.
struct StepArgs {
  const Step& step;
  std::span<const TraceTensor* const> inputs;
  // inputs[0] once more when no later step reads it, so that an operation may reuse its memory for
  // the result (take_first); else null.
  TraceTensor* spare = nullptr;
};

// A copy of inputs[0], or, when it is spare, inputs[0] itself, moved out.
TraceTensor take_first(const StepArgs& args);

// One computed step.
struct TracedStep {
  Step step;
  TraceTensor value;
};

// Called after every step, before later steps read the value; it may change the value (arithmetic
// by hand rounds it).
using StepSink = std::function<void(const Step& step, TraceTensor& value)>;

struct Trace {
  std::vector<std::pair<std::string, TraceTensor>> inputs;  // what was given, in order
  std::vector<TracedStep> steps;                            // what was computed, in order

  const TraceTensor* find(std::string_view tap) const;  // an input or a step; null when absent
  const TraceTensor& at(std::string_view tap) const;    // throws OptionError when absent
};

// The steps of one attention over the taps "q", "k", "v", each [batch, heads, length, size] with
// leading axes of size 1 dropped at will (rank 2 to 4). Matrices have the rank of q, their last two
// axes being [q_len, kv_len], or [q_len, d_v] for out; row_max, row_sum and lse have one axis less,
// ending in [q_len]. A step whose option is off is left out. `prefix` is put before every tap it
// writes and before q, k, v.
//
//   scores   S = Q·Kᵀ                     reads q k
//   scaled   Z = S · scale                number "scale"
//   capped   softcap · tanh(Z / softcap)  number "softcap"
//   biased   Z + bias                     the bias of the options
//   masked   hidden pairs become -inf     the mask of the options
//   row_max  largest of the row           and of the head's sink; -inf: the row has no key
//   exp      exp(Z - row_max)             number "shift": 1; hidden pairs: 0
//   row_sum  sum over the keys            blocks of 128 then in order, then the sink; "shift"
//   lse      row_max + ln(row_sum)        number "shift"
//   weights  exp / row_sum                number "shift"; a row without a key stays 0
//   dropped  weights kept with probability 1-p, times 1/(1-p)
//   out      O = A·V                      hidden pairs are skipped, not multiplied by 0
//
// "shift" 0 in all four of its steps is softmax without subtracting the maximum: it overflows to
// inf and NaN above 709.78, and a row without a key is 0/0.
// With EmptyRow::error, row_max throws OptionError naming the rows without a key and sink.
std::vector<Step> steps(const AttentionOptions& options, index_t d_k,
                        const std::string& prefix = {});

// Runs any list of steps over named inputs, keeping every value. A step reads the latest value of a
// name. Throws OptionError for a tap that nothing writes, ShapeError for shapes that a step cannot
// take.
Trace run_steps(std::span<const Step> list,
                std::vector<std::pair<std::string, TraceTensor>> inputs);
// The same, handing each value on as it is made and keeping only what later steps still read:
// memory is a few of the largest tensors, whatever the length of the list.
void run_steps(std::span<const Step> list, std::vector<std::pair<std::string, TraceTensor>> inputs,
               const StepSink& sink);
// Attention alone. Throws as attend does.
Trace run_steps(std::span<const Step> list, const ConstTensor<4>& q, const ConstTensor<4>& k,
                const ConstTensor<4>& v, const AttentionOptions& options);
Trace attend_traced(const ConstTensor<4>& q, const ConstTensor<4>& k, const ConstTensor<4>& v,
                    const AttentionOptions& options = {});

}  // namespace glasshead
