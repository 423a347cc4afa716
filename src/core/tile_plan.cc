#include "core/tile_plan.h"

#include <algorithm>
#include <cstddef>
#include <variant>

namespace glasshead {
namespace {

struct Positions {
  index_t first, last;
};
Positions positions_of(const PanelRows& rows, index_t query_start) {
  return {query_start + rows.first(), query_start + rows.last()};
}

// The kind of a tile by what the bits of its keys have in common.
TileKind kind_of(std::uint32_t any, std::uint32_t every, std::uint32_t lanes) {
  if ((any & lanes) == 0) return TileKind::none;
  return (every & lanes) == lanes ? TileKind::all : TileKind::some;
}

// A row's bit changes where its interval begins and where it ends: marked there, then carried along
// the keys.
TileKind interval_bits(const MaskPlan& mask, const PanelRows& rows, KeyRange keys,
                       std::uint32_t* bits) {
  const index_t count = keys.end - keys.begin;
  std::fill(bits, bits + count, std::uint32_t{0});
  for (index_t r = 0; r < rows.count; ++r) {
    const KeyRange row = mask.intervals().at(rows.b, mask.position(rows.i[r]));
    const index_t begin = std::max(row.begin, keys.begin) - keys.begin;
    const index_t end = std::min(row.end, keys.end) - keys.begin;
    if (begin >= end) continue;
    bits[begin] ^= std::uint32_t{1} << r;
    if (end < count) bits[end] ^= std::uint32_t{1} << r;
  }
  const std::uint32_t lanes = lanes_of(rows);
  std::uint32_t inside = 0;
  std::uint32_t any = 0;
  std::uint32_t every = lanes;
  for (index_t n = 0; n < count; ++n) {
    inside ^= bits[n];
    any |= inside;
    every &= inside;
    bits[n] = inside | ~lanes;
  }
  return kind_of(any, every, lanes);
}

// Rows in order of position have intervals in order: the first and the last decide most tiles.
TileKind interval_kind(const MaskPlan& mask, const PanelRows& rows, KeyRange keys,
                       std::uint32_t* bits) {
  if (!mask.intervals().narrows()) return TileKind::all;
  const Positions p = positions_of(rows, mask.query_start());
  const KeyRange first = mask.intervals().at(rows.b, p.first);
  const KeyRange last = mask.intervals().at(rows.b, p.last);
  if (keys.end <= first.begin || keys.begin >= last.end) return TileKind::none;
  if (keys.begin >= last.begin && keys.end <= first.end) return TileKind::all;
  return interval_bits(mask, rows, keys, bits);
}

// Takes the hidden pairs out of `bits`, which hold numbers only if the intervals said `some`.
TileKind take_out(const HiddenPairs& hidden, TileKind kind, const PanelRows& rows, KeyRange keys,
                  std::uint32_t* bits) {
  const std::uint32_t lanes = lanes_of(rows);
  const index_t count = keys.end - keys.begin;
  if ((hidden.lanes & lanes) == lanes) return TileKind::none;
  if (hidden.lanes == 0 && !hidden.has_planes) return kind;
  if (kind == TileKind::all) std::fill(bits, bits + count, ~std::uint32_t{0});
  std::uint32_t any = 0;
  std::uint32_t every = lanes;
  for (index_t n = 0; n < count; ++n) {
    std::uint32_t out = hidden.lanes;
    if (hidden.has_planes) {
      const index_t at = keys.begin % kTileKeys + n;
      out |= static_cast<std::uint32_t>(hidden.plane[0][at]) |
             static_cast<std::uint32_t>(hidden.plane[1][at]) << 8 |
             static_cast<std::uint32_t>(hidden.plane[2][at]) << 16 |
             static_cast<std::uint32_t>(hidden.plane[3][at]) << 24;
    }
    const std::uint32_t allowed = bits[n] & ~out;
    any |= allowed;
    every &= allowed;
    bits[n] = allowed | ~lanes;
  }
  return kind_of(any, every, lanes);
}

}  // namespace

TilePlan::TilePlan(const AttentionOptions& options, const PairShape& shape)
    : mask_(options, shape), bias_(options, shape) {
  for (const Mask::Part& part : options.mask.parts()) {
    if (const auto* given = std::get_if<Mask::Explicit>(&part))
      elements_.emplace_back(given->allowed, shape);
    if (const auto* segments = std::get_if<Mask::Segments>(&part))
      segments_.emplace_back(*segments, shape);
  }
  const index_t start = mask_.query_start();
  for (const Bias::Term& term : options.bias.terms()) {
    if (const auto* dense = std::get_if<Bias::Dense>(&term))
      elements_.emplace_back(dense->values, shape);
    if (const auto* t5 = std::get_if<Bias::T5>(&term))
      relative_.emplace_back(*t5, -(start + shape.q_len - 1), shape.kv_len - 1 - start);
  }
}

KeyRange TilePlan::interval_range(const PanelRows& rows) const {
  const Positions p = positions_of(rows, mask_.query_start());
  const KeyRange first = mask_.intervals().at(rows.b, p.first);
  const KeyRange last = mask_.intervals().at(rows.b, p.last);
  if (!first.is_empty() && !last.is_empty()) return {first.begin, last.end};
  KeyRange all;
  for (index_t r = 0; r < rows.count; ++r)
    all = united(all, mask_.key_range(rows.b, rows.h[r], rows.i[r]));
  return all;
}

KeyRange TilePlan::key_range(const PanelRows& rows) const {
  KeyRange range = interval_range(rows);
  for (const SegmentRuns& segments : segments_) {
    const KeyRange documents = segments.key_range(rows);
    range = {std::max(range.begin, documents.begin), std::min(range.end, documents.end)};
  }
  return range.is_empty() ? KeyRange{} : range;
}

TileKind TilePlan::tile(const PanelRows& rows, KeyRange keys, std::uint32_t* bits) const {
  if (keys.is_empty()) return TileKind::none;
  const TileKind kind = interval_kind(mask_, rows, keys, bits);
  if (kind == TileKind::none || (segments_.empty() && elements_.empty() && mask_.rules().empty()))
    return kind;
  HiddenPairs hidden;
  for (const SegmentRuns& segments : segments_) segments.hide(rows, keys, hidden);
  for (const auto& map : mask_.rules()) hide_by_rule(*map, rows, keys, hidden);
  for (const HidingElements& elements : elements_) {
    if (hidden.lanes == lanes_of(rows)) break;
    elements.hide(rows, keys, hidden);
  }
  return take_out(hidden, kind, rows, keys, bits);
}

bool TilePlan::has_bias() const { return !bias_.is_empty(); }

}  // namespace glasshead
