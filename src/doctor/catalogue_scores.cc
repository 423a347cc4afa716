// Mistakes in the product, the scale and the cap.
#include <cmath>
#include <utility>

#include "base/math.h"
#include "doctor/catalogue.h"

namespace glasshead::doctor {
namespace {

double root(index_t n) { return std::sqrt(static_cast<double>(n)); }

bool same_shape(const Numbers& a, const Numbers& b) {
  return a.extent(1) == b.extent(1) && a.extent(2) == b.extent(2) && a.extent(3) == b.extent(3);
}

Choices other_scales(const Program& p) {
  const index_t d_k = p.d_k();
  const Choices named{{1 / root(d_k), "1/sqrt(d_k)"},
                      {1 / root(p.q->extent(1) * d_k), "1/sqrt(d_model)"},
                      {1 / root(p.k->extent(2)), "1/sqrt(n)"},
                      {1 / static_cast<double>(p.k->extent(2)), "1/n"},
                      {1 / root(p.d_v()), "1/sqrt(d_v)"},
                      {p.scale * math::log(2), "ln2"},
                      {p.scale / math::log(2), "log2e"},
                      {1 / std::sqrt(root(d_k)), "1/d_k^(1/4)"},
                      {1 / root(2 * d_k), "1/sqrt(2*d_k)"},
                      {p.scale * p.scale, "scale^2"},
                      {p.scale * 2, "2*scale"},
                      {p.scale / 2, "scale/2"},
                      {-p.scale, "-scale"}};
  Choices left;
  std::vector<double> known{p.scale, 1, 1 / static_cast<double>(d_k), root(d_k)};
  for (const Choice& choice : named) {
    bool is_known = false;
    for (const double scale : known)
      is_known = is_known || std::fabs(scale - choice.value) <= 1e-12 * std::fabs(scale);
    if (is_known) continue;
    known.push_back(choice.value);
    left.push_back(choice);
  }
  return left;
}

bool set_scale(Program& p, double scale) {
  if (p.scale == scale) return false;
  p.scale = scale;
  return true;
}

const Fault kFaults[] = {
    {"scores-transposed",
     {},
     [](const Program& p) {
       return once(is_square(p) && p.q->extent(3) == p.k->extent(3) && p.q->extent(2) > 1);
     },
     [](Program& p, const Choice&) {
       p.product = Product::keys_queries;
       return true;
     }},
    {"scores-untransposed",
     {},
     [](const Program& p) { return once(p.k->extent(2) == p.d_k() && p.d_k() > 1); },
     [](Program& p, const Choice&) {
       p.product = Product::untransposed;
       return true;
     }},
    {"keys-reshaped",
     {"", "keys reshaped instead of transposed",
      "K's numbers are laid out as d_k x kv_len without being moved: reshape, not transpose",
      "scores = q @ k.reshape(d_k, kv_len)", "scores = q @ k.transpose(-2, -1)",
      "transpose moves the axes, reshape only renames them"},
     [](const Program& p) { return once(p.d_k() > 1 && p.k->extent(2) > 1); },
     [](Program& p, const Choice&) {
       p.k_order = {Order::hld, Order::hdl};
       return true;
     }},
    {"keys-as-queries",
     {"", "keys in the place of queries", "K·Kᵀ instead of Q·Kᵀ", "scores = k @ k.T",
      "scores = q @ k.T", "queries on the left"},
     [](const Program& p) { return once(same_shape(*p.q, *p.k)); },
     [](Program& p, const Choice&) {
       p.q = p.k;
       return true;
     }},
    {"queries-as-keys",
     {"", "queries in the place of keys", "Q·Qᵀ instead of Q·Kᵀ", "scores = q @ q.T",
      "scores = q @ k.T", "keys on the right"},
     [](const Program& p) { return once(same_shape(*p.q, *p.k)); },
     [](Program& p, const Choice&) {
       p.k = p.q;
       return true;
     }},
    {"keys-as-values",
     {},
     [](const Program& p) { return once(same_shape(*p.k, *p.v)); },
     [](Program& p, const Choice&) {
       p.v = p.k;
       return true;
     }},
    {"values-as-keys",
     {"", "values in the place of keys", "Q·Vᵀ instead of Q·Kᵀ", "scores = q @ v.T",
      "scores = q @ k.T", "the scores are of the keys"},
     [](const Program& p) { return once(same_shape(*p.k, *p.v)); },
     [](Program& p, const Choice&) {
       p.k = p.v;
       return true;
     }},
    {"keys-values-swapped",
     {"", "keys and values exchanged", "k is used as v and v as k", "attend(q, v, k)",
      "attend(q, k, v)", "the order of the arguments is q, k, v"},
     [](const Program& p) { return once(same_shape(*p.k, *p.v)); },
     [](Program& p, const Choice&) {
       std::swap(p.k, p.v);
       return true;
     }},
    {"values-unprojected",
     {},
     [](const Program& p) { return once(p.unprojected != nullptr); },
     [](Program& p, const Choice&) {
       p.v = p.unprojected;
       return true;
     }},
    {"scale-missing",
     {},
     [](const Program& p) { return once(p.scale != 1); },
     [](Program& p, const Choice&) { return set_scale(p, 1); }},
    {"scale-dk",
     {},
     [](const Program& p) { return once(p.d_k() > 1); },
     [](Program& p, const Choice&) { return set_scale(p, 1 / static_cast<double>(p.d_k())); }},
    {"scale-inverse",
     {},
     [](const Program& p) { return once(p.d_k() > 1); },
     [](Program& p, const Choice&) { return set_scale(p, root(p.d_k())); }},
    {"scale-other",
     {},
     other_scales,
     [](Program& p, const Choice& choice) { return set_scale(p, choice.value); }},
    {"softcap-missing",
     {"", "softcap forgotten", "scores are not squashed", "weights = softmax(scores)",
      "weights = softmax(cap * tanh(scores / cap))", "squash the scaled scores"},
     [](const Program& p) { return once(p.options.softcap > 0); },
     [](Program& p, const Choice&) {
       p.options.softcap = 0;
       return true;
     }},
    {"softcap-order",
     {"", "softcap after the mask",
      "the cap is applied last, so that hidden scores come back as -cap and are seen",
      "s = where(allowed, s, -inf); s = cap * tanh(s / cap)",
      "s = cap * tanh(s / cap); s = where(allowed, s, -inf)", "scale, cap, bias, mask, softmax"},
     [](const Program& p) {
       return once(p.options.softcap > 0 && (has_mask(p) || hides_by_bias(p)));
     },
     [](Program& p, const Choice&) {
       p.cap_place = CapPlace::after_mask;
       return p.options.softcap > 0;
     }},
    {"softcap-before-scale",
     {"", "softcap before the scale", "the unscaled product is squashed, then scaled",
      "s = cap * tanh(q @ k.T / cap) * scale", "s = q @ k.T * scale; s = cap * tanh(s / cap)",
      "scale first"},
     [](const Program& p) { return once(p.options.softcap > 0 && p.scale != 1); },
     [](Program& p, const Choice&) {
       p.cap_place = CapPlace::before_scale;
       return p.options.softcap > 0;
     }},
    {"softcap-after-bias",
     {"", "softcap after the bias", "the bias is squashed together with the scores",
      "s = cap * tanh((s + bias) / cap)", "s = cap * tanh(s / cap) + bias",
      "the bias is added after the cap"},
     [](const Program& p) {
       return once(p.options.softcap > 0 && !p.options.bias.terms().empty());
     },
     [](Program& p, const Choice&) {
       p.cap_place = CapPlace::after_bias;
       return p.options.softcap > 0;
     }},
    {"softcap-other",
     {"C", "another softcap", "scores are squashed to another range, or although none was meant",
      "s = 50 * tanh(s / 50)", "s = cap * tanh(s / cap)", "take the cap from the options"},
     [](const Program& p) {
       Choices caps;
       for (const Choice& c : {Choice{20, "20"}, Choice{30, "30"}, Choice{50, "50"}})
         if (c.value != p.options.softcap) caps.push_back(c);
       return caps;
     },
     [](Program& p, const Choice& choice) {
       p.options.softcap = choice.value;
       return true;
     }},
};

}  // namespace

std::span<const Fault> score_faults() { return kFaults; }

}  // namespace glasshead::doctor
