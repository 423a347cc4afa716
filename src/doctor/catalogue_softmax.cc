// Mistakes in softmax, what becomes of its weights, and lse.
#include "doctor/catalogue.h"

namespace glasshead::doctor {
namespace {

bool set_axis(Program& p, Axis axis) {
  if (p.axis != Axis::row) return false;
  p.axis = axis;
  return true;
}

bool set_lse(Program& p, LseRule rule) {
  if (p.lse != LseRule::natural) return false;
  p.lse = rule;
  return true;
}

const Fault kFaults[] = {
    {"softmax-missing",
     {},
     [](const Program&) { return once(); },
     [](Program& p, const Choice&) {
       p.pair_edits.push_back([](const Pairs&) -> Pairs {
         return [](index_t, index_t, index_t, index_t) { return true; };
       });
       p.does_bias_hide = false;
       return set_axis(p, Axis::none);
     }},
    {"softmax-whole",
     {},
     [](const Program& p) { return once(p.q->extent(2) > 1); },
     [](Program& p, const Choice&) { return set_axis(p, Axis::whole); }},
    {"softmax-columns",
     {},
     [](const Program& p) { return once(p.q->extent(2) > 1); },
     [](Program& p, const Choice&) { return set_axis(p, Axis::columns); }},
    {"softmax-heads",
     {"", "softmax over the heads", "the heads of each pair, not the keys of each row, add to 1",
      "weights = softmax(scores, dim=1)", "weights = softmax(scores, dim=-1)",
      "softmax over the keys, the last axis"},
     [](const Program& p) { return once(p.q->extent(1) > 1); },
     [](Program& p, const Choice&) { return set_axis(p, Axis::heads); }},
    {"softmax-unshifted",
     {},
     [](const Program&) { return once(); },
     [](Program& p, const Choice&) {
       p.is_shifted = false;
       return p.axis == Axis::row;
     }},
    {"softmax-unshifted-f16",
     {"WHAT", "maximum not subtracted, exps in f16",
      "exps of the scores themselves are held in f16 (exps), and their sum too (exps-and-sum): inf "
      "from 65520 = e^11.09 on, digits lost below e^-9.7",
      "e = exp(s).half(); weights = e / e.sum(-1, keepdims=True)",
      "e = exp(s - s.max(-1, keepdims=True)); weights = e / e.sum(-1, keepdims=True)",
      "subtract each row's maximum first, and keep exps and their sum in f32"},
     [](const Program& p) {
       if (p.arithmetic != DType::f16) return Choices{};
       return Choices{{0, "exps"}, {1, "exps-and-sum"}};
     },
     [](Program& p, const Choice& choice) {
       p.is_shifted = false;
       p.exps = choice.value == 0 ? Exps::f16 : Exps::f16_and_sum;
       return p.axis == Axis::row;
     }},
    {"softmax-twice",
     {"", "softmax applied twice", "the weights go through softmax once more: nearly uniform rows",
      "out = softmax(attention_probs) @ v", "out = attention_probs @ v", "once"},
     [](const Program&) { return once(); },
     [](Program& p, const Choice&) {
       p.is_twice = true;
       return p.axis == Axis::row;
     }},
    {"sum-missing",
     {"", "not divided by the sum", "exp(s - max) is used as the weights", "out = exp(s - m) @ v",
      "p = exp(s - m); out = p @ v / p.sum(-1)",
      "divide by each row's sum, at the end at the latest"},
     [](const Program&) { return once(); },
     [](Program& p, const Choice&) {
       p.is_divided = false;
       return p.axis == Axis::row;
     }},
    {"softmax-plus-one",
     {"", "one more in the sum", "1 + the sum is divided by: a key of score 0 without a value",
      "w = exp(s) / (1 + exp(s).sum(-1))", "w = exp(s) / exp(s).sum(-1)",
      "only where a sink of 0 is meant"},
     [](const Program& p) { return once(p.options.sinks.empty()); },
     [](Program& p, const Choice&) {
       if (!p.options.sinks.empty()) return false;
       p.options.sinks.assign(slot(p.q->extent(1)), 0.0);
       return true;
     }},
    {"sinks-missing",
     {"", "sinks forgotten", "no sink takes part in the sum", "weights = softmax(s)",
      "weights = softmax(cat(s, sink))[..., :-1]", "each head's sink joins the sum"},
     [](const Program& p) { return once(!p.options.sinks.empty()); },
     [](Program& p, const Choice&) {
       if (p.options.sinks.empty()) return false;
       p.options.sinks.clear();
       return true;
     }},
    {"dropout-on",
     {"P", "dropout left on", "weights are dropped with probability P, kept ones times 1/(1 - P)",
      "out = F.dropout(weights, p) @ v", "out = F.dropout(weights, p, training=self.training) @ v",
      "no dropout in evaluation, and none in the weights that are shown"},
     [](const Program&) {
       return Choices{{0.1, "0.1"},   {0.2, "0.2"}, {0.05, "0.05"}, {0.5, "0.5"},
                      {0.15, "0.15"}, {0.3, "0.3"}, {0.25, "0.25"}};
     },
     [](Program& p, const Choice& choice) {
       p.weight_factor = 1 / (1 - choice.value);
       p.may_drop = true;
       return true;
     }},
    {"weights-transposed",
     {},
     [](const Program& p) { return once(is_square(p)); },
     [](Program& p, const Choice&) {
       p.transposes_weights = true;
       return p.axis == Axis::row;
     }},
    {"lse-base2",
     {"", "lse in base 2", "log2 of the sum instead of the natural logarithm", "lse = m + log2(l)",
      "lse = (m + log2(l)) * ln(2)", "kernels that use exp2 convert at the end"},
     [](const Program&) { return once(); },
     [](Program& p, const Choice&) { return set_lse(p, LseRule::base2); }},
    {"lse-unscaled",
     {"", "lse of unscaled scores", "the scale is missing from the lse alone",
      "lse = logsumexp(q @ k.T)", "lse = logsumexp(q @ k.T * scale)",
      "lse of the scores that softmax sees"},
     [](const Program& p) { return once(p.scale != 1 && p.scale != 0); },
     [](Program& p, const Choice&) { return p.scale != 0 && set_lse(p, LseRule::unscaled); }},
    {"lse-without-max",
     {"", "maximum not added back", "the logarithm of the shifted sum", "lse = log(l)",
      "lse = m + log(l)", "add the maximum"},
     [](const Program&) { return once(); },
     [](Program& p, const Choice&) { return set_lse(p, LseRule::without_max); }},
    {"lse-is-max",
     {"", "maximum returned as lse", "the row's maximum, without the logarithm of the sum",
      "lse = m", "lse = m + log(l)", "add the logarithm of the sum"},
     [](const Program&) { return once(); },
     [](Program& p, const Choice&) { return set_lse(p, LseRule::only_max); }},
    {"lse-zero-on-empty",
     {"", "lse 0 for a row without a key", "lse is 0 where nothing is allowed",
      "lse = where(l == 0, 0, m + log(l))", "lse = where(l == 0, -inf, m + log(l))",
      "the identity of merging is -inf"},
     [](const Program& p) { return once(has_mask(p) || hides_by_bias(p)); },
     [](Program& p, const Choice&) { return set_lse(p, LseRule::zero_if_empty); }},
};

}  // namespace

std::span<const Fault> softmax_faults() { return kFaults; }

}  // namespace glasshead::doctor
