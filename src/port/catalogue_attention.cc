// Mistakes between q, k, v and what attention makes of them.
#include <algorithm>
#include <cmath>

#include "port/edits.h"

namespace glasshead::port {
namespace {

using model::Attention;

double root(index_t n) { return std::sqrt(static_cast<double>(n)); }

// A layer's attention, self and cross alike.
Edit on_attentions(const std::function<void(const Subject&, Attention&)>& change) {
  return on_layers([change](const Subject& s) {
    change(s, s.layer().self);
    if (s.layer().cross) change(s, *s.layer().cross);
  });
}
Edit on_self(const std::function<void(const Subject&, Attention&)>& change) {
  return on_layers([change](const Subject& s) { change(s, s.layer().self); });
}
Edit on_cross(const std::function<void(const Subject&, Attention&)>& change) {
  return on_layers([change](const Subject& s) {
    if (s.layer().cross) change(s, *s.layer().cross);
  });
}

Variants scale_missing(const Subject& s) {
  return once(is_layer(s) && s.original().self.scale != 1,
              on_attentions([](const Subject&, Attention& a) { a.scale = 1; }));
}

Variants other_scales(const Subject& s) {
  if (!is_layer(s)) return {};
  struct Named {
    const char* name;
    double (*of)(const Attention&, const model::Description&);
  };
  static constexpr Named kNamed[] = {
      {"1/sqrt(d_k)",
       [](const Attention& a, const model::Description&) { return 1 / root(a.d_k); }},
      {"1/sqrt(d_model)",
       [](const Attention&, const model::Description& d) { return 1 / root(d.d_model); }},
      {"1/sqrt(d_model/heads)",
       [](const Attention& a, const model::Description& d) {
         return root(a.heads) / root(d.d_model);
       }},
      {"1/d_k", [](const Attention& a,
                   const model::Description&) { return 1 / static_cast<double>(a.d_k); }},
      {"1/sqrt(heads*d_k)",
       [](const Attention& a, const model::Description&) { return 1 / root(a.heads * a.d_k); }},
      {"1/sqrt(heads)",
       [](const Attention& a, const model::Description&) { return 1 / root(a.heads); }},
      {"1/sqrt(2*d_k)",
       [](const Attention& a, const model::Description&) { return 1 / root(2 * a.d_k); }},
      {"1/sqrt(d_k/2)",
       [](const Attention& a, const model::Description&) { return std::sqrt(2) / root(a.d_k); }},
      {"sqrt(d_k)", [](const Attention& a, const model::Description&) { return root(a.d_k); }},
      {"scale^2", [](const Attention& a, const model::Description&) { return a.scale * a.scale; }}};
  std::vector<double> seen{s.original().self.scale, 1};
  Variants found;
  for (const Named& named : kNamed) {
    const double scale = named.of(s.original().self, s.description);
    if (std::any_of(seen.begin(), seen.end(),
                    [&](double x) { return std::fabs(x - scale) <= 1e-9 * std::fabs(scale); }))
      continue;
    seen.push_back(scale);
    const auto set = [of = named.of](const Subject& at, Attention& a) {
      a.scale = of(a, at.description);
    };
    found.push_back({named.name, on_attentions(set)});
    if (!s.original().cross) continue;
    found.push_back({std::string(named.name) + " (self alone)", on_self(set)});
    found.push_back({std::string(named.name) + " (cross alone)", on_cross(set)});
  }
  return found;
}

Variants by_depth(const Subject& s) {
  return once(is_layer(s), on_self([](const Subject& at, Attention& a) {
                a.scale /= static_cast<double>(at.piece.layer + 1);
              }));
}

Variants softcap_missing(const Subject& s) {
  return once(is_layer(s) && s.original().self.softcap > 0,
              on_self([](const Subject&, Attention& a) { a.softcap = 0; }));
}

Variants other_softcaps(const Subject& s) {
  if (!is_layer(s)) return {};
  Variants found;
  for (const double cap : {50.0, 30.0, 20.0})
    if (s.original().self.softcap != cap)
      found.push_back(
          {shown(cap), on_self([cap](const Subject&, Attention& a) { a.softcap = cap; })});
  if (s.original().self.softcap > 0 && s.description.head.softcap > 0)
    found.push_back(
        {shown(s.description.head.softcap), on_self([](const Subject& at, Attention& a) {
           a.softcap = at.description.head.softcap;
         })});
  return found;
}

Variants window_missing(const Subject& s) {
  return once(is_layer(s) && s.original().self.window > 0,
              on_self([](const Subject&, Attention& a) { a.window = 0; }));
}

Variants other_windows(const Subject& s) {
  if (!is_layer(s) || s.original().self.window == 0) return {};
  Variants found;
  for (const index_t more : {1, -1, 2}) {
    if (s.original().self.window + more < 1) continue;
    found.push_back({std::to_string(more), on_self([more](const Subject&, Attention& a) {
                       if (a.window > 0) a.window += more;
                     })});
  }
  return found;
}

Variants window_everywhere(const Subject& s) {
  if (!is_layer(s) || s.original().self.window > 0) return {};
  index_t window = 0;
  for (const model::Layer& layer : s.whole.layers) window = std::max(window, layer.self.window);
  return once(window > 0 && s.original().self.is_causal,
              on_self([window](const Subject&, Attention& a) { a.window = window; }));
}

Variants causal_missing(const Subject& s) {
  return once(is_layer(s) && s.original().self.is_causal, on_self([](const Subject&, Attention& a) {
                a.is_causal = false;
                a.window = 0;
              }));
}

Variants causal_added(const Subject& s) {
  return once(is_layer(s) && !s.original().self.is_causal,
              on_self([](const Subject&, Attention& a) { a.is_causal = true; }));
}

// A rule for every token: beyond this many the cost, its cube, is not worth it.
constexpr index_t kMostStrict = 128;

// A row's own key is hidden; the first row, left without a key, has out 0.
Variants strict_mask(const Subject& s) {
  return once(is_layer(s) && s.original().self.is_causal && !s.piece.is_encoder,
              on_layers(nullptr, [](const Subject& at, const Numbers& numbers) {
                Placed placed;
                const index_t tokens = numbers.at(at.place("self.q")).shape[1];
                for (index_t j = 0; j < tokens && tokens <= kMostStrict; ++j)
                  placed.changes.push_back(HidePairs{.keys = {j}, .queries = {j}});
                return placed;
              }));
}

Edit reading(const std::function<index_t(const Attention&, index_t)>& source) {
  return on_layers(nullptr, [source](const Subject& at, const Numbers& numbers) {
    const Attention a = at.layer().self;
    return attention_over(at, numbers, [&](index_t h) { return source(a, h); });
  });
}

bool shares_keys(const Subject& s) {
  return is_layer(s) && s.original().self.kv_heads > 1 &&
         s.original().self.heads > s.original().self.kv_heads;
}

Variants tiled(const Subject& s) {
  return once(shares_keys(s),
              reading([](const Attention& a, index_t h) { return h % a.kv_heads; }));
}

Variants first_head(const Subject& s) {
  return once(shares_keys(s), reading([](const Attention&, index_t) { return index_t{0}; }));
}

// The numbers of [heads, tokens, d] read as [tokens, heads*d] without moving them, or the reverse.
Variants reshaped(const Subject& s) {
  if (!is_layer(s)) return {};
  Variants found;
  found.push_back({"out", on_layers(nullptr, [](const Subject& at, const Numbers& numbers) {
                     const FileTensor& out = numbers.at(at.place("self.out"));
                     Placed placed;
                     placed.before.emplace_back(at.place("self.out"), out);
                     placed.changes.push_back(
                         Patch{at.place("self.out"),
                               with_shape(out, {out.shape[1], out.shape[0] * out.shape[2]})});
                     return placed;
                   })});
  if (s.original().self.qk_norm) return found;
  found.push_back({"q, k and v",
                   on_layers([](const Subject& at) { at.layer().self.rotary = -1; },
                             [](const Subject& at, const Numbers& numbers) {
                               Placed placed;
                               for (const char* name : {"self.q", "self.k", "self.v"}) {
                                 if (at.knows(at.place(name))) continue;
                                 const FileTensor& x = numbers.at(at.place(name));
                                 FileTensor rows = make_tensor(DType::f32, x.shape);
                                 auto* const to = reinterpret_cast<float*>(rows.bytes.data());
                                 const index_t h = x.shape[0], n = x.shape[1], d = x.shape[2];
                                 for (index_t g = 0; g < h; ++g)
                                   for (index_t i = 0; i < n; ++i)
                                     for (index_t e = 0; e < d; ++e)
                                       to[(i * h + g) * d + e] =
                                           static_cast<float>(x.load((g * n + i) * d + e));
                                 const index_t rotary = at.original().self.rotary;
                                 const bool is_turned = rotary >= 0 && name[5] != 'v';
                                 if (is_turned)
                                   rows = turned(
                                       rows, at.stack().rotaries[static_cast<std::size_t>(rotary)]);
                                 placed.changes.push_back(Patch{at.place(name), rows});
                               }
                               return placed;
                             })});
  return found;
}

bool has_relative(const Subject& s) { return is_layer(s) && s.original().self.has_relative; }

Variants relative_missing(const Subject& s) {
  return once(has_relative(s),
              on_self([](const Subject&, Attention& a) { a.has_relative = false; }));
}

Variants relative_sides(const Subject& s) {
  return once(has_relative(s), on_layers([](const Subject& at) {
                at.stack().relative->is_two_sided = !at.stack().relative->is_two_sided;
              }));
}

Variants relative_distance(const Subject& s) {
  if (!has_relative(s)) return {};
  Variants found;
  for (const index_t distance : {128, 64, 256, 20})
    if (s.stack().relative->max_distance != distance)
      found.push_back({std::to_string(distance), on_layers([distance](const Subject& at) {
                         at.stack().relative->max_distance = distance;
                       })});
  return found;
}

}  // namespace

std::vector<Hypothesis> attention_hypotheses() {
  return {
      {"scale-missing", "scores not scaled", "q·k goes into the softmax as it is",
       "scores = q @ k.T", "multiply scores by the model's scale", scale_missing},
      {"scale-other", "another scale", "scores are multiplied by another number than the model's",
       "scale = head_dim ** -0.5",
       "take the scale from the configuration: head_dim is its own field, and some models have "
       "query_pre_attn_scalar or none",
       other_scales},
      {"scale-by-layer", "scale divided by the layer's number",
       "scores are also divided by layer + 1, which this model does not ask for",
       "scale_attn_by_inverse_layer_idx", "read the flag from the configuration", by_depth},
      {"softcap-missing", "softcap of the scores missing", "scores are not squashed",
       "scores = q @ k.T * scale", "scores = cap * tanh(scores / cap)", softcap_missing},
      {"softcap-other", "another softcap", "scores are squashed by another number, or at all",
       "attn_logit_softcapping", "read it from the configuration: scores and logits have their own",
       other_softcaps},
      {"window-missing", "window ignored", "every earlier key is seen", "mask = tril(ones(n, n))",
       "hide keys at position - window and before", window_missing},
      {"window-off", "window of another size", "the window is K keys wider",
       "allowed &= i - j <= window", "allowed &= i - j < window   the query's own key counts",
       other_windows},
      {"window-everywhere", "window where there is none",
       "this layer sees everything, and is given other layers' window", "layer_types",
       "give the window to the layers that have one", window_everywhere},
      {"causal-missing", "causal mask missing", "every key is seen, later ones too",
       "softmax(q @ k.T)", "hide later keys", causal_missing},
      {"causal-added", "causal mask where there is none", "later keys are hidden in an encoder",
       "is_causal=True", "an encoder reads both ways", causal_added},
      {"mask-strict", "own position hidden", "each query sees only keys before its own",
       "mask = tril(ones(n, n), -1)", "mask = tril(ones(n, n))", strict_mask},
      {"gqa-tiled", "key/value heads tiled, not repeated",
       "query head h reads key/value head h mod kv_heads", "k.repeat(1, group, 1, 1)",
       "k.repeat_interleave(group, dim=1)", tiled},
      {"gqa-first", "all query heads read the first key/value head",
       "key/value head 0 is broadcast", "k[:, :1]", "k.repeat_interleave(group, dim=1)",
       first_head},
      {"heads-reshaped", "reshaped where axes should be swapped",
       "[heads, tokens, d] is read as [tokens, heads*d], or the reverse, without a transpose",
       "out.reshape(n, heads * d)", "out.transpose(0, 1).reshape(n, heads * d)", reshaped},
      {"relative-missing", "relative position bias missing", "nothing is added to the scores",
       "only the first layer has the table",
       "the first layer's bias is added in every layer of the stack", relative_missing},
      {"relative-sides", "buckets of the other kind of stack",
       "one-sided buckets in an encoder, or two-sided ones in a decoder", "bidirectional=True",
       "bidirectional = not is_decoder", relative_sides},
      {"relative-distance", "another largest distance of the buckets",
       "buckets widen up to another distance", "relative_attention_max_distance",
       "read it from the configuration", relative_distance},
  };
}

}  // namespace glasshead::port
