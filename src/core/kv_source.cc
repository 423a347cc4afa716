#include "core/kv_source.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "core/foresee.h"
#include "core/widen.h"

namespace glasshead {
namespace {

KvLayout layout_of(const ConstTensor<4>& t) {
  return {kv_type_of(t.dtype), t.strides[1], kPanelKeys * t.strides[2], t.strides[2], t.strides[3]};
}

const void* batch_begin(const ConstTensor<4>& t, index_t b) {
  return static_cast<const char*>(t.data) +
         b * t.strides[0] * static_cast<index_t>(size_of(t.dtype));
}

// Whether a kernel reads it as it stands; needs_rows: the elements of a vector side by side, or
// keys in panels.
template <class T>
bool is_read_in_place(const KvLayout& layout, bool needs_rows) {
  return layout.type == kv_type_of(dtype_of<T>()) &&
         (!needs_rows || layout.step == 1 || layout.is_panels);
}

// Whether the kernels of single rows widen it themselves: what they would read in place as T.
template <class T>
bool is_narrow(const KvLayout& layout) {
  if (std::is_same_v<T, double> || layout.type == KvType::f64 || layout.type == KvType::f32)
    return false;
  return layout.step == 1 || layout.is_panels;
}

Narrow narrow_of(KvType type) {
  if (type == KvType::bf16) return Narrow::bf16;
  return type == KvType::f16 ? Narrow::f16 : Narrow::int8;
}

// Calls f(data, widen_one) with the stored elements' own type.
template <class T, class F>
void with_elements(const void* data, KvType type, const F& f) {
  switch (type) {
    case KvType::f64:
      return f(static_cast<const double*>(data), [](double x) { return static_cast<T>(x); });
    case KvType::f32:
      return f(static_cast<const float*>(data), [](float x) { return static_cast<T>(x); });
    case KvType::bf16:
      return f(static_cast<const std::uint16_t*>(data),
               [](std::uint16_t x) { return static_cast<T>(widen_bfloat(x)); });
    case KvType::f16:
      return f(static_cast<const std::uint16_t*>(data),
               [](std::uint16_t x) { return static_cast<T>(widen_half(x)); });
    case KvType::int8:
      return f(static_cast<const std::int8_t*>(data),
               [](std::int8_t x) { return static_cast<T>(x); });
  }
}

template <class T, class E, class Widen>
void widen_row(const E* from, index_t step, index_t size, const Widen& widen_one, T* to) {
  if (step == 1) {
    for (index_t d = 0; d < size; ++d) to[d] = widen_one(from[d]);
  } else {
    for (index_t d = 0; d < size; ++d) to[d] = widen_one(from[d * step]);
  }
}

// `count` rows, row_stride apart, side by side: in the order of memory, since rows whose elements
// lie far apart would each touch as many cache lines as they have elements.
template <class T, class E, class Widen>
void widen_rows(const E* from, const KvLayout& layout, index_t count, index_t size,
                const Widen& widen_one, T* to) {
  if (std::abs(layout.step) <= std::abs(layout.row_stride)) {
    for (index_t n = 0; n < count; ++n)
      widen_row(from + n * layout.row_stride, layout.step, size, widen_one, to + n * size);
    return;
  }
  for (index_t d = 0; d < size; ++d) {
    const E* const column = from + d * layout.step;
    if (layout.row_stride == 1) foresee(column + count, count * index_t{sizeof(E)});
    for (index_t n = 0; n < count; ++n) to[n * size + d] = widen_one(column[n * layout.row_stride]);
  }
}

}  // namespace

KvType kv_type_of(DType dtype) {
  if (dtype == DType::f64) return KvType::f64;
  if (dtype == DType::bf16) return KvType::bf16;
  return dtype == DType::f16 ? KvType::f16 : KvType::f32;
}

index_t size_of(KvType type) {
  switch (type) {
    case KvType::f64:
      return 8;
    case KvType::f32:
      return 4;
    case KvType::bf16:
    case KvType::f16:
      return 2;
    case KvType::int8:
      return 1;
  }
  return 1;
}

KvSource kv_of(const ConstTensor<4>& k, const ConstTensor<4>& v) {
  KvSource source{k.shape[1], k.shape[3], v.shape[3], layout_of(k), layout_of(v), {}};
  source.sequences.resize(static_cast<std::size_t>(k.shape[0]));
  if (k.shape[2] == 0) return source;
  for (index_t b = 0; b < k.shape[0]; ++b) {
    KvPiece piece;
    piece.end = k.shape[2];
    piece.k = batch_begin(k, b);
    piece.v = v.data == nullptr ? nullptr : batch_begin(v, b);
    source.sequences[static_cast<std::size_t>(b)].push_back(piece);
  }
  return source;
}

template <class T>
KvBlock<T>::KvBlock(const KvSource& source, bool for_rows)
    : source_(&source),
      keys_are_narrow_(for_rows && is_narrow<T>(source.k)),
      values_are_narrow_(for_rows && is_narrow<T>(source.v)) {
  const auto rows = static_cast<std::size_t>(kBlock);
  if (!keys_are_narrow_ && !is_read_in_place<T>(source.k, for_rows))
    key_room_.resize(rows * static_cast<std::size_t>(source.d_k));
  if (!values_are_narrow_ && !is_read_in_place<T>(source.v, for_rows))
    value_room_.resize(rows * static_cast<std::size_t>(source.d_v));
}

template <class T>
void KvBlock<T>::load(index_t b, index_t g, KeyRange keys) {
  keys_ = keys;
  load_side({&source_->k, source_->d_k, true, keys_are_narrow_, &key_room_, &key_runs_}, b, g);
  load_side({&source_->v, source_->d_v, false, values_are_narrow_, &value_room_, &value_runs_}, b,
            g);
}

template <class T>
void KvBlock<T>::load_side(const Side& side, index_t b, index_t g) {
  side.runs->clear();
  if (side.size == 0) {  // values without columns
    side.runs->push_back({keys_.begin, keys_.end - keys_.begin, {}});
    return;
  }
  const std::vector<KvPiece>& pieces = source_->sequences[static_cast<std::size_t>(b)];
  auto piece = std::upper_bound(pieces.begin(), pieces.end(), keys_.begin,
                                [](index_t key, const KvPiece& other) { return key < other.end; });
  for (; piece != pieces.end() && piece->begin < keys_.end; ++piece) {
    const KeyRange keys{std::max(keys_.begin, piece->begin), std::min(keys_.end, piece->end)};
    if (side.is_narrow)
      narrow_piece(side, *piece, g, keys);
    else if (side.room->empty())
      load_piece(side, *piece, g, keys);
    else
      widen_piece(side, *piece, g, keys);
  }
}

template <class T>
void KvBlock<T>::narrow_piece(const Side& side, const KvPiece& piece, index_t g, KeyRange keys) {
  const KvLayout& layout = *side.layout;
  const char* data = static_cast<const char*>(side.is_keys ? piece.k : piece.v);
  const float* scales = side.is_keys ? piece.k_scales : piece.v_scales;
  const index_t n = keys.begin - piece.begin;
  KvRun<T> run{keys.begin, keys.end - keys.begin, {nullptr, layout.row_stride, layout.step}};
  run.narrow.type = narrow_of(layout.type);
  run.narrow.data = data + layout.offset(g, n) * size_of(layout.type);
  if (scales != nullptr) run.narrow.scales = scales + layout.scale_stride * g + n;
  run.narrow.panel_stride = layout.panel_stride;
  side.runs->push_back(run);
}

template <class T>
void KvBlock<T>::load_piece(const Side& side, const KvPiece& piece, index_t g, KeyRange keys) {
  const KvLayout& layout = *side.layout;
  const T* data = static_cast<const T*>(side.is_keys ? piece.k : piece.v);
  for (index_t j = keys.begin; j < keys.end;) {
    const index_t n = j - piece.begin;
    const index_t end =
        layout.is_panels ? std::min(keys.end, j - n % kPanelKeys + kPanelKeys) : keys.end;
    side.runs->push_back(
        {j, end - j, {data + layout.offset(g, n), layout.row_stride, layout.step}});
    j = end;
  }
}

template <class T>
void KvBlock<T>::widen_piece(const Side& side, const KvPiece& piece, index_t g, KeyRange keys) {
  const KvLayout& layout = *side.layout;
  const float* scales = side.is_keys ? piece.k_scales : piece.v_scales;
  if (scales != nullptr) scales += layout.scale_stride * g;
  const index_t size = side.size;
  with_elements<T>(
      side.is_keys ? piece.k : piece.v, layout.type, [&](const auto* data, const auto& widen_one) {
        if (!layout.is_panels) {
          const index_t first = keys.begin - piece.begin;
          const index_t count = keys.end - keys.begin;
          T* room = side.room->data() + (keys.begin - keys_.begin) * size;
          widen_rows(data + layout.offset(g, first), layout, count, size, widen_one, room);
          for (index_t n = 0; scales != nullptr && n < count; ++n)
            for (index_t d = 0; d < size; ++d)
              room[n * size + d] *= static_cast<T>(scales[first + n]);
          side.runs->push_back({keys.begin, keys.end - keys.begin, {room, size, 1}});
          return;
        }
        for (index_t j = keys.begin; j < keys.end;) {  // whole panels, as they stand
          const index_t lane = j % kPanelKeys;
          const index_t end = std::min(keys.end, j - lane + kPanelKeys);
          const index_t n = j - lane - piece.begin;
          T* room = side.room->data() + j % kBlock / kPanelKeys * kPanelKeys * size;
          widen_row(data + layout.offset(g, n), 1, kPanelKeys * size, widen_one, room);
          if (scales != nullptr)
            for (index_t d = 0; d < size; ++d)
              for (index_t i = 0; i < kPanelKeys; ++i)
                room[d * kPanelKeys + i] *= static_cast<T>(scales[n + i]);
          side.runs->push_back({j, end - j, {room + lane, 1, kPanelKeys}});
          j = end;
        }
      });
}

template <class T>
bool KvBlock<T>::keys_are_finite(const Kernels<T>& kernels) const {
  return are_finite(kernels, key_runs_, source_->d_k);
}

template <class T>
bool KvBlock<T>::values_are_finite(const Kernels<T>& kernels) const {
  return are_finite(kernels, value_runs_, source_->d_v);
}

namespace {

// Of narrow rows whose elements lie side by side. int8: a row that isn't has a scale that isn't.
template <class T>
bool is_finite(const KvRun<T>& run, index_t size) {
  std::uint32_t found = 0;
  for (index_t n = 0; n < run.count; ++n) {
    if (run.narrow.type == Narrow::int8) {
      const auto bits = std::bit_cast<std::uint32_t>(run.narrow.scales[n]);
      found |= std::uint32_t{(bits & 0x7f800000U) == 0x7f800000U};
      continue;
    }
    const std::uint32_t exponent = run.narrow.type == Narrow::bf16 ? 0x7f80U : 0x7c00U;
    const auto* row = static_cast<const std::uint16_t*>(run.narrow.data) + n * run.rows.row_stride;
    for (index_t d = 0; d < size; ++d)
      found |= std::uint32_t{(row[d * run.rows.step] & exponent) == exponent};
  }
  return found == 0;
}

}  // namespace

template <class T>
bool KvBlock<T>::are_finite(const Kernels<T>& kernels, const std::vector<KvRun<T>>& runs,
                            index_t size) {
  return std::all_of(runs.begin(), runs.end(), [&](const KvRun<T>& run) {
    return run.narrow.type != Narrow::none ? is_finite(run, size)
                                           : kernels.are_finite(run.rows, run.count, size);
  });
}

template class KvBlock<float>;
template class KvBlock<double>;

}  // namespace glasshead
