#include "core/tile_mask.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "core/foresee.h"

namespace glasshead {
namespace {

template <class U>
U load(const unsigned char* elements, index_t n) {
  U x;
  std::memcpy(&x, elements + n * static_cast<index_t>(sizeof(U)), sizeof(U));
  return x;
}

// ORs of whole vectors: no branch inside, since most rows are all of one kind.
template <class U>
bool has_equal(const unsigned char* elements, index_t count, U pattern) {
  U equal = 0;
  for (index_t n = 0; n < count; ++n)
    equal =
        static_cast<U>(equal | (load<U>(elements, n) == pattern ? static_cast<U>(~U{0}) : U{0}));
  return equal != 0;
}
template <class U>
bool has_other(const unsigned char* elements, index_t count, U pattern) {
  U other = 0;
  for (index_t n = 0; n < count; ++n)
    other = static_cast<U>(other | (load<U>(elements, n) ^ pattern));
  return other != 0;
}

template <class U>
void hide_in_plane(const unsigned char* elements, index_t count, U pattern, std::uint8_t bits,
                   std::uint8_t* plane) {
  for (index_t n = 0; n < count; ++n)
    plane[n] = static_cast<std::uint8_t>(plane[n] | (load<U>(elements, n) == pattern ? bits : 0));
}

// Rows of 8 x 8 bits into columns: bit c of byte r becomes bit r of byte c (Warren, Hacker's
// Delight, section 7-3).
std::uint64_t transpose(std::uint64_t x) {
  std::uint64_t swap = (x ^ (x >> 7)) & 0x00aa00aa00aa00aa;
  x ^= swap ^ (swap << 7);
  swap = (x ^ (x >> 14)) & 0x0000cccc0000cccc;
  x ^= swap ^ (swap << 14);
  swap = (x ^ (x >> 28)) & 0x00000000f0f0f0f0;
  return x ^ swap ^ (swap << 28);
}

// The hidden keys of eight rows, 128 bits each, into their plane.
void hide_octet(const std::uint64_t (*out)[2], std::uint8_t* plane) {
  for (int byte = 0; byte < 16; ++byte) {
    std::uint64_t rows = 0;
    for (int r = 0; r < 8; ++r) rows |= (out[r][byte / 8] >> (8 * (byte % 8)) & 0xff) << (8 * r);
    const std::uint64_t keys = transpose(rows);
    for (int n = 0; n < 8; ++n) {
      std::uint8_t& at = plane[8 * byte + n];
      at = static_cast<std::uint8_t>(at | (keys >> (8 * n) & 0xff));
    }
  }
}

// Bits [begin, end) of 128.
void range_bits(index_t begin, index_t end, std::uint64_t* words) {
  for (index_t w = 0; w < 2; ++w) {
    const index_t low = std::clamp<index_t>(begin - 64 * w, 0, 64);
    const index_t high = std::clamp<index_t>(end - 64 * w, 0, 64);
    const auto below = [](index_t n) {
      return n == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1;
    };
    words[w] = below(high) & ~below(low);
  }
}

}  // namespace

void HiddenPairs::need_planes() {
  if (has_planes) return;
  has_planes = true;
  std::memset(plane, 0, sizeof(plane));
}

HidingElements::HidingElements(const Broadcast& values, const PairShape& shape)
    : values_(values),
      strides_(values),
      shape_(shape),
      blocks_((shape.kv_len + kTileKeys - 1) / kTileKeys) {
  const bool is_shared =
      (strides_.b == 0 && shape.batch > 1) || (strides_.h == 0 && shape.heads > 1);
  if (!is_shared || strides_.j == 0) return;
  row_step_ = strides_.i == 0 ? 0 : 1;
  head_step_ = strides_.h == 0 ? 0 : blocks_ * (strides_.i == 0 ? 1 : shape.q_len);
  const index_t rows = (strides_.b == 0 ? 1 : shape.batch) * (strides_.h == 0 ? 1 : shape.heads) *
                       (strides_.i == 0 ? 1 : shape.q_len);
  known_ = std::make_shared<std::vector<std::atomic<std::uint8_t>>>(
      static_cast<std::size_t>(rows * blocks_));
}

// Where what is known of these keys' block begins; null if nothing is kept for these keys.
std::atomic<std::uint8_t>* HidingElements::remembered(const PanelRows& rows, KeyRange keys) const {
  if (!known_ || keys.begin % kTileKeys != 0) return nullptr;
  if (keys.end - keys.begin != kTileKeys && keys.end != shape_.kv_len) return nullptr;
  const index_t heads = strides_.h == 0 ? 1 : shape_.heads;
  const index_t length = strides_.i == 0 ? 1 : shape_.q_len;
  const index_t plane = strides_.b == 0 ? 0 : rows.b * heads * blocks_;
  return known_->data() + (plane + keys.begin / kTileKeys) * length;
}

template <class U>
void HidingElements::hide_equal(U pattern, const PanelRows& rows, KeyRange keys,
                                HiddenPairs& hidden) const {
  constexpr auto kSize = static_cast<index_t>(sizeof(U));
  const SourceRows sources(strides_, rows);
  const index_t count = strides_.j == 0 ? 1 : keys.end - keys.begin;
  const index_t ahead = std::min(kTileKeys, shape_.kv_len - keys.end);
  const auto* const first = static_cast<const unsigned char*>(values_.data);
  unsigned char gathered[kTileKeys * kSize];
  std::atomic<std::uint8_t>* const block = remembered(rows, keys);
  for (index_t s = 0; s < sources.count; ++s) {
    const int r = std::countr_zero(sources.lanes[s]);
    std::atomic<std::uint8_t>* const known =
        block == nullptr ? nullptr : block + rows.h[r] * head_step_ + rows.i[r] * row_step_;
    std::uint8_t found = known != nullptr ? known->load(std::memory_order_relaxed) : kUnknown;
    if (found == kNothing) continue;
    if (found == kEverything) {
      hidden.lanes |= sources.lanes[s];
      continue;
    }
    const unsigned char* row = first + (sources.offset[s] + keys.begin * strides_.j) * kSize;
    if (strides_.j != 0 && strides_.j != 1) {
      for (index_t n = 0; n < count; ++n)
        std::memcpy(gathered + n * kSize, row + n * strides_.j * kSize, sizeof(U));
      row = gathered;
    } else if (strides_.j == 1 && ahead > 0) {
      foresee(row + count * kSize, ahead * kSize);
    }
    if (found == kUnknown) {
      found = !has_equal(row, count, pattern)   ? kNothing
              : !has_other(row, count, pattern) ? kEverything
                                                : kSomething;
      if (known != nullptr) known->store(found, std::memory_order_relaxed);
    }
    if (found == kNothing) continue;
    if (found == kEverything) {
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
    for (std::size_t n = 0; n < row.runs.size(); ++n) {
      const index_t end = n + 1 < row.runs.size() ? row.runs[n + 1].begin : shape.kv_len;
      row.documents.push_back({row.runs[n].id, {row.runs[n].begin, end}});
    }
    join(row.documents);
    row.runs.push_back({shape.kv_len, 0});
    rows_.push_back(std::move(row));
  }
}

// Of each id one, in order of ids.
void SegmentRuns::join(std::vector<Document>& documents) {
  std::sort(documents.begin(), documents.end(),
            [](const Document& x, const Document& y) { return x.id < y.id; });
  std::size_t count = 0;
  for (const Document& document : documents) {
    if (count > 0 && documents[count - 1].id == document.id)
      documents[count - 1].keys = united(documents[count - 1].keys, document.keys);
    else
      documents[count++] = document;
  }
  documents.resize(count);
}

KeyRange SegmentRuns::key_range(const PanelRows& rows) const {
  const index_t b = rows_.size() == 1 ? 0 : rows.b;
  const index_t* const ids = query_ids_.data() + b * q_len_;
  const std::vector<Document>& documents = rows_[static_cast<std::size_t>(b)].documents;
  KeyRange all;
  for (index_t r = 0; r < rows.count; ++r) {
    const index_t id = ids[rows.i[r]];
    if (r > 0 && id == ids[rows.i[r - 1]]) continue;
    const auto found = std::lower_bound(
        documents.begin(), documents.end(), id,
        [](const Document& document, index_t wanted) { return document.id < wanted; });
    if (found != documents.end() && found->id == id) all = united(all, found->keys);
  }
  return all;
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
      std::uint8_t* const plane = hidden.plane[octet];
      for (index_t n = begin % kTileKeys; n < begin % kTileKeys + end - begin; ++n)
        plane[n] = static_cast<std::uint8_t>(plane[n] | bits);
    }
  }
}

