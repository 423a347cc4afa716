// How attend would run a call, without running it: which kernels and why, how the work is cut, what
// is skipped, how much memory it takes.
//
//   const AttendPlan plan = plan_attend(q, k, v, options);
//   plan.isa;                                    // "avx2"
//   plan.tiles.none + plan.tiles.all + plan.tiles.some;
//
// `glasshead attend --explain` prints it. Nothing of it changes a bit of a result.
#pragma once

#include <string>

#include "glasshead/attention.h"
#include "glasshead/kv_cache.h"

namespace glasshead {

// Two forms of the same arithmetic.
enum class AttendForm {
  panel,  // query rows stand in the vector lanes: prefill
  rows    // keys, then elements of the value, stand in the lanes: decoding, where there are too few
          // query rows to fill a vector
};

struct AttendPlan {
  std::string isa, why_isa;    // as Context::isa and why_isa
  DType compute = DType::f32;  // f64 for f64 input, else f32
  AttendForm form = AttendForm::panel;
  std::string why_form;

  // Packed rows: those of the query heads that share a key/value head, q_len * heads / kv_heads. A
  // key is read once for all rows of an item.
  index_t rows_per_panel = 0;   // that one panel has lanes for
  index_t panels_per_item = 0;  // at most
  index_t row_blocks = 0;       // (batch, kv head, rows of an item)
  index_t nodes = 1;            // runs of keys that a row block is cut into, for more threads
  index_t keys_per_node = 0;    // a multiple of 1,024; 0: an item walks all its keys
  index_t items = 0;            // row_blocks * nodes: what threads take from the queue
  int threads = 0;              // of the context's, those that get an item

  // A tile is one panel against one block of 128 keys.
  struct Tiles {
    index_t none = 0;  // no allowed pair: skipped
    index_t all = 0;   // every pair of those in the panel's range of keys allowed: no mask is made
    index_t some = 0;  // one bit per pair
  };
  Tiles tiles;

  index_t scratch_bytes = 0;  // beside inputs and results, over all threads
};

// Refuses what attend refuses in q, k, v and options. Asks the mask for every tile, so a
// Mask::where rule is called and an explicit mask is read; reads no element of q, k or v.
AttendPlan plan_attend(const ConstTensor<4>& q, const ConstTensor<4>& k, const ConstTensor<4>& v,
                       const AttentionOptions& options = {},
                       const Context& context = default_context());

// The same for attend over a KvInput: refuses what that refuses. Keys are those of the longest
// sequence; blocks past a shorter one's end are among the tiles skipped.
AttendPlan plan_attend(const ConstTensor<4>& q, const KvInput& kv,
                       const AttentionOptions& options = {},
                       const Context& context = default_context());

}  // namespace glasshead
