#include "model/block.h"

#include <array>

#include "base/math.h"
#include "model/head_study_impl.h"
#include "model/look.h"
#include "nn/rows.h"

namespace glasshead::model {
namespace {

// Vectors of heads that lie in columns of rows: [sequences, heads, rows, d], each sequence `length`
// rows after the one before.
View<float, 4> heads_of(const View<float, 2>& rows, index_t column, index_t heads, index_t d,
                        index_t sequences, index_t length) {
  const index_t step = rows.strides[0];
  return {rows.data + column, {sequences, heads, length, d}, {length * step, d, step, 1}};
}

View<float, 3> of_span(const View<float, 4>& heads, index_t row) {
  return {heads.data + row * heads.strides[2],
          {heads.shape[1], heads.shape[2], heads.shape[3]},
          {heads.strides[1], heads.strides[2], heads.strides[3]}};
}

// The part of the rows that one span is, as a batch of one.
View<float, 4> alone(const View<float, 4>& heads, const Span& span) {
  return {heads.data + span.row * heads.strides[2],
          {1, heads.shape[1], span.rows, heads.shape[3]},
          heads.strides};
}

bool are_alike(const std::vector<Span>& spans) {
  for (const Span& span : spans)
    if (span.rows != spans[0].rows) return false;
  return true;
}

// Which of an attention's places.
struct Parts {
  Point norm, q, k, v, scores, weights, lse, out, projected;
};
constexpr Parts kSelf{Point::self_norm, Point::self_q,      Point::self_k,
                      Point::self_v,    Point::self_scores, Point::self_weights,
                      Point::self_lse,  Point::self_out,    Point::self_projected};
constexpr Parts kCross{Point::cross_norm, Point::cross_q,      Point::cross_k,
                       Point::cross_v,    Point::cross_scores, Point::cross_weights,
                       Point::cross_lse,  Point::cross_out,    Point::cross_projected};

class LayerRun {
 public:
  LayerRun(const StackRun& run, index_t n)
      : run_(run),
        n_(n),
        layer_(run.stack.layers[static_cast<std::size_t>(n)]),
        weights_(run.weights.layers[static_cast<std::size_t>(n)]),
        calls_(run.calls[static_cast<std::size_t>(n)]) {}

  void run(const View<float, 2>& x) {
    see(Point::layer_in, x);
    add(x, weights_.self.norm, weights_.self.after, Point::self_norm,
        [&](const View<float, 2>& in, const View<float, 2>& out) { self(in, out); });
    if (layer_.cross)
      add(x, weights_.cross.norm, weights_.cross.after, Point::cross_norm,
          [&](const View<float, 2>& in, const View<float, 2>& out) { cross(in, out); });
    add(x, weights_.ffn.norm, weights_.ffn.after, Point::ffn_norm,
        [&](const View<float, 2>& in, const View<float, 2>& out) { feed_forward(in, out); });
    see(Point::layer_out, x);
  }

 private:
  // What a place holds: changed, then looked at.
  void see(Point point, const View<float, 2>& rows, index_t groups = 0) const {
    if (run_.changes != nullptr)
      run_.changes->apply({run_.name, n_, point}, rows, run_.spans, groups);
    if (run_.taps != nullptr) run_.taps->see({run_.name, n_, point}, rows, run_.spans, groups);
  }
  bool wants(Point point) const {
    return run_.taps != nullptr && run_.taps->wants({run_.name, n_, point});
  }

  // x and a part of the layer, put together as the placement says.
  template <class F>
  void add(const View<float, 2>& x, const NormWeights& norm, const NormWeights& after,
           Point norm_point, const F& part) const {
    const Stack& stack = run_.stack;
    const View<float, 2> added = run_.work.added.rows(x.shape[0], x.shape[1]);
    if (stack.placement == Placement::post) {
      part(x, added);
      nn::add_rows(x, added, run_.context);
      apply_norm(stack.norm, norm, x, x, run_.context);
      return;
    }
    const View<float, 2> normed = run_.work.normed.rows(x.shape[0], x.shape[1]);
    apply_norm(stack.norm, norm, x, normed, run_.context);
    see(norm_point, normed);
    part(normed, added);
    if (stack.placement == Placement::sandwich)
      apply_norm(stack.norm, after, added, added, run_.context);
    nn::add_rows(x, added, run_.context);
  }

