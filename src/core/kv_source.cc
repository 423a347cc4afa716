#include "core/kv_source.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "core/rows.h"

namespace glasshead {
namespace {

KvLayout layout_of(const ConstTensor<4>& t) {
  return {t.dtype, t.strides[1], kPanelKeys * t.strides[2], t.strides[2], t.strides[3]};
}

const void* batch_begin(const ConstTensor<4>& t, index_t b) {
  return static_cast<const char*>(t.data) +
         b * t.strides[0] * static_cast<index_t>(size_of(t.dtype));
}

// Rows are alike where panels are no more than 16 rows of the same stride.
bool is_row_major(const KvLayout& layout) {
  return layout.panel_stride == kPanelKeys * layout.row_stride;
}

template <class T, class E>
void widen_rows(const E* from, const KvLayout& layout, index_t begin, index_t count, index_t size,
                T* to) {
  for (index_t n = 0; n < count; ++n) {
    const E* row = from + layout.offset(0, begin + n);
    for (index_t d = 0; d < size; ++d) to[n * size + d] = widen_to<T>(row[d * layout.step]);
  }
}

}  // namespace

KvSource kv_of(const ConstTensor<4>& k, const ConstTensor<4>& v) {
  KvSource source{k.shape[1], k.shape[3], v.shape[3], layout_of(k), layout_of(v), {}};
  source.sequences.resize(static_cast<std::size_t>(k.shape[0]));
  if (k.shape[2] == 0) return source;
  for (index_t b = 0; b < k.shape[0]; ++b) {
    source.sequences[static_cast<std::size_t>(b)].push_back(
        {0, k.shape[2], batch_begin(k, b), v.data == nullptr ? nullptr : batch_begin(v, b)});
  }
  return source;
}

template <class T>
KvBlock<T>::KvBlock(const KvSource& source, bool needs_rows) : source_(&source) {
  const auto rows = static_cast<std::size_t>(kBlock);
  const auto is_copied = [needs_rows](const KvLayout& layout, bool may_be_panels) {
    const bool is_panel = may_be_panels && layout.row_stride == 1 && layout.step == kPanelKeys;
    return layout.dtype != dtype_of<T>() || (needs_rows && layout.step != 1 && !is_panel);
  };
  if (is_copied(source.k, true)) key_room_.resize(rows * static_cast<std::size_t>(source.d_k));
  if (is_copied(source.v, false)) value_room_.resize(rows * static_cast<std::size_t>(source.d_v));
}

template <class T>
void KvBlock<T>::load(index_t b, index_t g, KeyRange keys) {
  keys_ = keys;
  load_side({&source_->k, source_->d_k, &key_room_}, true, b, g, key_runs_);
  load_side({&source_->v, source_->d_v, &value_room_}, false, b, g, value_runs_);
}

template <class T>
void KvBlock<T>::load_side(const Side& side, bool is_keys, index_t b, index_t g,
                           std::vector<KvRun<T>>& runs) {
  runs.clear();
  if (side.size == 0) {  // values without columns
    runs.push_back({{}, keys_.end - keys_.begin});
    return;
  }
  const KvLayout& layout = *side.layout;
  for (const KvPiece& piece : source_->sequences[static_cast<std::size_t>(b)]) {
    index_t n = std::max(keys_.begin, piece.begin) - piece.begin;
    const index_t last = std::min(keys_.end, piece.end) - piece.begin;
    if (n >= last) continue;
    const void* data = is_keys ? piece.k : piece.v;
    if (side.room->empty()) {
      const T* head = static_cast<const T*>(data);
      while (n < last) {
        const index_t end =
            is_row_major(layout) ? last : std::min(last, n - n % kPanelKeys + kPanelKeys);
        runs.push_back({{head + layout.offset(g, n), layout.row_stride, layout.step}, end - n});
        n = end;
      }
      continue;
    }
    T* room = side.room->data() + (piece.begin + n - keys_.begin) * side.size;
    const auto copy = [&](auto element) {
      using E = decltype(element);
      widen_rows(static_cast<const E*>(data) + layout.head_stride * g, layout, n, last - n,
                 side.size, room);
    };
    if (layout.dtype == dtype_of<T>())
      copy(T{});
    else if (layout.dtype == DType::bf16)
      copy(bf16{});
    else
      copy(f16{});
    runs.push_back({{room, side.size, 1}, last - n});
  }
}

template <class T>
bool KvBlock<T>::values_are_finite() const {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits kExponent = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  Bits found = 0;
  for (const KvRun<T>& run : value_runs_) {
    for (index_t n = 0; n < run.count; ++n) {
      const T* row = run.rows.data + n * run.rows.row_stride;
      if (run.rows.step == 1) {
        for (index_t d = 0; d < source_->d_v; ++d)
          found |= Bits{(std::bit_cast<Bits>(row[d]) & kExponent) == kExponent};
      } else {
        for (index_t d = 0; d < source_->d_v; ++d)
          found |= Bits{(std::bit_cast<Bits>(row[d * run.rows.step]) & kExponent) == kExponent};
      }
    }
  }
  return found == 0;
}

template class KvBlock<float>;
template class KvBlock<double>;

}  // namespace glasshead
