// Mistakes in heads, batches and the order of axes in memory.
#include "doctor/catalogue.h"

namespace glasshead::doctor {
namespace {

bool shares_heads(const Program& p) { return p.kv_heads() > 1 && p.group() > 1; }

bool set_grouping(Program& p, Grouping grouping) {
  if (p.grouping != Grouping::adjacent) return false;
  p.grouping = grouping;
  return true;
}

// Which tensors are misread.
Choices tensors(const Program& p, bool has_out) {
  Choices choices{{0, "q"}};
  if (p.kv_heads() > 1) {
    choices.push_back({1, "k"});
    choices.push_back({2, "v"});
    choices.push_back({3, "k,v"});
    choices.push_back({4, "q,k,v"});
  }
  if (has_out) choices.push_back({5, "out"});
  if (has_out && p.kv_heads() > 1) choices.push_back({6, "q,k,v,out"});
  return choices;
}

bool misread(Program& p, const Choice& choice, Misread order) {
  const std::string& names = choice.text;
  const auto set = [&](bool is_wanted, Misread& to) {
    if (is_wanted) to = order;
  };
  set(names.find('q') != std::string::npos, p.q_order);
  set(names.find('k') != std::string::npos, p.k_order);
  set(names.find('v') != std::string::npos, p.v_order);
  if (names.find("out") != std::string::npos) p.out_order = {order.read, order.stored};
  return true;
}

const Fault kFaults[] = {
    {"gqa-tiled",
     {"", "key/value heads tiled, not repeated", "query head h reads key/value head h mod kv_heads",
      "k = k.repeat(1, group, 1, 1)", "k = k.repeat_interleave(group, dim=1)",
      "query heads that share a key/value head are adjacent"},
     [](const Program& p) { return once(shares_heads(p)); },
     [](Program& p, const Choice&) { return set_grouping(p, Grouping::tiled); }},
    {"gqa-first",
     {"", "all heads read the first key/value head",
      "key/value head 0 is used for every query head", "k = k[:, :1].expand_as(q)",
      "k = k.repeat_interleave(group, dim=1)", "query head h reads key/value head h / group"},
     [](const Program& p) { return once(p.kv_heads() > 1); },
     [](Program& p, const Choice&) { return set_grouping(p, Grouping::first); }},
    {"kv-repeated-along-keys",
     {"HOW", "keys repeated along the sequence instead of the heads",
      "the group's copies are made along the keys' axis, then read as heads",
      "k = k.repeat_interleave(group, dim=2).view(b, heads, n, d)",
      "k = k.repeat_interleave(group, dim=1)", "repeat along the axis of the heads"},
     [](const Program& p) {
       if (p.group() < 2) return Choices{};
       return Choices{{0, "interleaved"}, {1, "tiled"}};
     },
     [](Program& p, const Choice& choice) {
       return set_grouping(p,
                           choice.value == 0 ? Grouping::keys_interleaved : Grouping::keys_tiled);
     }},
    {"heads-reshaped",
     {"WHAT", "heads split without a transpose",
      "memory of (length, heads, size) is read as (heads, length, size)",
      "q = q.view(b, heads, n, d)", "q = q.view(b, n, heads, d).transpose(1, 2)",
      "split the last axis, then move the heads' axis"},
     [](const Program& p) {
       if (p.q->extent(1) < 2 || p.q->extent(2) < 2) return Choices{};
       return tensors(p, true);
     },
     [](Program& p, const Choice& choice) { return misread(p, choice, {Order::lhd, Order::hld}); }},
    {"heads-order",
     {"WHAT", "columns dealt out to the heads in turn",
      "head h takes columns h, h + heads, ... of a token's row, not its own block of d",
      "q = q.view(b, n, d, heads).permute(0, 3, 1, 2)",
      "q = q.view(b, n, heads, d).transpose(1, 2)", "a head's columns stand side by side"},
     [](const Program& p) {
       return p.q->extent(1) < 2 || p.d_k() < 2 ? Choices{} : tensors(p, false);
     },
     [](Program& p, const Choice& choice) { return misread(p, choice, {Order::lhd, Order::ldh}); }},
    {"layout-swapped",
     {"WHAT", "(batch, heads, length, size) taken as (batch, length, heads, size)",
      "memory of (heads, length, size) is read as (length, heads, size)",
      "flash_attn(q, k, v)  # wants (b, n, h, d)", "flash_attn(q.transpose(1, 2), ...)",
      "find out the order of axes that the function takes"},
     [](const Program& p) {
       if (p.q->extent(1) < 2 || p.q->extent(2) < 2 || p.q->extent(1) == p.q->extent(2))
         return Choices{};
       return tensors(p, true);
     },
     [](Program& p, const Choice& choice) { return misread(p, choice, {Order::hld, Order::lhd}); }},
    {"heads-as-positions",
     {"", "attention over the heads of each position",
      "(batch, heads, length, size) is given where (batch, length, heads, size) is wanted, so that "
      "heads attend to heads",
      "flash_attn(q, k, v)  # of shape (b, h, n, d)",
      "flash_attn(*(x.transpose(1, 2) for x in qkv))",
      "find out the order of axes that the function takes"},
     [](const Program& p) {
       for (const Mask::Part& part : p.options.mask.parts())
         if (!std::holds_alternative<Mask::Causal>(part)) return Choices{};
       return once(p.q->extent(1) > 1 && is_square(p) && p.options.bias.terms().empty() &&
                   p.options.sinks.empty() && !p.rotary);
     },
     [](Program& p, const Choice&) {
       if (p.swaps_axes || !p.options.sinks.empty() || !p.options.bias.terms().empty())
         return false;
       for (const Mask::Part& part : p.options.mask.parts())
         if (!std::holds_alternative<Mask::Causal>(part)) return false;
       if (!p.pair_edits.empty() || p.is_matrix_wide()) return false;
       // Transposed scores are square in the shape before the exchange, not after it.
       if (p.product != Product::queries_keys) return false;
       p.q = p.swapped[0];
       p.k = p.swapped[1];
       p.v = p.swapped[2];
       p.options.query_start = index_t{0};
       p.swaps_axes = true;
       return true;
     }},
    {"strides-ignored",
     {"WHAT", "strides ignored",
      "a tensor whose last two axes are exchanged in memory is read row "
      "by row",
      "kernel(q.data_ptr())  # q.T is a view", "kernel(q.contiguous().data_ptr())",
      "pass the strides, or make it contiguous"},
     [](const Program& p) {
       Choices choices;
       if (p.q->extent(2) > 1 && p.q->extent(3) > 1) choices.push_back({0, "q"});
       if (p.k->extent(2) > 1 && p.d_k() > 1) choices.push_back({0, "k"});
       if (p.k->extent(2) > 1 && p.d_v() > 1) choices.push_back({0, "v"});
       return choices;
     },
     [](Program& p, const Choice& choice) { return misread(p, choice, {Order::hdl, Order::hld}); }},
    {"batch-first",
     {"", "keys and values of the first batch entry for all", "k and v of batch entry 0 are used",
      "k = k[0].expand(batch, ...)", "k = k", "each batch entry has its own keys"},
     [](const Program& p) { return once(p.q->extent(0) > 1); },
     [](Program& p, const Choice&) {
       p.is_first_batch = true;
       return true;
     }},
    {"values-shifted",
     {"K", "values shifted against keys", "key j is paired with the value of key j + K",
      "v_cache[slot + 1] = v_new", "v_cache[slot] = v_new", "keys and values share one position"},
     [](const Program& p) {
       if (p.k->extent(2) < 2) return Choices{};
       return Choices{{1, "1"}, {-1, "-1"}};
     },
     [](Program& p, const Choice& choice) {
       p.value_shift = static_cast<index_t>(choice.value);
       return true;
     }},
    {"cache-slot-early",
     {"WHAT", "new keys and values one slot too early in the cache",
      "the call's keys and values are written from slot past_len - 1 on, over the last one before "
      "them; the last slot is zero (zero) or holds the last key already (stale); last-: the newest "
      "one alone is early",
      "k_cache[:, :, past_len - 1 : past_len - 1 + q_len] = k_new",
      "k_cache[:, :, past_len : past_len + q_len] = k_new",
      "slots count from 0: the first new key stands at slot past_len"},
     [](const Program& p) {
       const index_t q_len = p.q->extent(2), past_len = p.k->extent(2) - q_len;
       Choices choices;
       if (past_len < 1 || (has_positional_mask(p) && query_start(p) != past_len)) return choices;
       for (const char* what : {"zero", "stale"})
         choices.push_back({static_cast<double>(q_len), what});
       for (const char* what : {"last-zero", "last-stale"})
         if (q_len > 1) choices.push_back({1, what});
       return choices;
     },
     [](Program& p, const Choice& choice) {
       p.early_keys = static_cast<index_t>(choice.value);
       p.is_last_slot_zero = choice.text.ends_with("zero");
       return true;
     }},
    {"cache-late",
     {"K", "the newest keys not yet in the cache", "the last K keys are not seen",
      "out = attend(q, cache.k, cache.v); cache.append(k, v)",
      "cache.append(k, v); out = attend(q, cache.k, cache.v)", "append, then attend"},
     [](const Program& p) {
       if (p.k->extent(2) < 3) return Choices{};
       return Choices{{1, "1"}, {2, "2"}};
     },
     [](Program& p, const Choice& choice) {
       p.missing_keys = static_cast<index_t>(choice.value);
       return true;
     }},
};

}  // namespace

std::span<const Fault> layout_faults() { return kFaults; }

}  // namespace glasshead::doctor
