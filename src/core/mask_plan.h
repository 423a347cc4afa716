// Who may attend to whom, answered for one call: the mask's parts, the -inf entries of dense biases
// and the shapes are put together once and asked per pair, per row, or for a whole row at a time.
//
//   MaskPlan plan(options, {batch, heads, q_len, kv_len});
//   if (plan.allowed(b, h, i, j)) ...
//   plan.reasons(b, h, i, j).names();                  // {"causal", "padding"}
//   KeyRange keys = plan.key_range(b, h, i);           // no key outside it is allowed
//   plan.fill_row(b, h, i, keys, flags);               // flags[j] = allowed, for j in keys
//
// The options must have passed `check`; the data of explicit masks and dense biases must outlive
// the plan (their owners are kept).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/row_intervals.h"
#include "core/rule_map.h"
#include "glasshead/attention.h"

namespace glasshead {

// What can hide a pair. Bits of Reasons, in the order in which they are named.
enum class Reason : std::uint8_t {
  causal = 1,    // the key stands after the query
  window = 2,    // outside the window
  padding = 4,   // at or past the key length
  segments = 8,  // another document
  prefix = 16,   // past the prefix and after the query
  mask = 32,     // false in an explicit mask
  rule = 64,     // false by a rule (Mask::where)
  bias = 128     // -inf in a dense bias
};
const char* name(Reason reason);  // "causal", "window", "padding", ...

// A set of Reason; empty: the pair is allowed.
class Reasons {
 public:
  void add(Reason reason) { bits_ = static_cast<std::uint8_t>(bits_ | static_cast<int>(reason)); }
  bool has(Reason reason) const { return (bits_ & static_cast<int>(reason)) != 0; }
  bool is_empty() const { return bits_ == 0; }
  std::vector<std::string> names() const;  // in the order of the enumerators

 private:
  std::uint8_t bits_ = 0;
};

// Where query row 0 stands: the stated position, kv_len - q_len for Align::end, else 0.
index_t resolve_query_start(const QueryStart& query_start, index_t q_len, index_t kv_len);

// The kv row of a broadcast that belongs to (b, h, i): element j is at offset + j * step of `data`.
struct BroadcastRow {
  const void* data = nullptr;
  DType dtype = DType::u8;
  index_t offset = 0, step = 0;  // in elements
  double load(index_t j) const { return load_element(data, dtype, offset + j * step); }
};
BroadcastRow broadcast_row(const Broadcast& values, index_t b, index_t h, index_t i);

class MaskPlan {
 public:
  MaskPlan(const AttentionOptions& options, const PairShape& shape);

  bool allowed(index_t b, index_t h, index_t i, index_t j) const {
    return reasons(b, h, i, j).is_empty();
  }
  // Every rule that hides the pair, not only the first.
  Reasons reasons(index_t b, index_t h, index_t i, index_t j) const;

  // The smallest interval of keys outside which causality, windows, lengths and prefixes hide
  // everything; segments, explicit masks, rules and biases may hide more inside it.
  KeyRange key_range(index_t b, index_t h, index_t i) const;

  // allowed[j] = 1 or 0 for every j in `keys` (indexed by the key itself), which must lie in
  // [0, kv_len). Returns how many are allowed. The same answers as `allowed`, row work done once.
  index_t fill_row(index_t b, index_t h, index_t i, KeyRange keys, std::uint8_t* allowed) const;

  // Whether row i of head h may attend to any key: looks no further than the first run of keys that
  // has one, and at none where intervals alone decide.
  bool has_allowed(index_t b, index_t h, index_t i) const;

  // The number of keys that row i of head h may attend to.
  index_t count_allowed(index_t b, index_t h, index_t i) const;

  const PairShape& shape() const { return shape_; }
  const Mask& mask() const { return mask_; }
  const std::vector<std::shared_ptr<const RuleMap>>& rules() const { return rules_; }
  const RowIntervals& intervals() const { return intervals_; }
  index_t query_start() const { return query_start_; }
  index_t position(index_t i) const { return query_start_ + i; }

 private:
  index_t fill(index_t b, index_t h, index_t i, KeyRange keys, std::uint8_t* flags) const;

  Mask mask_;
  std::vector<Broadcast> dense_;                       // biases whose -inf entries hide
  std::vector<std::shared_ptr<const RuleMap>> rules_;  // the answers of Mask::where parts
  RowIntervals intervals_;
  PairShape shape_;
  index_t query_start_ = 0;
};

}  // namespace glasshead
