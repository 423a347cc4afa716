// Mistakes before the first layer and behind the last.
#include <algorithm>
#include <cmath>

#include "port/edits.h"

namespace glasshead::port {
namespace {

double root(index_t n) { return std::sqrt(static_cast<double>(n)); }

Variants scale_missing(const Subject& s) {
  return once(is_embedding(s) && s.description.embedding.scale != 1,
              on_embedding([](const Subject& at) { at.description.embedding.scale = 1; }));
}

Variants other_scales(const Subject& s) {
  if (!is_embedding(s)) return {};
  const double now = s.description.embedding.scale, d = root(s.description.d_model);
  struct Named {
    const char* name;
    double value;
  };
  Variants found;
  for (const Named& named : {Named{"sqrt(d_model)", d}, Named{"1/sqrt(d_model)", 1 / d},
                             Named{"rounded to bf16", widen(narrow_to_bf16(now))},
                             Named{"rounded to f16", widen(narrow_to_f16(now))}})
    if (named.value != now)
      found.push_back({named.name, on_embedding([value = named.value](const Subject& at) {
                         at.description.embedding.scale = value;
                       })});
  return found;
}

bool has_positions(const Subject& s) {
  return is_embedding(s) && s.description.embedding.positions > 0;
}

Variants positions_missing(const Subject& s) {
  return once(has_positions(s),
              on_embedding([](const Subject& at) { at.description.embedding.positions = 0; }));
}

// Rows of the table that a shift would need and that are not there: no such variant.
Variants shifted(const Subject& s) {
  if (!has_positions(s)) return {};
  Variants found;
  for (const index_t n : {1, -1, 2, -2, 3, 4, 5, 6, 7, 8}) {
    const index_t first = s.description.embedding.first_position + n;
    if (first < 0) continue;
    found.push_back({std::to_string(n), on_embedding([n](const Subject& at) {
                       model::Embedding& e = at.description.embedding;
                       std::vector<float>& table = at.weights.embedding.positions;
                       // Behind the table's end nothing is read: rows of 0 stand there.
                       table.resize(static_cast<std::size_t>((e.positions + 8) * e.width), 0.F);
                       e.first_position += n;
                       e.uncounted.reset();
                     })});
  }
  return found;
}

Variants padding_counted(const Subject& s) {
  return once(has_positions(s) && s.description.embedding.uncounted.has_value(),
              on_embedding([](const Subject& at) { at.description.embedding.uncounted.reset(); }));
}

Variants types_missing(const Subject& s) {
  return once(is_embedding(s) && s.description.embedding.token_types > 0,
              on_embedding([](const Subject& at) {
                std::vector<float>& table = at.weights.embedding.token_types;
                std::fill(table.begin(), table.end(), 0.F);
              }));
}

// All tokens of one type: of the first, of the second.
Variants other_types(const Subject& s) {
  if (!is_embedding(s) || s.description.embedding.token_types < 2) return {};
  const auto all = [](index_t type) {
    return on_embedding([type](const Subject& at) {
      const index_t width = at.description.embedding.width;
      std::vector<float>& table = at.weights.embedding.token_types;
      const std::vector<float> row(table.begin() + type * width,
                                   table.begin() + (type + 1) * width);
      for (index_t n = 0; n < at.description.embedding.token_types; ++n)
        std::copy(row.begin(), row.end(), table.begin() + n * width);
    });
  };
  return {{"all 0", all(0)}, {"all 1", all(1)}};
}

bool makes_logits(const Subject& s) { return is_end(s) && s.description.head.has_logits; }

Variants softcap_missing(const Subject& s) {
  return once(makes_logits(s) && s.description.head.softcap > 0,
              on_end([](const Subject& at) { at.description.head.softcap = 0; }));
}

Variants other_softcaps(const Subject& s) {
  if (!makes_logits(s)) return {};
  Variants found;
  for (const double cap : {30.0, 50.0})
    if (cap != s.description.head.softcap)
      found.push_back(
          {shown(cap), on_end([cap](const Subject& at) { at.description.head.softcap = cap; })});
  return found;
}

Variants head_scale_missing(const Subject& s) {
  return once(makes_logits(s) && s.description.head.scale != 1,
              on_end([](const Subject& at) { at.description.head.scale = 1; }));
}

Variants head_scaled(const Subject& s) {
  if (!makes_logits(s) || s.description.head.scale != 1) return {};
  const auto by = [](double (*factor)(index_t)) {
    return on_end([factor](const Subject& at) {
      at.description.head.scale = factor(at.description.d_model);
    });
  };
  return {{"1/sqrt(d_model)", by([](index_t d) { return 1 / root(d); })},
          {"sqrt(d_model)", by([](index_t d) { return root(d); })}};
}

Variants head_bias_missing(const Subject& s) {
  return once(makes_logits(s) && s.description.head.has_bias,
              on_end([](const Subject& at) { at.description.head.has_bias = false; }));
}

// The token table where the head has a matrix of its own.
Variants head_tied(const Subject& s) {
  const bool fits = makes_logits(s) && !s.description.head.is_tied &&
                    s.weights.embedding.tokens.in() == s.weights.head.logits.in();
  return once(fits, on_end([](const Subject& at) {
                at.weights.head.logits = at.weights.embedding.tokens;
              }));
}

bool has_transform(const Subject& s) {
  return makes_logits(s) && s.description.head.transform.has_value();
}

Variants transform_missing(const Subject& s) {
  return once(has_transform(s) && s.weights.head.logits.in() == s.description.d_model,
              on_end([](const Subject& at) { at.description.head.transform.reset(); }));
}

Variants transform_activation(const Subject& s) {
  if (!has_transform(s)) return {};
  Variants found;
  using nn::Activation;
  for (const Activation other : {Activation::gelu, Activation::gelu_tanh, Activation::relu,
                                 Activation::quick_gelu, Activation::none})
    if (other != s.description.head.transform->activation)
      found.push_back({nn::name(other), on_end([other](const Subject& at) {
                         if (at.description.head.transform)
                           at.description.head.transform->activation = other;
                       })});
  return found;
}

}  // namespace

std::vector<Hypothesis> end_hypotheses() {
  return {
      {"embedding-scale-missing", "embedding not scaled", "token rows go in as they are stored",
       "x = table[ids]", "x = table[ids] * sqrt(d_model)", scale_missing},
      {"embedding-scale-other", "embedding scaled by another number",
       "token rows are multiplied by this", "x = table[ids] * sqrt(d_model)",
       "find out what the model's code multiplies by, and in which type", other_scales},
      {"positions-missing", "learned positions missing", "no position row is added",
       "x = words[ids]", "x = words[ids] + positions[0 : n]", positions_missing},
      {"positions-shifted", "positions off",
       "tokens stand K rows further down the table of "
       "positions",
       "positions = arange(n)",
       "find out which row the first token has: RoBERTa's is the padding id + 1", shifted},
      {"padding-counted", "padding takes up positions",
       "tokens behind padding stand further down the table of positions", "positions = arange(n)",
       "positions = cumsum(ids != pad) * (ids != pad) + pad", padding_counted},
      {"token-type-missing", "token types missing", "no row of token types is added",
       "x = words + positions", "x = words + positions + types[0], for a single text, too",
       types_missing},
      {"token-type-other", "other token types", "tokens are given another type than the text has",
       "token_type_ids = zeros(n)", "give each text of a pair its type", other_types},
      {"logits-softcap-missing", "softcap of the logits missing", "logits are not squashed",
       "logits = head(x)", "logits = cap * tanh(head(x) / cap)", softcap_missing},
      {"logits-softcap-other", "another softcap of the logits",
       "logits are squashed by another number, or at all", "final_logit_softcapping",
       "read it from the configuration: scores and logits have their own", other_softcaps},
      {"head-scale-missing", "rows not scaled before the head",
       "the tied head reads rows as they are", "logits = x @ table.T",
       "logits = (x * d_model ** -0.5) @ table.T", head_scale_missing},
      {"head-scale-added", "rows scaled before the head", "the head's rows are multiplied by this",
       "x * d_model ** -0.5", "this model's head reads rows as they are", head_scaled},
      {"head-bias-missing", "bias of the head missing", "the head's bias is not added",
       "logits = x @ w.T", "logits = x @ w.T + bias", head_bias_missing},
      {"head-tied", "token table used as the head",
       "the head has a matrix of its own, and the token table is used", "tie_word_embeddings",
       "read lm_head.weight", head_tied},
      {"head-transform-missing", "the head's own layer missing",
       "the last rows go straight into the table", "logits = x @ table.T",
       "logits = norm(act(dense(x))) @ table.T + bias", transform_missing},
      {"head-activation-other", "another activation in the head",
       "the head's own layer bends its numbers by this", "gelu(dense(x))",
       "read hidden_act from the configuration", transform_activation},
  };
}

}  // namespace glasshead::port
