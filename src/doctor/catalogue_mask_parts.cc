// Mistakes in one part of the mask: causal, window, key lengths, segments, prefix, explicit.
#include <algorithm>
#include <string>

#include "doctor/catalogue.h"

namespace glasshead::doctor {
namespace {

bool has_others(const Program& p) { return p.options.mask.parts().size() > 1; }

// One part left out, where there are others: alone it is the whole mask.
template <class Part>
Choices beside_others(const Program& p) {
  return once(has_others(p) && has_part<Part>(p));
}
template <class Part>
bool leave_out(Program& p, const Choice&) {
  if (!has_part<Part>(p)) return false;
  erase_part<Part>(p);
  return true;
}

Choice number(index_t n) { return {static_cast<double>(n), std::to_string(n)}; }

bool start_at(Program& p, index_t start) {
  if (start == query_start(p)) return false;
  p.options.query_start = start;
  return true;
}

template <class Change>
bool change_windows(Program& p, const Change& change) {
  bool is_changed = false;
  for (Mask::Part& part : p.options.mask.parts())
    if (auto* window = std::get_if<Mask::Window>(&part)) is_changed = change(*window) || is_changed;
  return is_changed;
}

bool add_to(std::optional<index_t>& side, index_t step) {
  if (!side || *side + step < 0) return false;
  side = *side + step;
  return true;
}

std::vector<index_t> lengths_of(const Program& p) {
  for (const Mask::Part& part : p.options.mask.parts())
    if (const auto* lengths = std::get_if<Mask::KeyLengths>(&part)) return lengths->lengths;
  return {};
}
index_t length_of(const std::vector<index_t>& lengths, index_t b) {
  return lengths[lengths.size() == 1 ? 0 : slot(b)];
}

const Fault kFaults[] = {
    {"causal-missing",
     {"", "causal mask left out", "of several masks the causal one is not applied",
      "attend(q, k, v, attn_mask=padding)", "attend(q, k, v, attn_mask=padding & causal)",
      "masks intersect"},
     beside_others<Mask::Causal>,
     leave_out<Mask::Causal>},
    {"window-missing",
     {"", "window left out", "keys outside the window are seen", "allowed = causal",
      "allowed = causal & (p - j <= left)", "apply the window too"},
     beside_others<Mask::Window>,
     leave_out<Mask::Window>},
    {"padding-ignored",
     {"", "key lengths left out", "padding is seen as if it were keys", "allowed = causal",
      "allowed = causal & (j < length)", "hide keys past the length"},
     beside_others<Mask::KeyLengths>,
     leave_out<Mask::KeyLengths>},
    {"segments-ignored",
     {"", "documents not kept apart", "queries see keys of other packed documents",
      "allowed = causal", "allowed = causal & (query_ids == key_ids)",
      "a query sees its own document"},
     beside_others<Mask::Segments>,
     leave_out<Mask::Segments>},
    {"prefix-ignored",
     {"", "prefix left out", "the prefix's rule is not applied", "allowed = padding",
      "allowed = padding & ((j < prefix) | (j <= p))", "apply the prefix"},
     beside_others<Mask::Prefix>,
     leave_out<Mask::Prefix>},
    {"prefix-causal",
     {"", "prefix treated causally", "queries inside the prefix see no later key of it",
      "allowed = j <= p", "allowed = (j < prefix) | (j <= p)", "the prefix is seen by every query"},
     [](const Program& p) { return once(has_part<Mask::Prefix>(p)); },
     [](Program& p, const Choice& choice) {
       if (!leave_out<Mask::Prefix>(p, choice)) return false;
       p.options.mask = p.options.mask & Mask::causal();
       return true;
     }},
    {"mask-argument-ignored",
     {"", "the mask given beside others is ignored",
      "is_causal or the lengths are obeyed, the mask passed in is not",
      "attend(q, k, v, is_causal=True)", "attend(q, k, v, attn_mask=mask & causal)",
      "masks intersect"},
     beside_others<Mask::Explicit>,
     leave_out<Mask::Explicit>},
    {"causal-added",
     {"", "causal mask although none was meant", "keys after the query are hidden",
      "attend(q, k, v, is_causal=True)", "attend(q, k, v, is_causal=False)",
      "say whether the attention is causal"},
     [](const Program& p) {
       if (has_part<Mask::Causal>(p)) return Choices{};
       if (is_square(p) || has_positional_mask(p)) return once();
       return Choices{{0, "start"}, number(p.k->extent(2) - p.q->extent(2))};
     },
     [](Program& p, const Choice& choice) {
       if (has_part<Mask::Causal>(p)) return false;
       p.options.mask = p.options.mask & Mask::causal();
       if (!choice.text.empty()) p.options.query_start = static_cast<index_t>(choice.value);
       return true;
     }},
    {"causal-corner",
     {"P", "positions counted from the other corner",
      "query row 0 stands at key P: the top left corner is 0, as in a call that forgets its cache; "
      "the bottom right one is kv_len - q_len",
      "allowed = tril(ones(q_len, kv_len))",
      "allowed = tril(ones(q_len, kv_len), diagonal=kv_len - q_len)",
      "find out where the first query stands"},
     [](const Program& p) {
       Choices starts;
       if (!has_positional_mask(p)) return starts;
       const index_t end = p.k->extent(2) - p.q->extent(2), now = query_start(p);
       if (now != 0) starts.push_back(number(0));
       if (end != 0 && end != now) starts.push_back(number(end));
       return starts;
     },
     [](Program& p, const Choice& choice) {
       return start_at(p, static_cast<index_t>(choice.value));
     }},
    {"positions-shifted",
     {"K", "queries K positions off", "masks and biases take query i for query i + K",
      "position = past_len + 1 + arange(q_len)", "position = past_len + arange(q_len)",
      "the first new query stands where the cache ends"},
     // To the corners too, which causal-corner has: where one name fits, so does the other.
     [](const Program& p) {
       Choices shifts;
       if (!has_positional_mask(p)) return shifts;
       const index_t start = query_start(p), end = p.k->extent(2) - p.q->extent(2);
       for (const index_t k :
            {index_t{1}, index_t{-1}, index_t{2}, index_t{-2}, index_t{3}, index_t{-3}, index_t{4},
             index_t{-4}, index_t{8}, index_t{-8}, -start, end - start}) {
         const bool is_new = std::none_of(shifts.begin(), shifts.end(), [&](const Choice& c) {
           return c.value == static_cast<double>(k);
         });
         if (k != 0 && is_new) shifts.push_back(number(k));
       }
       return shifts;
     },
     [](Program& p, const Choice& choice) {
       return start_at(p, query_start(p) + static_cast<index_t>(choice.value));
     }},
    {"window-off",
     {"K", "window of another size",
      "K more keys on the left (right:K on the right, double: twice as many)",
      "allowed &= p - j <= window", "allowed &= p - j < window",
      "find out whether the window counts the query's own position"},
     [](const Program& p) {
       if (!has_part<Mask::Window>(p)) return Choices{};
       return Choices{{1, "1"},       {-1, "-1"},       {2, "2"},
                      {1, "right:1"}, {-1, "right:-1"}, {0, "double"}};
     },
     [](Program& p, const Choice& choice) {
       const auto step = static_cast<index_t>(choice.value);
       return change_windows(p, [&](Mask::Window& window) {
         if (choice.text == "double") return add_to(window.left, window.left.value_or(0));
         return add_to(choice.text.starts_with("right") ? window.right : window.left, step);
       });
     }},
    {"window-symmetric",
     {"", "window on both sides", "as many later keys are seen as earlier ones",
      "allowed &= abs(p - j) <= window", "allowed &= (p - j <= window) & (j <= p)",
      "the two sides are two numbers"},
     [](const Program& p) { return once(has_part<Mask::Window>(p) && !has_part<Mask::Causal>(p)); },
     [](Program& p, const Choice&) {
       return change_windows(p, [](Mask::Window& window) {
         if (window.left == window.right) return false;
         window.right = window.left;
         return true;
       });
     }},
    {"padding-side",
     {"", "padding on the other side", "the last keys count instead of the first",
      "allowed = j >= kv_len - length", "allowed = j < length", "find out where the padding is"},
     [](const Program& p) { return once(has_part<Mask::KeyLengths>(p)); },
     [](Program& p, const Choice&) {
       const std::vector<index_t> lengths = lengths_of(p);
       if (lengths.empty()) return false;
       erase_part<Mask::KeyLengths>(p);
       p.pair_edits.push_back([lengths, n = p.k->extent(2)](const Pairs& before) -> Pairs {
         return [lengths, n, before](index_t b, index_t h, index_t i, index_t j) {
           return j >= n - length_of(lengths, b) && before(b, h, i, j);
         };
       });
       return true;
     }},
    {"padding-off",
     {"K", "key lengths off by K", "K more keys count than there are", "allowed = j <= length",
      "allowed = j < length", "a length is one past the last key"},
     [](const Program& p) {
       if (!has_part<Mask::KeyLengths>(p)) return Choices{};
       return Choices{number(1), number(-1)};
     },
     [](Program& p, const Choice& choice) {
       bool is_changed = false;
       for (Mask::Part& part : p.options.mask.parts())
         if (auto* lengths = std::get_if<Mask::KeyLengths>(&part))
           for (index_t& length : lengths->lengths) {
             const index_t moved = std::clamp<index_t>(length + static_cast<index_t>(choice.value),
                                                       0, p.k->extent(2));
             is_changed = is_changed || moved != length;
             length = moved;
           }
       return is_changed;
     }},
    {"mask-query-side",
     {"", "padding hides queries instead of keys",
      "rows past the length are emptied, and keys past it are seen",
      "s.masked_fill(~padding[:, :, None], -inf)", "s.masked_fill(~padding[:, None, :], -inf)",
      "padding belongs to the keys' axis"},
     [](const Program& p) { return once(has_part<Mask::KeyLengths>(p) && is_square(p)); },
     [](Program& p, const Choice&) {
       const std::vector<index_t> lengths = lengths_of(p);
       if (lengths.empty()) return false;
       erase_part<Mask::KeyLengths>(p);
       p.pair_edits.push_back([lengths](const Pairs& before) -> Pairs {
         return [lengths, before](index_t b, index_t h, index_t i, index_t j) {
           return i < length_of(lengths, b) && before(b, h, i, j);
         };
       });
       return true;
     }},
};

}  // namespace

std::span<const Fault> mask_part_faults() { return kFaults; }

}  // namespace glasshead::doctor