  // Each head's vector of q or k by itself.
  void norm_heads(const View<float, 2>& rows, index_t heads, index_t d, const Norm& norm,
                  const NormWeights& weights) const {
    if (rows.shape[0] == 1) {
      const View<float, 2> all(rows.data, {heads, d});
      apply_norm(norm, weights, all, all, run_.context);
      return;
    }
    for (index_t h = 0; h < heads; ++h) {
      const View<float, 2> one = columns(rows, h * d, d);
      apply_norm(norm, weights, one, one, run_.context);
    }
  }

  void turn(const View<float, 2>& rows, index_t heads, index_t d, index_t rotary) const {
    const auto at = static_cast<std::size_t>(rotary);
    const Rotary& how = run_.stack.rotaries[at];
    const auto pairs = static_cast<index_t>(how.frequencies.size());
    const View<float, 3> vectors(rows.data, {rows.shape[0], heads, d}, {rows.strides[0], d, 1});
    nn::rotate_rows(vectors, run_.work.cos[at].rows(rows.shape[0], pairs),
                    run_.work.sin[at].rows(rows.shape[0], pairs),
                    {.pairing = how.pairing, .rotary = 2 * pairs}, run_.context);
  }

  // The rows' own q, k, v; k and v go into the cache where there is one.
  void self(const View<float, 2>& in, const View<float, 2>& out) const {
    const Attention& a = layer_.self;
    const AttentionWeights& w = weights_.self;
    const index_t rows = in.shape[0], keys = a.heads * a.d_k, values = keys + a.kv_heads * a.d_k;
    const View<float, 2> qkv = run_.work.in.rows(rows, values + a.kv_heads * a.d_v);
    w.in.apply(in, qkv, run_.context);
    const View<float, 2> q = columns(qkv, 0, keys), k = columns(qkv, keys, values - keys),
                         v = columns(qkv, values, a.kv_heads * a.d_v);
    if (a.qk_norm) {
      norm_heads(q, a.heads, a.d_k, *a.qk_norm, w.q_norm);
      norm_heads(k, a.kv_heads, a.d_k, *a.qk_norm, w.k_norm);
    }
    if (a.rotary >= 0) {
      turn(q, a.heads, a.d_k, a.rotary);
      turn(k, a.kv_heads, a.d_k, a.rotary);
    }
    see(kSelf.q, q, a.heads);
    see(kSelf.k, k, a.kv_heads);
    see(kSelf.v, v, a.kv_heads);
    const View<float, 2> attended = run_.work.attended.rows(rows, a.heads * a.d_v);
    if (run_.self != nullptr)
      attend_cached(a, kSelf, qkv, attended);
    else
      attend_rows(a, qkv, attended);
    project(kSelf, a.heads, w, attended, out);
  }

  void project(const Parts& parts, index_t heads, const AttentionWeights& w,
               const View<float, 2>& attended, const View<float, 2>& out) const {
    see(parts.out, attended, heads);
    w.out.apply(attended, out, run_.context);
    see(parts.projected, out);
  }

  void attend_cached(const Attention& a, const Parts& parts, const View<float, 2>& qkv,
                     const View<float, 2>& attended) const {
    const index_t column = a.heads * a.d_k;
    KvCache& cache = (*run_.self)[static_cast<std::size_t>(n_)];
    for (const Span& span : run_.spans) {
      const View<float, 4> k = heads_of(qkv, column, a.kv_heads, a.d_k, 1, span.rows);
      const View<float, 4> v =
          heads_of(qkv, column + a.kv_heads * a.d_k, a.kv_heads, a.d_v, 1, span.rows);
      cache.append(span.keys, of_span(k, span.row), of_span(v, span.row));
    }
    over_cache(a, parts, qkv, cache, [](const Span& span) { return span.keys; }, attended);
  }

