// Mistakes in what is done with the mask as a whole.
#include "doctor/catalogue.h"

namespace glasshead::doctor {
namespace {

bool hides(const Program& p) { return has_mask(p) || hides_by_bias(p); }

void see_all(Program& p) {
  p.pair_edits.push_back([](const Pairs&) -> Pairs {
    return [](index_t, index_t, index_t, index_t) { return true; };
  });
}

// Hidden pairs go on with a score.
bool hide_by(Program& p, Hiding hiding, double value = 0) {
  if (p.hiding != Hiding::select) return false;
  p.hiding = hiding;
  p.hidden_value = value;
  return true;
}

Choices stand_ins(const Program& p) {
  if (!hides(p)) return {};
  return {
      {-1, "-1"},     {-10, "-10"},       {-100, "-100"}, {-1000, "-1000"},
      {-1e4, "-1e4"}, {-65504, "-65504"}, {-1e9, "-1e9"}, {-3.4028234663852886e38, "finfo.min"}};
}

const Fault kFaults[] = {
    {"mask-ignored",
     {},
     [](const Program& p) { return once(hides(p)); },
     [](Program& p, const Choice&) {
       see_all(p);
       p.does_bias_hide = false;
       return true;
     }},
    {"mask-after",
     {},
     [](const Program& p) { return once(hides(p)); },
     [](Program& p, const Choice&) { return hide_by(p, Hiding::after); }},
    {"mask-multiply",
     {},
     [](const Program& p) { return once(has_mask(p)); },
     [](Program& p, const Choice&) { return hide_by(p, Hiding::multiplied); }},
    {"mask-as-number",
     {},
     [](const Program& p) { return once(has_mask(p)); },
     [](Program& p, const Choice&) { return hide_by(p, Hiding::numbered); }},
    {"mask-finite",
     {},
     stand_ins,
     [](Program& p, const Choice& choice) { return hide_by(p, Hiding::set, choice.value); }},
    {"mask-finite-added",
     {"V", "a finite number added to hidden scores",
      "V is added to hidden scores, so that a score large enough comes back",
      "s = s + (1 - mask) * -10000", "s = where(mask, s, -inf)", "hidden scores are -inf"},
     stand_ins,
     [](Program& p, const Choice& choice) { return hide_by(p, Hiding::added, choice.value); }},
    {"mask-scaled",
     {"V", "mask added before the scale", "V is added to the product and scaled with it",
      "s = (q @ k.T + mask) * scale", "s = q @ k.T * scale + mask",
      "the mask comes after the scale"},
     [](const Program& p) { return p.scale == 1 ? Choices{} : stand_ins(p); },
     [](Program& p, const Choice& choice) { return hide_by(p, Hiding::scaled, choice.value); }},
    {"mask-times-inf",
     {"", "mask multiplied by -inf", "(1 - mask) * -inf is NaN wherever the mask is 1",
      "s = s + (1 - mask) * -inf", "s = where(mask, s, -inf)", "select: 0 * inf is NaN"},
     [](const Program& p) { return once(has_mask(p)); },
     [](Program& p, const Choice&) { return hide_by(p, Hiding::times_infinity); }},
    {"mask-inverted",
     {},
     [](const Program& p) { return once(has_mask(p)); },
     [](Program& p, const Choice&) {
       p.pair_edits.push_back([](const Pairs& before) -> Pairs {
         return
             [before](index_t b, index_t h, index_t i, index_t j) { return !before(b, h, i, j); };
       });
       return true;
     }},
    {"mask-transposed",
     {},
     [](const Program& p) { return once(has_mask(p) && is_square(p)); },
     [](Program& p, const Choice&) {
       p.pair_edits.push_back([](const Pairs& before) -> Pairs {
         return [before](index_t b, index_t h, index_t i, index_t j) { return before(b, h, j, i); };
       });
       return true;
     }},
    {"mask-strict",
     {},
     [](const Program& p) { return once(has_part<Mask::Causal>(p)); },
     [](Program& p, const Choice&) {
       const index_t start = query_start(p);
       p.pair_edits.push_back([start](const Pairs& before) -> Pairs {
         return [before, start](index_t b, index_t h, index_t i, index_t j) {
           return j != start + i && before(b, h, i, j);
         };
       });
       return true;
     },
     false,
     {"", "own position hidden",
      "each query sees one key fewer than it should: with a cache (q_len < kv_len) the last query "
      "stands at the last key, and its own key is hidden",
      "allowed = j < past_len + i", "allowed = j <= past_len + i",
      "query i of the call stands at key past_len + i, behind the past_len cached ones, and sees "
      "itself"}},
    {"mask-wide",
     {"", "causal mask one key too wide", "the key after the query's own position is seen too",
      "allowed = tril(ones(n, n), 1)", "allowed = tril(ones(n, n))",
      "a token sees no later key: j <= i"},
     [](const Program& p) { return once(has_part<Mask::Causal>(p)); },
     [](Program& p, const Choice&) {
       if (!has_part<Mask::Causal>(p)) return false;
       erase_part<Mask::Causal>(p);
       p.pair_edits.push_back([start = query_start(p)](const Pairs& before) -> Pairs {
         return [before, start](index_t b, index_t h, index_t i, index_t j) {
           return j <= start + i + 1 && before(b, h, i, j);
         };
       });
       return true;
     },
     false,
     {"", "causal mask one key too wide",
      "each query sees one key more than it should: with a cache (q_len < kv_len) all but the last "
      "query see the key after their own",
      "allowed = j <= past_len + 1 + i  # past_len counted after the append",
      "allowed = j <= past_len + i",
      "query i of the call stands at key past_len + i, behind the past_len cached ones"}},
    {"mask-axis",
     {"", "mask's head axis read as batch",
      "a mask of rank 3 is taken as (batch, q, k) where it is (heads, q, k)",
      "s.masked_fill(~mask[:, None], -inf)", "s.masked_fill(~mask[None], -inf)",
      "axes are aligned from the right"},
     [](const Program& p) {
       for (const Mask::Part& part : p.options.mask.parts())
         if (const auto* given = std::get_if<Mask::Explicit>(&part))
           if (given->allowed.rank >= 3 && given->allowed.shape[slot(given->allowed.rank - 3)] > 1)
             return once(p.q->extent(0) <= p.q->extent(1));
       return Choices{};
     },
     [](Program& p, const Choice&) {
       p.pair_edits.push_back([](const Pairs& before) -> Pairs {
         return [before](index_t b, index_t, index_t i, index_t j) { return before(b, b, i, j); };
       });
       return true;
     }},
    {"mask-union",
     {"", "masks united instead of intersected", "a pair is seen if any of the masks allows it",
      "allowed = causal | padding", "allowed = causal & padding",
      "a pair is hidden if any mask hides it"},
     [](const Program& p) { return once(p.options.mask.parts().size() > 1); },
     [](Program& p, const Choice&) {
       std::vector<std::shared_ptr<const MaskPlan>> plans;
       for (const Mask::Part& part : p.options.mask.parts()) {
         AttentionOptions one;
         one.query_start = p.options.query_start;
         one.mask.parts().push_back(part);
         plans.push_back(std::make_shared<MaskPlan>(one, p.pairs()));
       }
       p.pair_edits.push_back([plans](const Pairs&) -> Pairs {
         return [plans](index_t b, index_t h, index_t i, index_t j) {
           for (const auto& plan : plans)
             if (plan->allowed(b, h, i, j)) return true;
           return false;
         };
       });
       return plans.size() > 1;
     }},
    {"hidden-read",
     {"WHAT", "what hidden keys hold comes through",
      "a weight of 0 is multiplied with the NaN or inf of a hidden value, or added to such a score",
      "out = weights @ v  # 0 * nan is nan", "v = where(allowed, v, 0)",
      "skip hidden keys, or clear them first"},
     [](const Program& p) {
       if (!hides(p)) return Choices{};
       return Choices{{0, "values"}, {1, "keys-and-values"}};
     },
     [](Program& p, const Choice& choice) {
       p.reads_hidden_values = true;
       p.reads_hidden_keys = choice.value != 0;
       return p.hiding == Hiding::select;
     }},
    {"empty-row-uniform",
     {"", "a row without a key is the mean of all values",
      "where nothing is allowed every key gets the same weight",
      "s = masked_fill(s, ~allowed, finfo.min)", "out = where(any_allowed, out, 0)",
      "a row without a key is 0, its lse -inf"},
     [](const Program& p) { return once(hides(p)); },
     [](Program& p, const Choice&) {
       p.empty = EmptyRule::uniform;
       return true;
     }},
    {"empty-row-nan",
     {"", "a row without a key is NaN", "0/0 where nothing is allowed",
      "weights = softmax(where(allowed, s, -inf))", "weights = where(any_allowed, weights, 0)",
      "a row without a key is 0, its lse -inf"},
     [](const Program& p) { return once(hides(p)); },
     [](Program& p, const Choice&) {
       p.empty = EmptyRule::nan;
       return true;
     }},
};

}  // namespace

std::span<const Fault> mask_faults() { return kFaults; }

}  // namespace glasshead::doctor
