// What hides pairs of a tile beside the interval-shaped rules: elements of explicit masks and dense
// biases, segments, and rules. Each part hides whole lanes where it can (a row that may see nothing
// of the tile) and pairs where it must.
//
//   HiddenPairs hidden(rows);
//   elements.hide(rows, keys, hidden);
//   segments.hide(rows, keys, hidden);
//   hide_by_rule(map, rows, keys, hidden);
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/panel_rows.h"

namespace glasshead {

inline constexpr index_t kTileKeys = 128;  // a tile's keys lie in one block of as many

// Pairs of a tile that are hidden: bit r % 8 of plane[r / 8][j % 128] stands for row r and key j.
// Bytes, so that a plain loop over a row's elements fills 16 at a time.
struct HiddenPairs {
  std::uint32_t lanes = 0;  // hidden at every key of the tile
  bool has_planes = false;
  std::uint8_t plane[4][kTileKeys];  // zeroed by the first that needs them

  void need_planes();
};

// A tensor of which certain elements hide: 0 in an explicit mask, -inf in a dense bias. What one
// head's tiles find of a row is remembered for the heads and batch entries that share it.
class HidingElements {
 public:
  HidingElements(const Broadcast& values, const PairShape& shape);
  void hide(const PanelRows& rows, KeyRange keys, HiddenPairs& hidden) const;

 private:
  // Of a row's elements in one block.
  static constexpr std::uint8_t kUnknown = 0, kNothing = 1, kEverything = 2, kSomething = 3;

  template <class U>
  void hide_equal(U pattern, const PanelRows& rows, KeyRange keys, HiddenPairs& hidden) const;
  std::atomic<std::uint8_t>* remembered(const PanelRows& rows, KeyRange keys) const;

  Broadcast values_;
  PairStrides strides_;
  PairShape shape_;
  index_t blocks_ = 0;
  index_t head_step_ = 0, row_step_ = 0;  // in known_
  // [distinct batch entries, distinct heads, blocks, distinct rows] of these; null where no two
  // tiles share a row. Shared, since threads add what they find and copies may use it.
  std::shared_ptr<std::vector<std::atomic<std::uint8_t>>> known_;
};

// Packed documents as runs of equal key ids, so that a tile costs a comparison per row and run.
class SegmentRuns {
 public:
  SegmentRuns(const Mask::Segments& part, const PairShape& shape);
  // From the first key of any of the rows' documents to the last.
  KeyRange key_range(const PanelRows& rows) const;
  void hide(const PanelRows& rows, KeyRange keys, HiddenPairs& hidden) const;

 private:
  struct Run {
    index_t begin, id;  // up to the next run's begin
  };
  struct Document {
    index_t id;
    KeyRange keys;  // with its first and its last
  };
  struct Row {
    std::vector<Run> runs;              // ends with one at kv_len
    std::vector<index_t> run_of_block;  // the run that holds the first key of each block
    std::vector<Document> documents;    // by id
  };
  static void join(std::vector<Document>& documents);

  std::vector<index_t> query_ids_;  // [1 or batch, q_len]
  std::vector<Row> rows_;           // 1 or batch
  index_t q_len_ = 0;
};

// The pairs that a rule's map hides.
void hide_by_rule(const RuleMap& map, const PanelRows& rows, KeyRange keys, HiddenPairs& hidden);

}  // namespace glasshead