  // q's rows over what the cache holds: in one call if all texts have as many rows.
  template <class Sequence>
  void over_cache(const Attention& a, const Parts& parts, const View<float, 2>& q,
                  const KvCache& cache, const Sequence& sequence,
                  const View<float, 2>& attended) const {
    const AttentionOptions& options = &parts == &kSelf ? calls_.self : calls_.cross;
    const bool is_seen = is_looked_at(parts);
    if (!is_seen && are_alike(run_.spans)) {
      std::vector<index_t> sequences;
      for (const Span& span : run_.spans) sequences.push_back(sequence(span));
      const auto count = static_cast<index_t>(sequences.size());
      const index_t length = run_.spans[0].rows;
      attend(heads_of(q, 0, a.heads, a.d_k, count, length), cache.input(sequences),
             heads_of(attended, 0, a.heads, a.d_v, count, length), options, {}, run_.context);
      return;
    }
    for (const Span& span : run_.spans) {
      const View<float, 4> mine = alone(heads_of(q, 0, a.heads, a.d_k, 1, span.rows), span);
      const View<float, 4> out = alone(heads_of(attended, 0, a.heads, a.d_v, 1, span.rows), span);
      const Lookers lookers = is_seen ? lookers_of(span) : Lookers{};
      if (!is_anybody(lookers)) {
        attend(mine, cache.input({sequence(span)}), out, options, {}, run_.context);
        continue;
      }
      const bool is_cross = &parts == &kCross;
      const auto own = [&](index_t column, index_t d) {  // rows of q are those of q | k | v
        return is_cross ? View<float, 4>()
                        : alone(heads_of(q, column, a.kv_heads, d, 1, span.rows), span);
      };
      attend_seen(
          {run_.name, n_, is_cross, span, mine, own(a.heads * a.d_k, a.d_k),
           own(a.heads * a.d_k + a.kv_heads * a.d_k, a.d_v), out, &cache, sequence(span), options},
          row_state(a.heads, span.rows), lookers, run_.context);
    }
  }

  // Without a cache: a text's rows attend to each other.
  void attend_rows(const Attention& a, const View<float, 2>& qkv,
                   const View<float, 2>& attended) const {
    const index_t column = a.heads * a.d_k;
    const bool is_seen = is_looked_at(kSelf);
    const auto over = [&](index_t count, index_t length) {
      return std::array{
          heads_of(qkv, 0, a.heads, a.d_k, count, length),
          heads_of(qkv, column, a.kv_heads, a.d_k, count, length),
          heads_of(qkv, column + a.kv_heads * a.d_k, a.kv_heads, a.d_v, count, length),
          heads_of(attended, 0, a.heads, a.d_v, count, length)};
    };
    if (!is_seen && are_alike(run_.spans)) {
      const auto [q, k, v, out] = over(static_cast<index_t>(run_.spans.size()), run_.spans[0].rows);
      attend(q, k, v, out, calls_.self, {}, run_.context);
      return;
    }
    for (const Span& span : run_.spans) {
      auto [q, k, v, out] = over(1, span.rows);
      for (View<float, 4>* some : {&q, &k, &v, &out}) *some = alone(*some, span);
      const Lookers lookers = is_seen ? lookers_of(span) : Lookers{};
      if (is_anybody(lookers))
        attend_seen({run_.name, n_, false, span, q, k, v, out, nullptr, 0, calls_.self},
                    row_state(a.heads, span.rows), lookers, run_.context);
      else
        attend(q, k, v, out, calls_.self, {}, run_.context);
    }
  }

  bool is_looked_at(const Parts& parts) const {
    return run_.heads != nullptr || wants(parts.scores) || wants(parts.weights) || wants(parts.lse);
  }
  Lookers lookers_of(const Span& span) const {
    Lookers by;
    if (run_.taps != nullptr && span.place == run_.taps->sequence) by.taps = run_.taps;
    if (run_.heads != nullptr && span.place == run_.heads->options.sequence) by.heads = run_.heads;
    return by;
  }
  static bool is_anybody(const Lookers& by) { return by.taps != nullptr || by.heads != nullptr; }

  RowState row_state(index_t heads, index_t rows) const {
    const View<float, 2> max = run_.work.row_max.rows(heads, rows),
                         sum = run_.work.row_sum.rows(heads, rows);
    return {.max = View<float, 3>(max.data, {1, heads, rows}),
            .sum = View<float, 3>(sum.data, {1, heads, rows}),
            .lse = {}};
  }

  void cross(const View<float, 2>& in, const View<float, 2>& out) const {
    const Attention& a = *layer_.cross;
    const AttentionWeights& w = weights_.cross;
    const index_t rows = in.shape[0];
    const View<float, 2> q = run_.work.in.rows(rows, a.heads * a.d_k);
    w.in.apply(in, q, run_.context);
    if (a.qk_norm) norm_heads(q, a.heads, a.d_k, *a.qk_norm, w.q_norm);
    see(kCross.q, q, a.heads);
    const View<float, 2> attended = run_.work.attended.rows(rows, a.heads * a.d_v);
    over_cache(
        a, kCross, q, (*run_.cross)[static_cast<std::size_t>(n_)],
        [](const Span& span) { return span.memory; }, attended);
    project(kCross, a.heads, w, attended, out);
  }

