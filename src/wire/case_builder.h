// What the parts of the case parser share while a case is being read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "wire/case.h"
#include "wire/case_reader.h"

namespace glasshead::wire {

struct CaseBuilder {
  explicit CaseBuilder(std::vector<Problem>& problems) : read(problems) {}

  Case c;
  CaseReader read;
  std::vector<std::string> context_labels;  // of the keys that attention over `context` has
  bool has_context = false;

  // Makes `value` the input `tap` and returns its name; "" when it is absent or wrong.
  std::string input(JsonValue value, const std::string& path, const std::string& tap,
                    int least_rank = 2, int most_rank = 2);
  void add_input(const std::string& path, const std::string& tap, GivenTensor given);
  const TraceTensor* find_input(const std::string& tap) const;
};

// "attention" or "cross_attention" at `path`. `keys` are the labels of its keys; `has_given` allows
// the fields q, k, v, which read_given has read.
struct AttentionPlace {
  std::string path;               // "blocks[1].attention"
  std::string prefix;             // of its taps: "block.1."
  std::vector<std::string> keys;  // labels
  index_t query_count = 0;
  bool has_given = false;
};
void read_attention(CaseBuilder& build, JsonValue value, const AttentionPlace& place,
                    nn::Attention& out);
// q, k, v of the top-level attention: before labels are known, since they say how many there are.
void read_given(CaseBuilder& build, JsonValue attention);

// The parts of a block, which stand either at the top level or in an element of "blocks".
nn::Block read_block(CaseBuilder& build, JsonValue parent, const std::string& path,
                     const std::string& prefix, bool has_given);
void read_positions(CaseBuilder& build, JsonValue value);
nn::Norm read_norm(CaseBuilder& build, JsonValue value, const std::string& path,
                   const std::string& tap, std::optional<nn::NormPlacement>* placement);
void read_unembedding(CaseBuilder& build, JsonValue value);

// printed, claims, drills: read when the rest is sound.
void read_notes(CaseBuilder& build, JsonValue root);

// Everything that doesn't fit, by field path: shapes, options, and what contradicts each other.
void check_case(const Case& c, CaseReader& read);

// Whether edit_case would accept the edit; adds its problems. Random inputs are not made for it.
bool check_edit(const Case& original, const Edit& edit, std::vector<Problem>& problems);

// The labels an axis of an input goes by, counted from the last; null when it has none.
const std::vector<std::string>* axis_labels(const Case& c, const std::string& tap,
                                            std::size_t axes_from_last);

// The mask that --mask and edits name: "none", "causal", "window:L,R", "prefix:N", "padding:N",
// "rows:10/11", and several joined by "+": a pair is hidden if any hides it.
std::optional<Mask> parse_mask_name(std::string_view text, std::string& why_not);
// The mask of these pairs, row by row: 1 may attend.
Mask allowed_pairs(index_t queries, index_t keys, std::vector<std::uint8_t> allowed);
// Hides these keys of `key_count` from every query.
Mask hide_keys(const std::vector<index_t>& keys, index_t key_count);

}  // namespace glasshead::wire
