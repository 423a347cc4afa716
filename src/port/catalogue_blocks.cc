// Mistakes in feed-forward layers, and in how a layer's parts are put together.
#include <algorithm>

#include "model/block.h"
#include "port/edits.h"

namespace glasshead::port {
namespace {

using model::Placement;
using nn::Activation;

Variants other_activations(const Subject& s) {
  if (!is_layer(s)) return {};
  Variants found;
  for (const Activation activation : {Activation::gelu, Activation::gelu_tanh, Activation::silu,
                                      Activation::relu, Activation::quick_gelu, Activation::none})
    if (activation != s.original().ffn.activation)
      found.push_back({nn::name(activation), on_layers([activation](const Subject& at) {
                         at.layer().ffn.activation = activation;
                       })});
  return found;
}

Variants gate_swapped(const Subject& s) {
  return once(is_layer(s) && s.original().ffn.is_gated, on_layers([](const Subject& at) {
                edit(at.layer_weights().ffn.in, [](Dense& d) {
                  std::rotate(d.w.begin(), d.w.begin() + d.out / 2 * d.in, d.w.end());
                  std::rotate(d.bias.begin(), d.bias.begin() + d.out / 2, d.bias.end());
                });
              }));
}

Variants gate_missing(const Subject& s) {
  if (!is_layer(s) || !s.original().ffn.is_gated) return {};
  const auto keep = [](bool keeps_gate) {
    return on_layers([keeps_gate](const Subject& at) {
      if (!at.layer().ffn.is_gated) return;
      at.layer().ffn.is_gated = false;
      edit(at.layer_weights().ffn.in, [keeps_gate](Dense& d) {
        const index_t half = d.out / 2, first = keeps_gate ? 0 : half;
        d.w = {d.w.begin() + first * d.in, d.w.begin() + (first + half) * d.in};
        d.bias = {d.bias.begin() + first, d.bias.begin() + first + half};
        d.out = half;
      });
    });
  };
  return {{"activation(gate) alone", keep(true)}, {"activation(up) alone", keep(false)}};
}

// x + part(x) without x: the part's result is put in less x, so that the sum is the part.
Variants residual_missing(const Subject& s) {
  if (!is_layer(s) || s.stack().placement == Placement::sandwich) return {};
  Variants found;
  found.push_back({"attention", on_layers(nullptr, [](const Subject& at, const Numbers& numbers) {
                     Placed placed;
                     const std::string name = at.place("self.projected");
                     placed.changes.push_back(
                         Patch{name, sum(numbers.at(name), numbers.at(at.place("in")), -1)});
                     placed.not_compared.push_back(name);
                     return placed;
                   })});
  if (s.stack().placement == Placement::pre)
    found.push_back(
        {"feed-forward", on_layers(nullptr, [](const Subject& at, const Numbers& numbers) {
           Placed placed;
           placed.changes.push_back(Patch{at.place("out"), numbers.at(at.place("ffn.out"))});
           return placed;
         })});
  return found;
}

// The normed rows are added where the rows themselves belong.
Variants residual_normed(const Subject& s) {
  if (!is_layer(s) || s.stack().placement != Placement::pre) return {};
  const auto attention = [](const Subject& at, const Numbers& numbers) {
    Placed placed;
    const std::string name = at.place("self.projected");
    if (!numbers.has(at.place("self.norm"))) return placed;
    const FileTensor normed =
        sum(numbers.at(at.place("self.norm")), numbers.at(at.place("in")), -1);
    placed.changes.push_back(Patch{name, sum(numbers.at(name), normed, 1)});
    placed.not_compared.push_back(name);
    return placed;
  };
  const auto ffn = [](const Subject& at, const Numbers& numbers) {
    Placed placed;
    if (!numbers.has(at.place("ffn.norm"))) return placed;
    placed.changes.push_back(Patch{at.place("out"), sum(numbers.at(at.place("ffn.out")),
                                                        numbers.at(at.place("ffn.norm")), 1)});
    return placed;
  };
  return {{"attention", on_layers(nullptr, attention)}, {"feed-forward", on_layers(nullptr, ffn)}};
}

Variants parallel(const Subject& s) {
  return once(is_layer(s) && s.stack().placement == Placement::pre && !s.original().cross,
              on_layers(nullptr, [](const Subject& at, const Numbers& numbers) {
                Placed placed;
                placed.changes.push_back(
                    Patch{at.place("ffn.norm"), normed(numbers.at(at.place("in")), at.stack().norm,
                                                       at.layer_weights().ffn.norm)});
                return placed;
              }));
}

}  // namespace

std::vector<Hypothesis> block_hypotheses() {
  return {
      {"activation-other", "another activation", "the feed-forward layer bends its numbers by this",
       "gelu(x)   gelu(x, approximate='tanh')   silu(x)",
       "read hidden_act from the configuration; gelu_new and gelu_pytorch_tanh are the tanh form",
       other_activations},
      {"gate-up-swapped", "gate and up swapped", "up is bent and multiplied by gate",
       "act(up(x)) * gate(x)", "act(gate(x)) * up(x)", gate_swapped},
      {"gate-missing", "half of a gated layer missing", "gate and up are not multiplied",
       "down(act(up(x)))", "down(act(gate(x)) * up(x))", gate_missing},
      {"residual-missing", "residual missing",
       "what enters this part of the layer is not added to "
       "what it gives",
       "x = f(norm(x))", "x = x + f(norm(x))", residual_missing},
      {"residual-normed", "residual taken behind the norm",
       "the normed rows are added instead of the rows", "x = norm(x); x = x + f(x)",
       "x = x + f(norm(x))", residual_normed},
      {"block-parallel", "attention and feed-forward side by side",
       "the feed-forward layer reads what enters the layer",
       "x + attention(norm1(x)) + "
       "ffn(norm2(x))",
       "x = x + attention(norm1(x)); x = x + ffn(norm2(x))", parallel},
  };
}

}  // namespace glasshead::port
