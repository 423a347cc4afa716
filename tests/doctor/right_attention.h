// Right attention once more, in the orders and types in which programs compute it. It shares the
// decision who sees whom, and the bias, with the library; nothing of how numbers are made.
#pragma once

#include "trials.h"

namespace glasshead::doctor::trials {

enum class Way {
  three_passes,    // scores, softmax, product, keys in order
  backwards,       // the same with the keys from the last to the first
  lanes,           // eight partial sums, fused multiply-add
  tiles,           // running maximum and sum, rescaled between tiles
  tiles_base_two,  // the same with exp2 of scores in bits
  split            // halves of the keys apart, merged by their lse
};
inline constexpr Way kWays[] = {Way::three_passes, Way::backwards,      Way::lanes,
                                Way::tiles,        Way::tiles_base_two, Way::split};

// How a number is held between steps.
using Store = float (*)(float);
inline float as_f32(float x) { return x; }
inline float as_bf16(float x) {
  return static_cast<float>(widen(narrow_to_bf16(static_cast<double>(x))));
}
inline float as_f16(float x) {
  return static_cast<float>(widen(narrow_to_f16(static_cast<double>(x))));
}

class RightAttention {
 public:
  // `keeps`: scores and weights are held by `store` too, as where each step is an operator of its
  // own; else only the weights on their way to the product, as in fused kernels.
  RightAttention(const AttentionCase& a, const ProbeShape& s, Way way, Store store, bool keeps)
      : a_(a),
        s_(s),
        way_(way),
        store_(store),
        keeps_(keeps ? store : as_f32),
        pairs_{s.batch, s.heads, s.q_len, s.kv_len},
        mask_(a.options, pairs_),
        bias_(a.options, pairs_),
        scale_(static_cast<float>(
            a.options.scale.value_or(1 / std::sqrt(static_cast<double>(s.d_k))))) {}

  Written run() {
    Written to(s_);
    for (index_t b = 0; b < s_.batch; ++b)
      for (index_t h = 0; h < s_.heads; ++h)
        for (index_t i = 0; i < s_.q_len; ++i) row(b, h, i, to);
    return to;
  }

 private:
  struct Part {  // of a row: some of its keys
    float max = -std::numeric_limits<float>::infinity(), sum = 0;
    std::vector<float> out;
  };

  std::vector<float> turned(const ConstTensor<4>& x, index_t b, index_t h, index_t i,
                            index_t position) const {
    const auto n = static_cast<std::size_t>(s_.d_k);
    std::vector<float> row(n);
    for (std::size_t e = 0; e < n; ++e)
      row[e] = static_cast<float>(x.load(b, h, i, static_cast<index_t>(e)));
    if (!a_.rotary) return row;
    const std::vector<float> before = row;
    for (std::size_t pair = 0; pair < n / 2; ++pair) {
      const float frequency = std::pow(static_cast<float>(a_.rotary->base),
                                       -2 * static_cast<float>(pair) / static_cast<float>(n));
      const float angle = static_cast<float>(position) * frequency;
      const float c = keeps_(std::cos(angle)), s = keeps_(std::sin(angle));
      const std::size_t one = a_.rotary->is_adjacent ? 2 * pair : pair;
      const std::size_t two = a_.rotary->is_adjacent ? one + 1 : pair + n / 2;
      row[one] = store_(before[one] * c - before[two] * s);
      row[two] = store_(before[two] * c + before[one] * s);
    }
    return row;
  }

  float dot(const std::vector<float>& x, const std::vector<float>& y) const {
    if (way_ == Way::lanes) {
      float lanes[8] = {};
      for (std::size_t e = 0; e < x.size(); ++e) lanes[e % 8] = std::fma(x[e], y[e], lanes[e % 8]);
      return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
             ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
    }
    float sum = 0;
    for (std::size_t e = 0; e < x.size(); ++e) {
      const std::size_t at = way_ == Way::backwards ? x.size() - 1 - e : e;
      sum += x[at] * y[at];
    }
    return sum;
  }

  float score(index_t b, index_t h, index_t i, index_t j, const std::vector<float>& q,
              const std::vector<float>& k) const {
    float s = keeps_(keeps_(dot(q, k)) * scale_);
    const auto cap = static_cast<float>(a_.options.softcap);
    if (cap > 0) s = keeps_(cap * keeps_(std::tanh(keeps_(s / cap))));
    if (!bias_.is_empty()) s = keeps_(s + keeps_(bias_.at<float>(b, h, i, j)));
    return s;
  }

  float exp_of(float x) const {
    constexpr float kBits = 1.44269504F;
    return way_ == Way::tiles_base_two ? std::exp2(x * kBits) : std::exp(x);
  }

