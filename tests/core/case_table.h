// The case table: one list of calls drives every test that holds for all calls (values, accuracy,
// gradients, hidden numbers, layouts, batches). Lengths 1, odd, prime and around the sum block of
// 128; shared heads; d_v different from d_k; every mask and bias; empty rows; huge scores.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "testing.h"

namespace glasshead::test {

struct Case {
  std::string name;
  Attention call;
};

struct Sizes {
  index_t batch = 2, heads = 2, kv_heads = 2, q_len = 5, kv_len = 5, d_k = 4, d_v = 4;
};

// Normal numbers from a seed.
inline Block random_block(const std::array<index_t, 4>& shape, std::uint64_t seed,
                          double size = 1.0) {
  Block block(shape, 0.0);
  for (std::size_t n = 0; n < block.x.size(); ++n) block.x[n] = size * standard_normal(seed, n);
  return block;
}

inline Attention random_call(const Sizes& s, std::uint64_t seed = 1, double q_size = 1.0) {
  return {random_block({s.batch, s.heads, s.q_len, s.d_k}, 10 * seed, q_size),
          random_block({s.batch, s.kv_heads, s.kv_len, s.d_k}, 10 * seed + 1),
          random_block({s.batch, s.kv_heads, s.kv_len, s.d_v}, 10 * seed + 2),
          {}};
}

// Booleans, about `share` of them true.
inline Mask random_mask(const std::vector<index_t>& shape, std::uint64_t seed, double share = 0.6) {
  std::size_t size = 1;
  for (index_t extent : shape) size *= static_cast<std::size_t>(extent);
  std::vector<double> flags(size);
  for (std::size_t n = 0; n < size; ++n) flags[n] = uniform(seed, n) < share ? 1.0 : 0.0;
  return mask_of(shape, flags);
}

// Numbers, about `share` of them finite, the rest -inf.
inline Bias random_bias(const std::vector<index_t>& shape, std::uint64_t seed, DType type,
                        double share = 1.0) {
  std::size_t size = 1;
  for (index_t extent : shape) size *= static_cast<std::size_t>(extent);
  std::vector<double> numbers(size);
  for (std::size_t n = 0; n < size; ++n)
    numbers[n] = uniform(seed, n, 1) < share ? standard_normal(seed, n) : -kInf;
  return bias_of(shape, numbers, type);
}

inline void add_lengths(std::vector<Case>& list) {
  for (const auto& [q_len, kv_len] : {std::pair<index_t, index_t>{1, 1},
                                      {1, 17},
                                      {2, 31},
                                      {3, 33},
                                      {1, 61},
                                      {2, 63},
                                      {1, 64},
                                      {3, 65},
                                      {1, 113},
                                      {1, 127},
                                      {2, 128},
                                      {3, 129},
                                      {1, 255},
                                      {1, 257},
                                      {1, 260},
                                      {7, 3}}) {
    list.push_back({"lengths " + std::to_string(q_len) + " x " + std::to_string(kv_len),
                    random_call({1, 2, 1, q_len, kv_len, 5, 3}, 3)});
  }
  for (const index_t d : {index_t{1}, index_t{17}, index_t{64}, index_t{80}})
    list.push_back({"d_k " + std::to_string(d), random_call({1, 1, 1, 3, 9, d, d + 1}, 4)});
}

inline void add_heads(std::vector<Case>& list) {
  for (const index_t group : {index_t{4}, index_t{8}, index_t{20}}) {
    Case shared{"group " + std::to_string(group), random_call({1, 2 * group, 2, 3, 7, 4, 5}, 5)};
    shared.call.options.mask = Mask::causal();
    shared.call.options.query_start = Align::end;
    list.push_back(std::move(shared));
  }
}

inline void add_masks(std::vector<Case>& list) {
  const auto add = [&](const char* name, Mask mask, QueryStart start = {},
                       const Sizes& sizes = {2, 4, 2, 6, 6, 3, 5}) {
    Case entry{name, random_call(sizes, 6)};
    entry.call.options.mask = std::move(mask);
    entry.call.options.query_start = start;
    list.push_back(std::move(entry));
  };
  const Sizes wide{2, 4, 2, 4, 9, 3, 5}, tall{2, 4, 2, 9, 4, 3, 5};
  add("causal", Mask::causal());
  add("causal, start, more keys", Mask::causal(), Align::start, wide);
  add("causal, end, more keys", Mask::causal(), Align::end, wide);
  add("causal, end, more queries (empty rows)", Mask::causal(), Align::end, tall);
  add("causal at a position", Mask::causal(), index_t{2}, wide);
  add("window 1, 2", Mask::window(1, 2));
  add("window 0, open", Mask::window(0, std::nullopt));
  add("window open, 1", Mask::window(std::nullopt, 1));
  add("window 2 left of the end", Mask::window(2, 0), Align::end, wide);
  add("window leaves late rows empty", Mask::window(1, 0), Align::start, tall);
  add("window without limits", Mask::window(std::nullopt, std::nullopt), {}, wide);
  add("lengths", Mask::key_lengths({6, 2}));
  add("lengths, one empty", Mask::key_lengths({0, 4}));
  add("segments", Mask::segments(1, {0, 0, 1, 1, 1, 2}, {0, 0, 1, 1, 1, 2}));
  add("segments by batch", Mask::segments(2, {0, 0, 1, 1, 1, 2, 7, 7, 7, 7, 7, 9},
                                          {0, 0, 1, 1, 1, 2, 7, 7, 8, 8, 7, 7}));
  add("prefix", Mask::prefix({3}));
  add("prefix by batch", Mask::prefix({0, 4}));
  add("booleans [kv]", random_mask({6}, 1));
  add("booleans [q, kv]", random_mask({6, 6}, 2));
  add("booleans [heads, q, kv]", random_mask({4, 6, 6}, 3));
  add("booleans [batch, 1, q, 1]", random_mask({2, 1, 6, 1}, 4));
  add("booleans [batch, heads, q, kv]", random_mask({2, 4, 6, 6}, 5, 0.3));
  add("all together", Mask::causal() & Mask::window(4, 0) & Mask::key_lengths({5, 6}) &
                          Mask::segments(1, {0, 0, 0, 1, 1, 1}, {0, 0, 0, 1, 1, 1}) &
                          random_mask({6, 6}, 6, 0.8));
  add("long causal", Mask::causal(), Align::end, {1, 1, 1, 3, 260, 4, 2});
  add("long window", Mask::window(130, 0), Align::end, {1, 1, 1, 3, 300, 4, 2});
}

inline void add_biases(std::vector<Case>& list) {
  const auto add = [&](const char* name, Bias bias, Mask mask = {}) {
    Case entry{name, random_call({2, 3, 3, 6, 6, 3, 5}, 7)};
    entry.call.options.bias = std::move(bias);
    entry.call.options.mask = std::move(mask);
    list.push_back(std::move(entry));
  };
  add("alibi", Bias::alibi(Bias::alibi_slopes(3)), Mask::causal());
  add("alibi both ways", Bias::alibi(Bias::alibi_slopes(3)));
  add("alibi by key", Bias::alibi(Bias::alibi_slopes(3), Bias::AlibiForm::key_index),
      Mask::causal());
  Bias::T5 t5{8, 3, {}, true, 6};
  for (index_t n = 0; n < 24; ++n)
    t5.table.push_back(standard_normal(9, static_cast<std::uint64_t>(n)));
  add("t5", Bias::t5(t5));
  t5.is_bidirectional = false;
  add("t5 causal", Bias::t5(t5), Mask::causal());
  add("dense f64", random_bias({6, 6}, 11, DType::f64));
  add("dense f32 per head with holes", random_bias({3, 6, 6}, 12, DType::f32, 0.7));
  add("dense bf16 [batch, 1, 1, kv]", random_bias({2, 1, 1, 6}, 13, DType::bf16));
  add("two biases", random_bias({6, 6}, 14, DType::f16) + Bias::alibi({0.5, 0.25, 0.125}));
}

inline void add_options(std::vector<Case>& list) {
  const auto add = [&](const char* name, const auto& edit, double q_size = 1.0) {
    Case entry{name, random_call({1, 4, 2, 5, 5, 4, 3}, 8, q_size)};
    edit(entry.call.options);
    list.push_back(std::move(entry));
  };
  add("scale 0", [](AttentionOptions& o) { o.scale = 0.0; });
  add("scale -0.7", [](AttentionOptions& o) { o.scale = -0.7; });
  add("softcap 2", [](AttentionOptions& o) { o.softcap = 2; });
  add("softcap 10, causal", [](AttentionOptions& o) {
    o.softcap = 10;
    o.mask = Mask::causal();
  });
  add("sinks", [](AttentionOptions& o) { o.sinks = {0.5, -3, 2, 0}; });
  add("sinks, softcap, lengths", [](AttentionOptions& o) {
    o.sinks = {0.5, -3, 2, 0};
    o.softcap = 3;
    o.mask = Mask::key_lengths({3});
  });
  add("dropout", [](AttentionOptions& o) { o.dropout = {0.4, 99}; });
  add("large scores", [](AttentionOptions&) {}, 30.0);
  add("huge scores", [](AttentionOptions&) {}, 1e4);
}

inline const std::vector<Case>& case_table() {
  static const std::vector<Case> table = [] {
    std::vector<Case> list;
    add_lengths(list);
    add_heads(list);
    add_masks(list);
    add_biases(list);
    add_options(list);
    return list;
  }();
  return table;
}

}  // namespace glasshead::test
