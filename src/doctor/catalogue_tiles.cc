// Mistakes of tiled kernels, and arithmetic that is narrower than it should be.
#include <string>

#include "doctor/catalogue.h"

namespace glasshead::doctor {
namespace {

// Sizes that cut the keys into more than one tile; with `partial` those that leave a rest.
Choices tile_sizes(const Program& p, bool is_partial) {
  Choices sizes;
  const index_t n = p.k->extent(2);
  for (const index_t tile : {8, 16, 32, 64, 128, 256, 512, 1024}) {
    if (is_partial ? n % tile == 0 : n <= tile) continue;
    if (tile > n && tile > 64) continue;
    sizes.push_back({static_cast<double>(tile), std::to_string(tile)});
  }
  return sizes;
}
Choices whole_tiles(const Program& p) { return tile_sizes(p, false); }
Choices partial_tiles(const Program& p) { return tile_sizes(p, true); }

bool set_tiling(Program& p, Tiling tiling, const Choice& choice) {
  if (p.tiling != Tiling::none || p.axis != Axis::row) return false;
  p.tiling = tiling;
  p.tile = static_cast<index_t>(choice.value);
  return true;
}

const Fault kFaults[] = {
    {"tile-tail-ignored",
     {"T", "last, partial tile ignored", "keys past the last multiple of T are never read",
      "for (j0 = 0; j0 + T <= n; j0 += T)", "for (j0 = 0; j0 < n; j0 += T)",
      "the last tile has n mod T keys"},
     [](const Program& p) {
       Choices sizes = partial_tiles(p);
       std::erase_if(
           sizes, [&](const Choice& c) { return static_cast<index_t>(c.value) > p.k->extent(2); });
       return sizes;
     },
     [](Program& p, const Choice& c) { return set_tiling(p, Tiling::tail_ignored, c); }},
    {"tile-tail-zero",
     {"T", "padding of the last tile scored 0",
      "the last tile is filled up with keys of score 0 that take part in the sum",
      "k_tile = zeros(T, d); k_tile[:rest] = k[j0:]", "s[:, rest:] = -inf",
      "hide the padding of the last tile"},
     partial_tiles,
     [](Program& p, const Choice& c) {
       return !has_part<Mask::Causal>(p) && set_tiling(p, Tiling::tail_zero, c);
     }},
    {"tile-no-rescale",
     {"T", "accumulator not rescaled between tiles of T",
      "when the maximum rises, the sum of values keeps the factor it had", "acc += p @ v_tile",
      "acc = acc * exp(m_old - m_new) + p @ v_tile",
      "rescale accumulator and sum by exp(old max - new max)"},
     whole_tiles,
     [](Program& p, const Choice& c) { return set_tiling(p, Tiling::not_rescaled, c); }},
    {"tile-sum-no-rescale",
     {"T", "sum of exps not rescaled between tiles of T",
      "when the maximum rises, the sum of exps keeps the factor it had", "l += p.sum()",
      "l = l * exp(m_old - m_new) + p.sum()",
      "rescale accumulator and sum by exp(old max - new max)"},
     whole_tiles,
     [](Program& p, const Choice& c) { return set_tiling(p, Tiling::sum_not_rescaled, c); }},
    {"tile-neither-rescaled",
     {"T", "nothing rescaled between tiles of T",
      "when the maximum rises, neither the sum of exps nor that of values is rescaled",
      "acc += p @ v_tile; l += p.sum()",
      "a = exp(m_old - m_new); acc = acc * a + ...; l = l * a + ...",
      "rescale accumulator and sum by exp(old max - new max)"},
     whole_tiles,
     [](Program& p, const Choice& c) { return set_tiling(p, Tiling::neither_rescaled, c); }},
    {"merge-averaged",
     {"T", "tiles averaged instead of merged", "the results of tiles of T keys count alike",
      "out = mean([attend(q, kt, vt) for kt, vt in tiles])", "out = sum(exp(lse_t - lse) * out_t)",
      "weight each part by exp(its lse - the whole lse)"},
     whole_tiles,
     [](Program& p, const Choice& c) { return set_tiling(p, Tiling::averaged, c); }},
    {"causal-by-tile",
     {"T", "causal mask decided by whole tiles of T",
      "all keys of the tile that holds the diagonal are seen",
      "if (j0 > i) continue;  // and nothing inside the tile", "s = where(j <= p, s, -inf)",
      "the tile on the diagonal is masked pair by pair"},
     [](const Program& p) { return has_part<Mask::Causal>(p) ? whole_tiles(p) : Choices{}; },
     [](Program& p, const Choice& choice) {
       if (!has_part<Mask::Causal>(p)) return false;
       const index_t start = query_start(p), tile = static_cast<index_t>(choice.value);
       erase_part<Mask::Causal>(p);
       p.pair_edits.push_back([start, tile](const Pairs& before) -> Pairs {
         return [start, tile, before](index_t b, index_t h, index_t i, index_t j) {
           return start + i >= 0 && j / tile <= (start + i) / tile && before(b, h, i, j);
         };
       });
       return true;
     }},
    {"accumulate-f16",
     {"", "values summed in f16", "the sum over the keys is kept in f16, largest weight as 1",
      "acc = acc + p * v  # half", "float acc", "keep sums in f32"},
     [](const Program& p) { return once(p.arithmetic != DType::f16); },
     [](Program& p, const Choice&) {
       p.accumulates_f16 = true;
       return p.axis == Axis::row;
     },
     true},
    {"arithmetic-narrow",
     {"TYPE", "computed in a narrower type",
      "everything lies within what this type's rounding does, and beyond that of the stated one",
      "autocast(dtype=float16)", "attend(q.float(), k.float(), v.float())",
      "state the type, or compute in the wider one"},
     [](const Program& p) {
       Choices types;
       if (p.arithmetic == DType::f64) types.push_back({0, "f32"});
       if (p.arithmetic == DType::f64 || p.arithmetic == DType::f32) types.push_back({1, "f16"});
       if (p.arithmetic != DType::bf16) types.push_back({2, "bf16"});
       return types;
     },
     [](Program& p, const Choice& choice) {
       p.arithmetic = choice.text == "f32"   ? DType::f32
                      : choice.text == "f16" ? DType::f16
                                             : DType::bf16;
       return true;
     },
     true},
};

}  // namespace

std::span<const Fault> tile_faults() { return kFaults; }

}  // namespace glasshead::doctor