  void row(index_t b, index_t h, index_t i, Written& to) {
    const index_t g = h / (s_.heads / s_.kv_heads), n = s_.kv_len;
    const index_t start = resolve_query_start(a_.options.query_start, s_.q_len, n);
    const std::vector<float> q = turned(a_.q, b, h, i, start + i);
    std::vector<index_t> keys;
    std::vector<float> scores;
    for (index_t j = 0; j < n; ++j) {
      if (!mask_.allowed(b, h, i, j)) continue;
      keys.push_back(j);
      scores.push_back(score(b, h, i, j, q, turned(a_.k, b, g, j, j)));
    }
    if (way_ == Way::backwards) {
      std::reverse(keys.begin(), keys.end());
      std::reverse(scores.begin(), scores.end());
    }
    std::vector<Part> parts;
    const std::size_t count = keys.size(), half = count / 2;
    if (way_ == Way::split && count > 1) {
      parts.push_back(part(b, g, keys, scores, 0, half));
      parts.push_back(part(b, g, keys, scores, half, count));
    } else {
      parts.push_back(part(b, g, keys, scores, 0, count));
    }
    if (!a_.options.sinks.empty()) {
      Part sink;
      sink.max = static_cast<float>(a_.options.sinks[slot(h)]);
      sink.sum = 1;
      sink.out.assign(slot(s_.d_v), 0);
      parts.push_back(sink);
    }
    Part whole = parts.front();
    for (std::size_t p = 1; p < parts.size(); ++p) whole = merged(whole, parts[p]);
    to.lse(b, h, i) =
        whole.sum == 0 ? -std::numeric_limits<float>::infinity() : whole.max + std::log(whole.sum);
    for (index_t d = 0; d < s_.d_v; ++d)
      to.out(b, h, i, d) = whole.sum == 0 ? 0 : store_(whole.out[slot(d)] / whole.sum);
    for (std::size_t n_key = 0; n_key < count; ++n_key)
      to.weights(b, h, i, keys[n_key]) =
          store_(keeps_(exp_of(keeps_(scores[n_key] - whole.max))) / whole.sum);
  }

  Part merged(const Part& a, const Part& b) const {
    Part to;
    to.max = std::max(a.max, b.max);
    if (to.max == -std::numeric_limits<float>::infinity()) return a;
    const float of_a = exp_of(a.max - to.max), of_b = exp_of(b.max - to.max);
    to.sum = a.sum * of_a + b.sum * of_b;
    for (std::size_t d = 0; d < a.out.size(); ++d)
      to.out.push_back(a.out[d] * of_a + b.out[d] * of_b);
    return to;
  }

  Part part(index_t b, index_t g, const std::vector<index_t>& keys,
            const std::vector<float>& scores, std::size_t first, std::size_t end) const {
    Part to;
    to.out.assign(slot(s_.d_v), 0);
    const bool has_tiles = way_ == Way::tiles || way_ == Way::tiles_base_two;
    const std::size_t tile = has_tiles ? 16 : std::max<std::size_t>(1, end - first);
    for (std::size_t t = first; t < end; t += tile) {
      const std::size_t stop = std::min(end, t + tile);
      float max = to.max;
      for (std::size_t n = t; n < stop; ++n) max = std::max(max, scores[n]);
      const float kept = exp_of(to.max - max);
      to.sum *= kept;
      for (float& x : to.out) x *= kept;
      to.max = max;
      for (std::size_t n = t; n < stop; ++n) {
        const float p = keeps_(exp_of(keeps_(scores[n] - max)));
        to.sum += p;
        const float stored = store_(p);
        for (index_t d = 0; d < s_.d_v; ++d) {
          const auto v = static_cast<float>(a_.v.load(b, g, keys[n], d));
          float& sum = to.out[slot(d)];
          sum = way_ == Way::lanes ? std::fma(stored, v, sum) : sum + stored * v;
        }
      }
    }
    return to;
  }

  const AttentionCase& a_;
  ProbeShape s_;
  Way way_;
  Store store_, keeps_;
  PairShape pairs_;
  MaskPlan mask_;
  BiasPlan bias_;
  float scale_;
};

// q, k and v of these inputs as `type` holds them, and their call.
struct HeldInputs {
  Tensor<float, 4> q, k, v;
  AttentionCase attention;

  HeldInputs(const Inputs& in, std::uint64_t seed, Store store)
      : q({in.shape.batch, in.shape.heads, in.shape.q_len, in.shape.d_k}),
        k({in.shape.batch, in.shape.kv_heads, in.shape.kv_len, in.shape.d_k}),
        v({in.shape.batch, in.shape.kv_heads, in.shape.kv_len, in.shape.d_v}) {
    Draw draw(seed);
    // From flat weights to a key that takes nearly all; values around 0, or far from it.
    const double spread = 0.3 + 2.5 * draw.unit(), away = draw.one_in(4) ? 10 * draw.normal() : 0;
    for (Tensor<float, 4>* tensor : {&q, &k, &v})
      for (index_t n = 0; n < tensor->size(); ++n) {
        const double x = tensor == &v ? away + draw.normal() : spread * draw.normal();
        tensor->data()[n] = store(static_cast<float>(x));
      }
    attention = {q, k, v, in.options, in.rotary, {}};
  }
};

}  // namespace glasshead::doctor::trials