  void feed_forward(const View<float, 2>& in, const View<float, 2>& out) const {
    const FeedForward& f = layer_.ffn;
    const View<float, 2> inner =
        run_.work.inner.rows(in.shape[0], f.is_gated ? 2 * f.width : f.width);
    weights_.ffn.in.apply(in, inner, run_.context);
    const View<float, 2> up = columns(inner, f.is_gated ? f.width : 0, f.width);
    const View<float, 2> bent = columns(inner, 0, f.width);
    if (f.is_gated)
      nn::gate_rows(bent, up, f.activation, run_.context);
    else
      nn::activate_rows(bent, f.activation, run_.context);
    see(Point::ffn_inner, bent);
    weights_.ffn.out.apply(bent, out, run_.context);
    see(Point::ffn_out, out);
  }

  const StackRun& run_;
  index_t n_;
  const Layer& layer_;
  const LayerWeights& weights_;
  const LayerCalls& calls_;
};

AttentionOptions call_of(const Attention& a) {
  AttentionOptions options;
  options.scale = a.scale;
  options.softcap = a.softcap;
  if (a.is_causal) options.mask = Mask::causal();
  if (a.is_causal && a.window > 0)
    options.mask = options.mask & Mask::window(a.window - 1, index_t{0});
  return options;
}

// cos and sin of every row's position, of every rotary of the stack.
void make_angles(const StackRun& run, index_t rows) {
  run.work.cos.resize(run.stack.rotaries.size());
  run.work.sin.resize(run.stack.rotaries.size());
  for (std::size_t r = 0; r < run.stack.rotaries.size(); ++r) {
    const Rotary& rotary = run.stack.rotaries[r];
    const auto pairs = static_cast<index_t>(rotary.frequencies.size());
    const View<float, 2> cos = run.work.cos[r].rows(rows, pairs),
                         sin = run.work.sin[r].rows(rows, pairs);
    for (const Span& span : run.spans)
      for (index_t i = 0; i < span.rows; ++i)
        for (index_t n = 0; n < pairs; ++n) {
          const double angle = static_cast<double>(span.position + i) *
                               rotary.frequencies[static_cast<std::size_t>(n)];
          cos(span.row + i, n) = static_cast<float>(math::cos(angle) * rotary.amplitude);
          sin(span.row + i, n) = static_cast<float>(math::sin(angle) * rotary.amplitude);
        }
  }
}

}  // namespace

std::vector<LayerCalls> layer_calls(const Stack& stack, const StackWeights& weights) {
  std::vector<LayerCalls> calls;
  for (const Layer& layer : stack.layers) {
    LayerCalls& call = calls.emplace_back();
    call.self = call_of(layer.self);
    if (layer.cross) call.cross = call_of(*layer.cross);
    if (!layer.self.has_relative || !stack.relative) continue;
    Bias::T5 relative;
    relative.buckets = stack.relative->buckets;
    relative.heads = layer.self.heads;
    relative.table.assign(weights.relative.begin(), weights.relative.end());
    relative.is_bidirectional = stack.relative->is_two_sided;
    relative.max_distance = stack.relative->max_distance;
    call.self.bias = Bias::t5(std::move(relative));
  }
  return calls;
}

void apply_norm(const Norm& norm, const NormWeights& weights, const View<const float, 2>& x,
                const View<float, 2>& y, const Context& context) {
  if (norm.kind == NormKind::layer) {
    nn::layer_norm_rows(x, weights.gain, weights.bias, norm.eps, y, context);
    return;
  }
  nn::rms_norm_rows(x, weights.gain, norm.eps, y, context);
  if (weights.bias.empty()) return;  // no family's files have one
  for (index_t r = 0; r < y.shape[0]; ++r)
    for (index_t e = 0; e < y.shape[1]; ++e) y(r, e) += weights.bias[static_cast<std::size_t>(e)];
}

void run_layers(const StackRun& run, const View<float, 2>& x) {
  make_angles(run, x.shape[0]);
  for (std::size_t n = 0; n < run.stack.layers.size(); ++n)
    LayerRun(run, static_cast<index_t>(n)).run(x);
}

}  // namespace glasshead::model
