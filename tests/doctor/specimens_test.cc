// Wrong attention that shares no code with the catalogue is named, or located.
#include <algorithm>
#include <functional>
#include <ostream>

#include <gtest/gtest.h>

#include "glasshead/diagnose.h"
#include "specimens/cached.h"
#include "specimens/matrix.h"
#include "specimens/tiled.h"

namespace glasshead {
namespace {

using specimens::Call;
using specimens::Result;

struct Specimen {
  std::string name;
  ProbeShape shape;
  std::function<AttentionOptions()> options;
  std::function<Result(const Call&)> run;
  std::string name_of_fault;  // the verdict, or what no input of this shape tells from it
  std::vector<int> lengths = {};
  std::optional<Rotary> rotary = {};

  // What GoogleTest writes beside the test's name, instead of the object's bytes.
  friend void PrintTo(const Specimen& specimen, std::ostream* to) { *to << specimen.name_of_fault; }
};

AttentionOptions plain() { return {}; }
AttentionOptions causal() {
  AttentionOptions options;
  options.mask = Mask::causal();
  options.query_start = Align::end;
  return options;
}

Call call_of(const Specimen& specimen, const Probe& probe) {
  const ProbeShape& s = specimen.shape;
  Call c;
  c.B = static_cast<int>(s.batch);
  c.H = static_cast<int>(s.heads);
  c.G = static_cast<int>(s.kv_heads);
  c.N = static_cast<int>(s.q_len);
  c.M = static_cast<int>(s.kv_len);
  c.D = static_cast<int>(s.d_k);
  c.E = static_cast<int>(s.d_v);
  c.q.assign(probe.q.data(), probe.q.data() + probe.q.size());
  c.k.assign(probe.k.data(), probe.k.data() + probe.k.size());
  c.v.assign(probe.v.data(), probe.v.data() + probe.v.size());
  c.lengths = specimen.lengths;
  return c;
}

std::vector<Specimen> all_specimens() {
  using namespace specimens;
  const ProbeShape grouped{1, 4, 2, 10, 37, 8, 6}, square{2, 3, 3, 21, 21, 8, 8};
  const ProbeShape one_new{1, 4, 2, 1, 20, 8, 6};
  const auto lengths = [] {
    AttentionOptions options;
    options.mask = Mask::key_lengths({15, 0});
    return options;
  };
  const auto some_padding = [] {
    AttentionOptions options;
    options.mask = Mask::key_lengths({15, 9});
    return options;
  };
  const auto window = [] {
    AttentionOptions options;
    options.mask = Mask::causal() & Mask::window(4, 0);
    return options;
  };
  const auto capped = [] {
    AttentionOptions options = causal();
    options.softcap = 4;
    return options;
  };
  const auto alibi = [] {
    AttentionOptions options = causal();
    options.bias = Bias::alibi({0x1p-2, 0x1p-4, 0x1p-6, 0x1p-8});
    return options;
  };
  const ProbeShape alibi_shape{1, 4, 4, 21, 21, 8, 8};
  const auto tile = [](Result (*run)(const Call&, int)) {
    return [run](const Call& c) { return run(c, 16); };
  };
  return {
      {"causal_top_left", grouped, causal, causal_top_left, "causal-corner:0"},
      {"no_scale", grouped, plain, no_scale, "scale-missing"},
      {"scaled_twice", grouped, plain, scaled_twice, "scale-dk"},
      {"repeated_whole", grouped, plain, repeated_whole, "gqa-tiled"},
      {"masked_after", square, causal, masked_after, "mask-after"},
      {"minus_ten_thousand",
       square,
       lengths,
       minus_ten_thousand,
       "mask-finite-added:-1e4",
       {15, 0}},
      {"nan_without_keys", square, lengths, nan_without_keys, "empty-row-nan", {15, 0}},
      {"padded_left", square, some_padding, padded_left, "padding-side", {15, 9}},
      {"window_too_wide", square, window, window_too_wide, "window-off:1"},
      {"softmax_down_columns", square, plain, softmax_down_columns, "softmax-columns"},
      {"softmax_over_heads", square, plain, softmax_over_heads, "softmax-heads"},
      {"key_viewed", square, plain, key_viewed, "keys-reshaped"},
      {"heads_viewed", square, plain, heads_viewed, "heads-reshaped:q,k,v,out"},
      {"heads_attend", square, plain, heads_attend, "heads-as-positions"},
      {"softmax_of_softmax", square, plain, softmax_of_softmax, "softmax-twice"},
      {"one_batch_pointer", square, plain, one_batch_pointer, "batch-first"},
      {"attends_before_append", grouped, plain, attends_before_append, "cache-late:1"},
      {"dropout_factor", grouped, plain, dropout_factor, "dropout-on:0.1"},
      {"capped_last", square, capped, capped_last, "softcap-order"},
      {"slopes_from_one", alibi_shape, alibi, slopes_from_one, "alibi-slopes:from-one"},
      {"alibi_then_scale", alibi_shape, alibi, alibi_then_scale, "bias-scaled"},
      {"adjacent_pairs", square, plain, adjacent_pairs, "rope-pairing", {}, Rotary{}},
      {"lse_of_exp2", grouped, plain, lse_of_exp2, "lse-base2"},
      {"acc_kept", grouped, plain, tile(acc_kept), "tile-no-rescale:16"},
      {"sum_kept", grouped, plain, tile(sum_kept), "tile-sum-no-rescale:16"},
      {"rest_dropped", grouped, plain, tile(rest_dropped), "tile-tail-ignored:16"},
      {"rest_of_zeros", grouped, plain, tile(rest_of_zeros), "tile-tail-zero:16"},
      {"parts_averaged", grouped, plain, tile(parts_averaged), "merge-averaged:16"},
      {"diagonal_tile_whole", square, causal, tile(diagonal_tile_whole), "causal-by-tile:16"},
      {"decode_range_too_short", grouped, causal, decode_range_too_short, "mask-strict"},
      {"decode_tri_one_too_wide", grouped, causal, decode_tri_one_too_wide, "mask-wide"},
      {"slots_from_past_minus_one", grouped, causal, slots_from_past_minus_one,
       "cache-slot-early:zero"},
      {"slots_shifted_in_place", grouped, causal, slots_shifted_in_place, "cache-slot-early:stale"},
      {"one_slot_early", one_new, causal, slots_from_past_minus_one, "cache-slot-early:zero"},
      {"one_slot_shifted", one_new, causal, slots_shifted_in_place, "cache-slot-early:stale"},
      {"cache_turned_again",
       grouped,
       causal,
       cache_turned_again,
       "rope-twice:cached",
       {},
       Rotary{true}},
  };
}

bool has(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// What gives the same numbers as this mistake on the probe.
std::vector<std::string> group_of(const Probe& probe, const std::string& name) {
  for (const std::vector<std::string>& group : probe.alike)
    if (has(group, name)) return group;
  return {name};
}

class Specimens : public ::testing::TestWithParam<Specimen> {};

TEST_P(Specimens, is_named) {
  const Specimen& specimen = GetParam();
  const AttentionOptions options = specimen.options();
  const Probe probe = make_probe(specimen.shape, options, 3, specimen.rotary);
  Result result = specimen.run(call_of(specimen, probe));
  const ProbeShape& s = specimen.shape;
  Claims claims;
  claims.out = View<const float, 4>(result.out.data(), {s.batch, s.heads, s.q_len, s.d_v});
  if (!result.lse.empty())
    claims.lse = View<const float, 3>(result.lse.data(), {s.batch, s.heads, s.q_len});
  const AttentionCase attention{probe.q, probe.k, probe.v, options, specimen.rotary, {}};
  const Diagnosis d = diagnose(attention, claims);
  ASSERT_FALSE(d.causes.empty()) << diagnosis_text(d);
  const std::vector<std::string> alike = group_of(probe, specimen.name_of_fault);
  EXPECT_TRUE(has(alike, d.causes.front().name())) << diagnosis_text(d);
  for (const std::string& name : alike) {
    const bool is_listed = std::any_of(d.causes.begin(), d.causes.end(),
                                       [&](const Cause& cause) { return cause.name() == name; });
    EXPECT_TRUE(is_listed) << name << " is alike and not listed\n" << diagnosis_text(d);
  }
}

INSTANTIATE_TEST_SUITE_P(Doctor, Specimens, ::testing::ValuesIn(all_specimens()),
                         [](const auto& given) { return given.param.name; });

}  // namespace
}  // namespace glasshead
