// Mistakes in norms, wherever they stand.
#include <algorithm>

#include "port/edits.h"

namespace glasshead::port {
namespace {

using model::Norm;
using model::NormKind;
using model::NormWeights;

using OnWeights = std::function<void(NormWeights&)>;

// The norms of d_model numbers of a part, not those of q and k.
void each_norm(const Subject& s, const OnWeights& change) {
  if (is_layer(s)) {
    model::LayerWeights& w = s.layer_weights();
    for (NormWeights* norm :
         {&w.self.norm, &w.self.after, &w.cross.norm, &w.cross.after, &w.ffn.norm, &w.ffn.after})
      change(*norm);
  } else if (is_embedding(s)) {
    change(s.weights.embedding.norm);
  } else {
    change(s.stack_weights().final_norm);
    change(s.weights.head.transform_norm);
  }
}

void each_qk_norm(const Subject& s, const OnWeights& change) {
  if (!is_layer(s) || !s.layer().self.qk_norm) return;
  change(s.layer_weights().self.q_norm);
  change(s.layer_weights().self.k_norm);
}

// How they are made.
void each_kind(const Subject& s, const std::function<void(Norm&)>& change) {
  change(s.stack().norm);
  if (s.description.embedding.norm) change(*s.description.embedding.norm);
  if (s.description.head.transform) change(s.description.head.transform->norm);
}

bool has_qk_norm(const Subject& s) { return is_layer(s) && s.original().self.qk_norm.has_value(); }
bool has_norm(const Subject& s) {
  if (is_embedding(s)) return s.description.embedding.norm.has_value();
  if (is_end(s)) return s.stack().has_final_norm || s.description.head.transform.has_value();
  return true;
}
Norm norm_of(const Subject& s) {
  if (is_embedding(s) && s.description.embedding.norm) return *s.description.embedding.norm;
  return s.stack().norm;
}

// In all norms, in those of q and k alone, in all but those.
Variants of_weights(const Subject& s, const OnWeights& change) {
  Variants found;
  const auto add = [&](const char* parameter, bool does_rows, bool does_qk) {
    found.push_back({parameter,
                     {.change =
                          [change, does_rows, does_qk](const Subject& at) {
                            if (does_rows) each_norm(at, change);
                            if (does_qk) each_qk_norm(at, change);
                          },
                      .place = nullptr}});
  };
  if (has_norm(s) || has_qk_norm(s)) add("", true, true);
  if (has_qk_norm(s)) {
    add("q and k", false, true);
    add("all but q and k", true, false);
  }
  return found;
}

void add_to_gain(NormWeights& norm, float offset) {
  for (float& gain : norm.gain) gain += offset;
}

Variants offset_missing(const Subject& s) {
  if (norm_of(s).gain_offset != 1) return {};
  return of_weights(s, [](NormWeights& norm) { add_to_gain(norm, -1); });
}

Variants offset_added(const Subject& s) {
  return of_weights(s, [](NormWeights& norm) { add_to_gain(norm, 1); });
}

Variants gain_missing(const Subject& s) {
  return of_weights(s,
                    [](NormWeights& norm) { std::fill(norm.gain.begin(), norm.gain.end(), 1.F); });
}

Variants bias_missing(const Subject& s) {
  if (!has_norm(s) || norm_of(s).kind == NormKind::rms) return {};
  return of_weights(s, [](NormWeights& norm) { norm.bias.clear(); });
}

Variants other_eps(const Subject& s) {
  if (!has_norm(s) && !has_qk_norm(s)) return {};
  const auto with = [](double eps, bool does_rows, bool does_qk) {
    return Edit{.change =
                    [eps, does_rows, does_qk](const Subject& at) {
                      if (does_rows) each_kind(at, [eps](Norm& norm) { norm.eps = eps; });
                      if (does_qk && is_layer(at) && at.layer().self.qk_norm)
                        at.layer().self.qk_norm->eps = eps;
                    },
                .place = nullptr};
  };
  Variants found;
  for (const double eps : {1e-6, 1e-5, 1e-12, 1e-8, 1e-3, 0.0}) {
    if (eps == norm_of(s).eps) continue;
    found.push_back({shown(eps), with(eps, true, true)});
    if (!has_qk_norm(s)) continue;
    found.push_back({shown(eps) + " (q and k)", with(eps, false, true)});
    found.push_back({shown(eps) + " (all but q and k)", with(eps, true, false)});
  }
  return found;
}

Variants other_kind(const Subject& s) {
  const auto turned_over = [](bool keeps_bias) {
    return Edit{.change =
                    [keeps_bias](const Subject& at) {
                      each_kind(at, [](Norm& norm) {
                        norm.kind = norm.kind == NormKind::rms ? NormKind::layer : NormKind::rms;
                      });
                      if (!keeps_bias) each_norm(at, [](NormWeights& norm) { norm.bias.clear(); });
                    },
                .place = nullptr};
  };
  if (!has_norm(s)) return {};
  if (norm_of(s).kind == NormKind::rms) return {{"mean subtracted", turned_over(true)}};
  return {{"mean not subtracted", turned_over(true)},
          {"mean not subtracted, no bias", turned_over(false)}};
}

Variants qk_missing(const Subject& s) {
  return once(has_qk_norm(s),
              on_layers([](const Subject& at) { at.layer().self.qk_norm.reset(); }));
}

Variants qk_swapped(const Subject& s) {
  return once(has_qk_norm(s), on_layers([](const Subject& at) {
                std::swap(at.layer_weights().self.q_norm, at.layer_weights().self.k_norm);
              }));
}

Variants other_placement(const Subject& s) {
  if (!is_layer(s)) return {};
  using model::Placement;
  const auto to = [](Placement placement) {
    return on_layers([placement](const Subject& at) { at.stack().placement = placement; });
  };
  switch (s.stack().placement) {
    case Placement::pre:
      return {{"after the sum", to(Placement::post)}};
    case Placement::post:
      return {{"before each part", to(Placement::pre)}};
    case Placement::sandwich:
      return {{"none behind the parts", to(Placement::pre)}};
  }
  return {};
}

Variants final_missing(const Subject& s) {
  return once(is_end(s) && s.stack().has_final_norm,
              on_end([](const Subject& at) { at.stack().has_final_norm = false; }));
}

Variants embedding_missing(const Subject& s) {
  return once(is_embedding(s) && s.description.embedding.norm.has_value(),
              on_embedding([](const Subject& at) { at.description.embedding.norm.reset(); }));
}

}  // namespace

std::vector<Hypothesis> norm_hypotheses() {
  return {
      {"norm-offset-missing", "gain taken as it is stored",
       "the files hold gain - 1: x·w, not "
       "x·(1 + w)",
       "x * weight", "x * (1 + weight)", offset_missing},
      {"norm-offset-added", "1 added to the gain", "x·(1 + w) where the gain is w",
       "x * (1 + weight)", "x * weight   a converter may have added the 1 already", offset_added},
      {"norm-eps", "another epsilon", "the norm adds another number to the mean square", "eps=1e-5",
       "read rms_norm_eps or layer_norm_eps from the configuration", other_eps},
      {"norm-kind", "a norm of the other kind",
       "LayerNorm where RMSNorm belongs, or RMSNorm where LayerNorm does",
       "x / sqrt(mean(x**2) + eps)", "a LayerNorm subtracts the mean first; an RMSNorm doesn't",
       other_kind},
      {"norm-gain-missing", "gain of a norm missing", "the norm's weight is not multiplied",
       "layer_norm(x, weight=None)", "multiply by the norm's weight", gain_missing},
      {"norm-bias-missing", "bias of a norm missing", "the norm's bias is not added",
       "layer_norm(x, weight)", "add the norm's bias", bias_missing},
      {"qk-norm-missing", "norm of q and k missing", "each head's q and k go on unnormed",
       "q = rope(w_q(x))", "q = rope(q_norm(w_q(x)))", qk_missing},
      {"qk-norm-swapped", "gains of q's and k's norms swapped", "q is normed with k's weight",
       "q = k_norm(q)", "q = q_norm(q); k = k_norm(k)", qk_swapped},
      {"norm-placement", "norms in other places",
       "norms stand before where they belong behind, or "
       "the reverse, or some are left out",
       "x = x + f(norm(x))   or   x = norm(x + f(x))", "put them where the model's code has them",
       other_placement},
      {"final-norm-missing", "final norm missing",
       "the last layer's rows go into the head as they "
       "are",
       "logits = head(x)", "logits = head(norm(x))", final_missing},
      {"embedding-norm-missing", "norm of the embedding missing",
       "the embedding's sum goes on unnormed", "x = words + positions",
       "x = norm(words + "
       "positions + types)",
       embedding_missing},
  };
}

}  // namespace glasshead::port