void hide_by_rule(const RuleMap& map, const PanelRows& rows, KeyRange keys, HiddenPairs& hidden) {
  static_assert(RuleMap::kKeys == kTileKeys);
  const index_t block = keys.begin / kTileKeys;
  std::uint64_t run[2];
  range_bits(keys.begin % kTileKeys, keys.begin % kTileKeys + keys.end - keys.begin, run);
  std::uint64_t out[kMostRows][2] = {};
  std::uint32_t partly = 0;
  for (index_t r = 0; r < rows.count; ++r) {
    std::uint64_t allowed[2];
    map.row(rows.b, rows.h[r], rows.i[r], block, allowed);
    const std::uint64_t low = ~allowed[0] & run[0];
    const std::uint64_t high = ~allowed[1] & run[1];
    if ((low | high) == 0) continue;
    if (low == run[0] && high == run[1]) {
      hidden.lanes |= std::uint32_t{1} << r;
      continue;
    }
    out[r][0] = low;
    out[r][1] = high;
    partly |= std::uint32_t{1} << r;
  }
  if (partly == 0) return;
  hidden.need_planes();
  for (index_t octet = 0; octet < 4; ++octet) {
    if ((partly >> (8 * octet) & 0xff) != 0) hide_octet(out + 8 * octet, hidden.plane[octet]);
  }
}

}  // namespace glasshead
