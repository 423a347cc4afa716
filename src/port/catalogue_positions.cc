// Mistakes in rotary positions.
#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "port/edits.h"

namespace glasshead::port {
namespace {

using model::Rotary;

bool turns(const Subject& s) { return is_layer(s) && s.original().self.rotary >= 0; }

Rotary& rotary(const Subject& s) {
  return s.stack().rotaries[static_cast<std::size_t>(s.original().self.rotary)];
}

// base^(-2i/span) for i < pairs
std::vector<double> frequencies(double base, std::size_t pairs, double span) {
  std::vector<double> made;
  for (std::size_t i = 0; i < pairs; ++i)
    made.push_back(math::pow(base, -2 * static_cast<double>(i) / span));
  return made;
}

// Of every layer that turns.
Edit with_rotary(const std::function<void(const Subject&, Rotary&)>& change) {
  return on_layers([change](const Subject& s) {
    if (turns(s)) change(s, rotary(s));
  });
}

// Of the layers that turn as this one does.
Edit with_this_rotary(const Subject& s,
                      const std::function<void(const Subject&, Rotary&)>& change) {
  return on_layers([change, from = s.original().self.rotary](const Subject& at) {
    if (at.original().self.rotary == from) change(at, rotary(at));
  });
}

// q and k as they are before they turn, to be turned by `make(s, x, is_q)`.
Edit by_hand(const std::function<FileTensor(const Subject&, const FileTensor&, bool)>& make) {
  return on_layers([](const Subject& s) { s.layer().self.rotary = -1; },
                   [make](const Subject& s, const Numbers& numbers) {
                     Placed placed;
                     if (!turns(s)) return placed;
                     for (const bool is_q : {true, false}) {
                       const std::string name = s.place(is_q ? "self.q" : "self.k");
                       if (s.knows(name)) continue;  // turned, and right
                       placed.changes.push_back(Patch{name, make(s, numbers.at(name), is_q)});
                     }
                     return placed;
                   });
}

Variants other_pairing(const Subject& s) {
  return once(turns(s), with_rotary([](const Subject&, Rotary& r) {
                r.pairing = r.pairing == nn::RopePairing::halves ? nn::RopePairing::adjacent
                                                                 : nn::RopePairing::halves;
              }));
}

Variants other_base(const Subject& s) {
  if (!turns(s) || !rotary(s).scaling.empty()) return {};
  std::vector<double> bases{10000, 500000, 1000000, 100000, 160000, 5000000, 1000};
  for (const Rotary& other : s.whole.rotaries) bases.push_back(other.base);
  std::vector<double> seen{rotary(s).base};
  Variants found;
  for (const double base : bases) {
    if (std::find(seen.begin(), seen.end(), base) != seen.end()) continue;
    seen.push_back(base);
    found.push_back({shown(base), with_this_rotary(s, [base](const Subject&, Rotary& r) {
                       const std::size_t pairs = r.frequencies.size();
                       r.frequencies = frequencies(base, pairs, 2 * static_cast<double>(pairs));
                     })});
  }
  return found;
}

Variants scaling_missing(const Subject& s) {
  if (!turns(s) || rotary(s).scaling.empty()) return {};
  const auto plain = [](const Subject&, Rotary& r) {
    const std::size_t pairs = r.frequencies.size();
    r.frequencies = frequencies(r.base, pairs, 2 * static_cast<double>(pairs));
  };
  Variants found{{"", with_this_rotary(s, [plain](const Subject& at, Rotary& r) {
                    plain(at, r);
                    r.amplitude = 1;
                  })}};
  if (rotary(s).amplitude == 1) return found;
  found.push_back(
      {"amplitude", with_this_rotary(s, [](const Subject&, Rotary& r) { r.amplitude = 1; })});
  found.push_back({"frequencies", with_this_rotary(s, plain)});
  return found;
}

Variants other_exponent(const Subject& s) {
  if (!turns(s)) return {};
  const auto spread = [](double factor) {
    return with_rotary([factor](const Subject&, Rotary& r) {
      const std::size_t pairs = r.frequencies.size();
      r.frequencies = frequencies(r.base, pairs, factor * static_cast<double>(pairs));
    });
  };
  Variants found{{"-i/d", spread(4)}, {"-2i/(d/2)", spread(1)}};
  const auto d = static_cast<double>(s.original().self.d_k);
  const auto pairs = static_cast<double>(rotary(s).frequencies.size());
  if (2 * pairs < d) found.push_back({"-2i/head_dim", spread(d / pairs)});
  return found;
}

Variants other_size(const Subject& s) {
  if (!turns(s)) return {};
  const auto turn_first = [](index_t size) {
    return with_rotary([size](const Subject&, Rotary& r) {
      r.frequencies =
          frequencies(r.base, static_cast<std::size_t>(size / 2), static_cast<double>(size));
    });
  };
  const index_t d = s.original().self.d_k;
  const auto size = 2 * static_cast<index_t>(rotary(s).frequencies.size());
  Variants found;
  if (size < d && d % 2 == 0) found.push_back({"all", turn_first(d)});
  if (size % 4 == 0) found.push_back({"half", turn_first(size / 2)});
  return found;
}

Variants missing(const Subject& s) {
  return once(turns(s), on_layers([](const Subject& at) { at.layer().self.rotary = -1; }));
}

Variants one_side(const Subject& s) {
  if (!turns(s)) return {};
  const auto only = [](bool turns_q) {
    return by_hand([turns_q](const Subject& at, const FileTensor& x, bool is_q) {
      return is_q == turns_q ? turned(x, rotary(at)) : x;
    });
  };
  return {{"q", only(true)}, {"k", only(false)}};
}

Variants twice(const Subject& s) {
  if (!turns(s)) return {};
  const auto once_more = [](bool q, bool k) {
    return on_layers(nullptr, [q, k](const Subject& at, const Numbers& numbers) {
      Placed placed;
      for (const bool is_q : {true, false}) {
        const std::string name = at.place(is_q ? "self.q" : "self.k");
        if (turns(at) && (is_q ? q : k))
          placed.changes.push_back(Patch{name, turned(numbers.at(name), rotary(at))});
      }
      return placed;
    });
  };
  return {
      {"", once_more(true, true)}, {"q", once_more(true, false)}, {"k", once_more(false, true)}};
}

Variants reversed(const Subject& s) {
  return once(turns(s), with_rotary([](const Subject&, Rotary& r) {
                for (double& f : r.frequencies) f = -f;
              }));
}

// What an interleaved layout of the angles does to halves: pair i turns by the angle of another.
Variants mixed_angles(const Subject& s) {
  if (!turns(s)) return {};
  return once(true, by_hand([](const Subject& at, const FileTensor& x, bool) {
                // cos and sin repeated as for one pairing (a a b b, or a b a b), coordinates paired
                // as for the other: y = x·cos + rotated(x)·sin.
                const Rotary& how = rotary(at);
                FileTensor y = x;
                const index_t heads = x.shape[0], tokens = x.shape[1], d = x.shape[2];
                const auto pairs = static_cast<index_t>(how.frequencies.size());
                const bool is_halves = how.pairing == nn::RopePairing::halves;
                auto* const out = reinterpret_cast<float*>(y.bytes.data());
                for (index_t h = 0; h < heads; ++h)
                  for (index_t i = 0; i < tokens; ++i)
                    for (index_t e = 0; e < 2 * pairs; ++e) {
                      const index_t row = (h * tokens + i) * d;
                      const index_t angle_of = is_halves ? e / 2 : e % pairs;
                      const index_t partner =
                          is_halves ? (e < pairs ? e + pairs : e - pairs) : (e ^ 1);
                      const double sign = partner > e ? -1 : 1;
                      const double angle = static_cast<double>(i) *
                                           how.frequencies[static_cast<std::size_t>(angle_of)];
                      out[row + e] = static_cast<float>(
                          how.amplitude * (x.load(row + e) * math::cos(angle) +
                                           sign * x.load(row + partner) * math::sin(angle)));
                    }
                return y;
              }));
}

Variants shifted(const Subject& s) {
  if (!turns(s)) return {};
  const auto by = [](double q, double k) {
    return by_hand([q, k](const Subject& at, const FileTensor& x, bool is_q) {
      return turned(x, rotary(at), is_q ? q : k);
    });
  };
  Variants found;
  for (const int n : {1, -1, 2, 3, 4, 5, 6, 7, 8}) found.push_back({std::to_string(n), by(n, n)});
  found.push_back({"1 (q alone)", by(1, 0)});
  found.push_back({"-1 (q alone)", by(-1, 0)});
  found.push_back({"1 (k alone)", by(0, 1)});
  return found;
}

// Rows of q and k stand in the order for one pairing and are turned by the other.
Variants rows_permuted(const Subject& s) {
  if (!turns(s)) return {};
  const auto permute = [](bool to_adjacent) {
    return on_layers([to_adjacent](const Subject& at) {
      if (!turns(at)) return;
      const model::Attention& a = at.layer().self;
      const auto pairs = static_cast<index_t>(rotary(at).frequencies.size());
      edit(at.layer_weights().self.in, [&](Dense& in) {
        const Dense before = in;
        for (index_t head = 0; head < a.heads + a.kv_heads; ++head)
          for (index_t i = 0; i < pairs; ++i)
            for (index_t half = 0; half < 2; ++half) {
              const index_t first = head * a.d_k;
              const index_t apart = first + half * pairs + i, beside = first + 2 * i + half;
              const index_t to = to_adjacent ? beside : apart, from = to_adjacent ? apart : beside;
              std::copy_n(before.w.begin() + from * in.in, in.in, in.w.begin() + to * in.in);
              in.bias[static_cast<std::size_t>(to)] = before.bias[static_cast<std::size_t>(from)];
            }
      });
    });
  };
  return {{"", permute(true)}, {"back", permute(false)}};
}

Variants of_other_layers(const Subject& s) {
  if (!is_layer(s)) return {};
  Variants found;
  for (std::size_t n = 0; n < s.whole.rotaries.size(); ++n) {
    const auto other = static_cast<index_t>(n);
    if (other == s.original().self.rotary) continue;
    const auto from = s.original().self.rotary;
    found.push_back({shown(s.whole.rotaries[n].base), on_layers([other, from](const Subject& at) {
                       if (at.original().self.rotary == from) at.layer().self.rotary = other;
                     })});
  }
  return found;
}

Variants before_norm(const Subject& s) {
  if (!turns(s) || !s.original().self.qk_norm) return {};
  return once(true,
              on_layers(
                  [](const Subject& at) {
                    at.layer().self.rotary = -1;
                    at.layer().self.qk_norm.reset();
                  },
                  [](const Subject& at, const Numbers& numbers) {
                    Placed placed;
                    if (!turns(at) || !at.original().self.qk_norm) return placed;
                    for (const bool is_q : {true, false}) {
                      const std::string name = at.place(is_q ? "self.q" : "self.k");
                      if (at.knows(name)) continue;
                      const model::AttentionWeights& w = at.layer_weights().self;
                      placed.changes.push_back(Patch{
                          name, normed(turned(numbers.at(name), rotary(at)),
                                       *at.original().self.qk_norm, is_q ? w.q_norm : w.k_norm)});
                    }
                    return placed;
                  }));
}

Variants values_turned(const Subject& s) {
  return once(
      turns(s), on_layers(nullptr, [](const Subject& at, const Numbers& numbers) {
        Placed placed;
        if (!turns(at)) return placed;
        const std::string name = at.place("self.v");
        if (2 * static_cast<index_t>(rotary(at).frequencies.size()) > numbers.at(name).shape[2])
          return placed;
        placed.changes.push_back(Patch{name, turned(numbers.at(name), rotary(at))});
        return placed;
      }));
}

}  // namespace

std::vector<Hypothesis> position_hypotheses() {
  return {
      {"rope-pairing", "rotary pairs laid out the other way",
       "pairs (2i, 2i+1) turn where the weights are made for (i, i + d/2), or the other way round",
       "x[..., ::2], x[..., 1::2]   or   x[..., :d/2], x[..., d/2:]",
       "use the pairing that these weights are stored for", other_pairing},
      {"rope-rows-permuted", "rows of q and k not in the order for the pairing",
       "the rows of W_q and W_k are permuted for one pairing and turned by the other",
       "permute(w_q, heads)   w.view(heads, 2, d/2, -1).swapaxes(1, 2)",
       "permute W_q and W_k (and their biases), or turn by the other pairing: one of the two",
       rows_permuted},
      {"rope-angles-mixed", "angles of one pairing, coordinates of the other",
       "cos and sin are repeated as a a b b where the halves are turned, or as a b a b where "
       "neighbours are",
       "cos.repeat_interleave(2, -1)   cat((freqs, freqs), -1)",
       "lay out cos and sin as the rotation pairs its coordinates", mixed_angles},
      {"rope-base", "another base of the rotary angles",
       "angles are made with another base (theta) than the model's", "theta = 10000.0",
       "read rope_theta from the configuration", other_base},
      {"rope-of-other-layers", "rotary angles of other layers",
       "this layer turns as others do: by another base, or where it should not turn",
       "rope_theta, rope_local_base_freq, no_rope_layers", "choose the angles by the kind of layer",
       of_other_layers},
      {"rope-scaling-missing", "scaling of the rotary angles ignored",
       "angles are those of the base alone, or cos and sin are not multiplied",
       "inv_freq = theta ** (-arange(0, d, 2) / d)", "apply rope_scaling to the frequencies",
       scaling_missing},
      {"rope-exponent", "another exponent in the rotary angles",
       "pair i turns by base^x with another x than -2i/(size that turns)",
       "theta ** (-arange(0, d/2) / d)", "theta ** (-arange(0, d, 2) / d)", other_exponent},
      {"rope-size", "another part of each vector turns",
       "all coordinates turn where a part should, or half of those that should",
       "partial_rotary_factor", "turn the first rotary coordinates of each head", other_size},
      {"rope-missing", "rotary positions missing", "q and k are not turned", "scores = q @ k.T",
       "turn q and k by their positions before the product", missing},
      {"rope-one-side", "only q or only k turned", "one of q and k is not turned",
       "q = rope(q)   # k is forgotten", "turn both", one_side},
      {"rope-twice", "turned twice", "q, k or both are turned twice",
       "k = rope(cache.append(rope(k)))", "turn once, before k goes into the cache", twice},
      {"rope-reversed", "turned backwards", "the sign of sin is wrong",
       "(a*cos + b*sin, b*cos - a*sin)", "(a*cos - b*sin, a*sin + b*cos)", reversed},
      {"positions-shifted", "positions off",
       "tokens stand K positions off: a count from 1, or "
       "padding that is counted",
       "positions = arange(1, n + 1)", "the first real token stands at 0", shifted},
      {"rope-before-norm", "turned before the norm of q and k",
       "q and k are normed after they are turned", "q = q_norm(rope(q))", "q = rope(q_norm(q))",
       before_norm},
      {"rope-values", "values turned too", "v is turned like k", "v = rope(v)", "turn q and k only",
       values_turned},
  };
}

}  // namespace glasshead::port
