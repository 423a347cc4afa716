#include "core/tile_mask.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace glasshead {
namespace {

template <class U>
U load(const unsigned char* elements, index_t n) {
  U x;
  std::memcpy(&x, elements + n * static_cast<index_t>(sizeof(U)), sizeof(U));
  return x;
}

struct Scan {
  bool has_equal, has_other;
};
// ORs of whole vectors: no branch inside, since most rows are all of one kind.
template <class U>
Scan scan(const unsigned char* elements, index_t count, U pattern) {
  U equal = 0;
  U other = 0;
  for (index_t n = 0; n < count; ++n) {
    const U is_equal = load<U>(elements, n) == pattern ? static_cast<U>(~U{0}) : U{0};
    equal = static_cast<U>(equal | is_equal);
    other = static_cast<U>(other | static_cast<U>(~is_equal));
  }
  return {equal != 0, other != 0};
}

template <class U>
void hide_in_plane(const unsigned char* elements, index_t count, U pattern, std::uint8_t bits,
                   std::uint8_t* plane) {
  for (index_t n = 0; n < count; ++n)
    plane[n] = static_cast<std::uint8_t>(plane[n] | (load<U>(elements, n) == pattern ? bits : 0));
}

}  // namespace

void HiddenPairs::need_planes() {
  if (has_planes) return;
  has_planes = true;
  std::memset(plane, 0, sizeof(plane));
}

template <class U>
void HidingElements::hide_equal(U pattern, const PanelRows& rows, KeyRange keys,
                                HiddenPairs& hidden) const {
  constexpr auto kSize = static_cast<index_t>(sizeof(U));
  const SourceRows sources(strides_, rows);
  const index_t count = strides_.j == 0 ? 1 : keys.end - keys.begin;
  const auto* const first = static_cast<const unsigned char*>(values_.data);
  unsigned char gathered[kTileKeys * kSize];
  for (index_t s = 0; s < sources.count; ++s) {
    const unsigned char* row = first + (sources.offset[s] + keys.begin * strides_.j) * kSize;
    if (strides_.j != 0 && strides_.j != 1) {
      for (index_t n = 0; n < count; ++n)
        std::memcpy(gathered + n * kSize, row + n * strides_.j * kSize, sizeof(U));
      row = gathered;
    }
    const Scan found = scan(row, count, pattern);
    if (!found.has_equal) continue;
    if (!found.has_other) {
      hidden.lanes |= sources.lanes[s];
      continue;
    }
    hidden.need_planes();
    for (int octet = 0; octet < 4; ++octet) {
      const auto bits = static_cast<std::uint8_t>(sources.lanes[s] >> (8 * octet));
      if (bits != 0)
        hide_in_plane(row, count, pattern, bits, hidden.plane[octet] + keys.begin % kTileKeys);
    }
  }
}

void HidingElements::hide(const PanelRows& rows, KeyRange keys, HiddenPairs& hidden) const {
  switch (values_.dtype) {
    case DType::u8:
      return hide_equal<std::uint8_t>(0, rows, keys, hidden);
    case DType::f64:  // from here on the bits of -inf
      return hide_equal<std::uint64_t>(0xfff0000000000000, rows, keys, hidden);
    case DType::f32:
      return hide_equal<std::uint32_t>(0xff800000, rows, keys, hidden);
    case DType::bf16:
      return hide_equal<std::uint16_t>(0xff80, rows, keys, hidden);
    case DType::f16:
      return hide_equal<std::uint16_t>(0xfc00, rows, keys, hidden);
    case DType::i64:
      return;  // refused by check
  }
}

SegmentRuns::SegmentRuns(const Mask::Segments& part, const PairShape& shape)
    : query_ids_(part.query_ids), q_len_(shape.q_len) {
  for (index_t b = 0; b < part.batch; ++b) {
    const index_t* ids = part.key_ids.data() + b * shape.kv_len;
    Row row;
    for (index_t j = 0; j < shape.kv_len; ++j) {
      if (row.runs.empty() || row.runs.back().id != ids[j]) row.runs.push_back({j, ids[j]});
      if (j % kTileKeys == 0) row.run_of_block.push_back(static_cast<index_t>(row.runs.size()) - 1);
    }
    row.runs.push_back({shape.kv_len, 0});
    rows_.push_back(std::move(row));
  }
}

void SegmentRuns::hide(const PanelRows& rows, KeyRange keys, HiddenPairs& hidden) const {
  const index_t b = rows_.size() == 1 ? 0 : rows.b;
  const index_t* const ids = query_ids_.data() + b * q_len_;
  const Row& row = rows_[static_cast<std::size_t>(b)];
  index_t own[kMostRows];
  for (index_t r = 0; r < rows.count; ++r) own[r] = ids[rows.i[r]];
  const index_t block = keys.begin / kTileKeys;
  const Run* run = row.runs.data() + row.run_of_block[static_cast<std::size_t>(block)];
  while (run[1].begin <= keys.begin) ++run;
  for (; run->begin < keys.end; ++run) {
    std::uint32_t others = 0;
    for (index_t r = 0; r < rows.count; ++r)
      others |= static_cast<std::uint32_t>(own[r] != run->id ? 1 : 0) << r;
    if (others == 0) continue;
    const index_t begin = std::max(run->begin, keys.begin);
    const index_t end = std::min(run[1].begin, keys.end);
    if (begin == keys.begin && end == keys.end) {
      hidden.lanes |= others;
      return;
    }
    hidden.need_planes();
    for (int octet = 0; octet < 4; ++octet) {
      const auto bits = static_cast<std::uint8_t>(others >> (8 * octet));
      std::uint8_t* const plane = hidden.plane[octet] + block * -kTileKeys;
      for (index_t j = begin; j < end; ++j) plane[j] = static_cast<std::uint8_t>(plane[j] | bits);
    }
  }
}

}  // namespace glasshead
