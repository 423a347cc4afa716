// What a program does with q, k and v: the right thing, until a mistake edits it. Every way to go
// wrong that the catalogue knows is a member with the right thing as its default, so that mistakes
// combine, and one function (program_rows.h) computes what any of them gives for a row.
//
//   Program program = right_program(subject);
//   program.options.scale = 1.0;                  // scale-missing
//   Runner(program).row({b, h, i});               // out, weights, scores, lse of that row
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "core/mask_plan.h"
#include "doctor/numbers.h"
#include "glasshead/diagnose.h"

namespace glasshead::doctor {

class Turns;

struct RowIndex {
  index_t b = 0, h = 0, i = 0;
};

// allowed(b, h, i, j)
using Pairs = std::function<bool(index_t b, index_t h, index_t i, index_t j)>;
// Makes the wrong set of pairs from the right one.
using PairEdit = std::function<Pairs(const Pairs& before)>;

enum class Product : std::uint8_t { queries_keys, keys_queries, untransposed };
enum class Grouping : std::uint8_t { adjacent, tiled, first, keys_interleaved, keys_tiled };
enum class CapPlace : std::uint8_t { after_scale, before_scale, after_bias, after_mask };
enum class Hiding : std::uint8_t {
  select,         // hidden keys are left out
  after,          // weights are set to 0 after softmax
  multiplied,     // scores times 0 or 1
  numbered,       // 0 or 1 added to the scores
  set,            // hidden scores are `hidden_value`
  added,          // `hidden_value` is added to hidden scores
  scaled,         // the same before the scale
  times_infinity  // (1 - mask) * -inf: 0 * inf is NaN
};
enum class EmptyRule : std::uint8_t { zero, uniform, nan };
enum class Axis : std::uint8_t { row, columns, whole, heads, none };
enum class Tiling : std::uint8_t {
  none,
  tail_ignored,      // the keys of the last, partial tile
  tail_zero,         // the tile is filled up with keys of score 0
  not_rescaled,      // the sum of values keeps the maximum it began with; the sum of exps is right
  neither_rescaled,  // nor the sum of exps
  sum_not_rescaled,  // the sum of exps alone
  averaged           // each tile's softmax counts alike
};
// What holds exps whose maximum was not subtracted.
enum class Exps : std::uint8_t { wide, f16, f16_and_sum };
enum class LseRule : std::uint8_t {
  natural,
  base2,
  unscaled,
  without_max,
  only_max,
  zero_if_empty
};

struct Program {
  const Numbers* q = nullptr;
  const Numbers* k = nullptr;
  const Numbers* v = nullptr;
  const Numbers* unprojected = nullptr;  // null: unknown
  const Numbers* swapped[3] = {};        // q, k, v with the axes of heads and length exchanged
  AttentionOptions options;
  double scale = 1;
  DType arithmetic = DType::f32;

  bool swaps_axes = false;  // attends over the heads of each position
  Misread q_order, k_order, v_order, out_order;
  Product product = Product::queries_keys;
  Grouping grouping = Grouping::adjacent;
  bool is_first_batch = false;  // k and v of batch entry 0 for all
  index_t value_shift = 0;      // the value of key j + shift
  index_t missing_keys = 0;     // the last ones are not seen
  // So many of the last keys and values stand one slot too early; the last slot keeps what belongs
  // there, or is zero.
  index_t early_keys = 0;
  bool is_last_slot_zero = false;

  std::optional<Rotary> rotary;
  const Turns* turns = nullptr;  // shared by programs of one diagnosis; null: each its own
  bool turns_q = true, turns_k = true, turns_v = false;
  bool turns_q_twice = false;
  index_t turned_twice = 0;           // keys before this one
  index_t query_offset = 0;           // of the queries' positions, for rotary positions alone
  std::vector<index_t> query_starts;  // by batch entry, for the same; empty: as the options say

  CapPlace cap_place = CapPlace::after_scale;
  double bias_factor = 1;
  index_t bias_shift = 0;
  bool is_bias_transposed = false, is_bias_of_first_head = false, does_bias_hide = true;
  double hidden_from = -std::numeric_limits<double>::infinity();  // a bias this low hides too

  std::vector<PairEdit> pair_edits;
  Hiding hiding = Hiding::select;
  double hidden_value = 0;
  bool reads_hidden_values = false, reads_hidden_keys = false;
  EmptyRule empty = EmptyRule::zero;

  Axis axis = Axis::row;
  bool is_shifted = true;    // the maximum is subtracted
  Exps exps = Exps::wide;    // where it is not
  bool is_twice = false;     // softmax of the weights
  bool is_divided = true;    // by the sum
  double weight_factor = 1;  // of the weights, after softmax
  bool may_drop = false;     // a claimed weight of 0 is dropout's
  bool transposes_weights = false;
  bool accumulates_f16 = false;
  Tiling tiling = Tiling::none;
  index_t tile = 0;
  LseRule lse = LseRule::natural;

  const Numbers* d_out = nullptr;  // null: no gradients
  Misread d_out_order;
  double gradient_scale = 1;       // of ds, beside the program's own
  bool forgets_mean = false;       // ds = w dw, without - sum w dw
  bool forgets_cap_slope = false;  // d tanh is taken for 1
  bool keeps_last_head = false;    // dk, dv of the last head that shares them, not their sum

  PairShape pairs() const { return {q->extent(0), q->extent(1), q->extent(2), k->extent(2)}; }
  index_t kv_heads() const { return k->extent(1); }
  index_t group() const { return q->extent(1) / kv_heads(); }
  index_t d_k() const { return k->extent(3); }
  index_t d_v() const { return v->extent(3); }
  // Whether what it gives as gradients is known.
  bool has_gradients() const {
    return d_out != nullptr && product == Product::queries_keys && !swaps_axes &&
           q_order.is_right() && k_order.is_right() && v_order.is_right() && out_order.is_right() &&
           axis == Axis::row && !is_twice && !transposes_weights && !rotary &&
           (tiling == Tiling::none || tiling == Tiling::tail_ignored ||
            tiling == Tiling::tail_zero) &&
           hiding == Hiding::select && !accumulates_f16 && early_keys == 0;
  }
  // Needs the scores of a whole head, or more, for one row.
  bool is_matrix_wide() const {
    return transposes_weights || axis == Axis::columns || axis == Axis::whole;
  }
};

}  // namespace glasshead::doctor
