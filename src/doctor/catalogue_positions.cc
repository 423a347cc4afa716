// Mistakes in where queries stand, and in rotary positions, where the program turns q and k itself.
#include <string>
#include <vector>

#include "doctor/catalogue.h"

namespace glasshead::doctor {
namespace {

bool turns(const Program& p) { return p.rotary.has_value(); }

bool has_positional_bias(const Program& p) {
  return has_term<Bias::Alibi>(p) || has_term<Bias::T5>(p);
}

// Where each batch entry's first query stands if its last one stands at its last real key.
std::vector<index_t> starts_by_length(const Program& p) {
  std::vector<index_t> starts;
  for (const Mask::Part& part : p.options.mask.parts())
    if (const auto* given = std::get_if<Mask::KeyLengths>(&part))
      for (index_t b = 0; b < p.q->extent(0); ++b)
        starts.push_back(given->lengths[given->lengths.size() == 1 ? 0 : slot(b)] - p.q->extent(2));
  return starts;
}

const Fault kFaults[] = {
    {"cache-restart",
     {"", "positions start at 0 in each call",
      "queries stand at 0, 1, ... although keys were cached before them",
      "position = arange(q_len)", "position = past_len + arange(q_len)",
      "positions go on where the cache ends"},
     [](const Program& p) {  // where a mask goes by position it is causal-corner:0
       return once(query_start(p) != 0 && !has_positional_mask(p) &&
                   (turns(p) || has_positional_bias(p)));
     },
     [](Program& p, const Choice&) {
       if (query_start(p) == 0) return false;
       p.options.query_start = index_t{0};
       return true;
     }},
    {"positions-from-padding",
     {"", "positions by each entry's own length",
      "the last query of a batch entry stands at its last real key, where padding counts in what "
      "was meant",
      "position = mask.cumsum(-1) - 1", "position = arange(kv_len)",
      "find out whether padding takes up positions"},
     [](const Program& p) {
       return once(has_part<Mask::KeyLengths>(p) && !has_part<Mask::Window>(p) &&
                   !has_part<Mask::Prefix>(p) && !has_positional_bias(p) &&
                   (has_part<Mask::Causal>(p) || turns(p)));
     },
     [](Program& p, const Choice&) {
       const std::vector<index_t> starts = starts_by_length(p);
       if (starts.empty() || has_part<Mask::Window>(p) || has_part<Mask::Prefix>(p)) return false;
       p.query_starts = starts;
       if (!has_part<Mask::Causal>(p)) return turns(p);
       erase_part<Mask::Causal>(p);
       p.pair_edits.push_back([starts](const Pairs& before) -> Pairs {
         return [starts, before](index_t b, index_t h, index_t i, index_t j) {
           return j <= starts[slot(b)] + i && before(b, h, i, j);
         };
       });
       return true;
     }},
    {"rope-missing",
     {"", "rotary positions forgotten", "q and k are not turned", "scores = q @ k.T",
      "scores = rotate(q) @ rotate(k).T", "turn q and k before the product"},
     [](const Program& p) { return once(turns(p)); },
     [](Program& p, const Choice&) {
       p.rotary.reset();
       return true;
     }},
    {"rope-pairing",
     {"", "other pairs are turned",
      "halves (i, i + n/2) are turned where adjacent pairs (2i, 2i + "
      "1) are meant, or the other way round",
      "x1, x2 = x[..., ::2], x[..., 1::2]", "x1, x2 = x.chunk(2, dim=-1)",
      "follow the model's own code; a checkpoint may have been permuted for either"},
     [](const Program& p) { return once(turns(p) && p.d_k() > 2); },
     [](Program& p, const Choice&) {
       if (!p.rotary) return false;
       p.rotary->is_adjacent = !p.rotary->is_adjacent;
       return true;
     }},
    {"rope-offset",
     {"K", "queries turned by another position", "queries are turned as if they stood K further",
      "q = rotate(q, arange(q_len))", "q = rotate(q, past_len + arange(q_len))",
      "positions go on where the cache ends"},
     [](const Program& p) {
       Choices shifts;
       if (!turns(p)) return shifts;
       for (const index_t k : {1, -1, 2, -2, 4, -4})
         shifts.push_back({static_cast<double>(k), std::to_string(k)});
       const index_t start = query_start(p);
       if (start < -4 || start > 4)
         shifts.push_back({static_cast<double>(-start), std::to_string(-start)});
       return shifts;
     },
     [](Program& p, const Choice& choice) {
       p.query_offset = static_cast<index_t>(choice.value);
       return turns(p);
     }},
    {"rope-base",
     {"B", "another base", "angles are powers of another base", "theta = 10000",
      "theta = config.rope_theta", "take the base from the model's config"},
     [](const Program& p) {
       Choices bases;
       if (!turns(p)) return bases;
       for (const Choice& base : {Choice{10000, "10000"}, Choice{100000, "100000"},
                                  Choice{500000, "500000"}, Choice{1000000, "1000000"}})
         if (base.value != p.rotary->base) bases.push_back(base);
       return bases;
     },
     [](Program& p, const Choice& choice) {
       if (!p.rotary) return false;
       p.rotary->base = choice.value;
       return true;
     }},
    {"rope-one-side",
     {"WHICH", "only one side turned", "queries are turned and keys are not, or the reverse",
      "scores = rotate(q) @ k.T", "scores = rotate(q) @ rotate(k).T", "turn both"},
     [](const Program& p) { return turns(p) ? Choices{{0, "queries"}, {1, "keys"}} : Choices{}; },
     [](Program& p, const Choice& choice) {
       (choice.value == 0 ? p.turns_k : p.turns_q) = false;
       return turns(p);
     }},
    {"rope-twice",
     {"WHICH", "turned twice",
      "what was turned before it was cached is turned again: the keys that stand before the call's "
      "own (cached), all keys (keys), or queries too (all)",
      "k = rotate(cat([k_cache, k_new]))  # k_cache is turned already",
      "k = cat([k_cache, rotate(k_new)])",
      "turn keys once: when they are cached or when they are "
      "read, not both"},
     [](const Program& p) {
       Choices which;
       if (!turns(p)) return which;
       const index_t start = query_start(p), end = p.k->extent(2);
       if (start > 0 && start < end) which.push_back({static_cast<double>(start), "cached"});
       which.push_back({static_cast<double>(end), "keys"});
       which.push_back({static_cast<double>(end), "all"});
       return which;
     },
     [](Program& p, const Choice& choice) {
       p.turned_twice = static_cast<index_t>(choice.value);
       p.turns_q_twice = choice.text == "all";
       return turns(p);
     }},
    {"rope-values",
     {"", "values turned too", "v is turned like k", "q, k, v = rotate(q), rotate(k), rotate(v)",
      "q, k = rotate(q), rotate(k)", "positions belong to the scores"},
     [](const Program& p) { return once(turns(p) && p.d_v() == p.d_k()); },
     [](Program& p, const Choice&) {
       p.turns_v = true;
       return turns(p);
     }},
};

}  // namespace

std::span<const Fault> position_faults() { return kFaults; }

}  // namespace glasshead::doctor
